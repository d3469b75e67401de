//! Tasks that depend on each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[derive(Debug, PartialEq)]
pub enum GraphError {
    Cycle(Vec<String>),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GraphError::Cycle(tasks) = self;
        write!(f, "cycle among {}", tasks.join(", "))
    }
}

#[derive(Default)]
pub struct Graph {
    needs: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    pub fn depends(&mut self, task: &str, on: &[&str]) {
        for need in on {
            self.needs.entry((*need).to_owned()).or_default();
            self.needs.entry(task.to_owned()).or_default().insert((*need).to_owned());
        }
    }

    /// The tasks such that each comes after everything it needs.
    pub fn order(&self) -> Result<Vec<String>, GraphError> {
        let mut left = self.needs.clone();
        let mut done = Vec::new();
        while !left.is_empty() {
            let Some(task) = left.iter().find(|(_, needs)| needs.is_empty()).map(|(task, _)| task.clone()) else {
                return Err(GraphError::Cycle(left.into_keys().collect()));
            };
            left.remove(&task);
            left.values_mut().for_each(|needs| {
                needs.remove(&task);
            });
            done.push(task);
        }
        Ok(done)
    }
}
