//! Ranks students by their mean grade.

use std::cmp::Ordering;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
struct Student {
    name: &'static str,
    class: char,
    grades: Vec<u32>,
}

impl Student {
    fn mean(&self) -> f64 {
        f64::from(self.grades.iter().sum::<u32>()) / self.grades.len() as f64
    }
}

fn rank(a: &Student, b: &Student) -> Ordering {
    b.mean().total_cmp(&a.mean()).then_with(|| a.name.cmp(b.name))
}

fn main() {
    let mut students = vec![
        Student { name: "Mira", class: 'B', grades: vec![80, 90, 70] },
        Student { name: "Jon", class: 'A', grades: vec![95, 85] },
        Student { name: "Eve", class: 'A', grades: vec![60, 75, 99, 86] },
        Student { name: "Bo", class: 'B', grades: vec![70, 90] },
    ];
    students.sort_by(rank);
    for (place, student) in students.iter().enumerate() {
        println!("{}. {:<5} {:.2}", place + 1, student.name, student.mean());
    }

    let mut classes: BTreeMap<char, Vec<&str>> = BTreeMap::new();
    for student in &students {
        classes.entry(student.class).or_default().push(student.name);
    }
    println!("{classes:?}");
}
