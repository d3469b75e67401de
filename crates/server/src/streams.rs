//! Seats for those who watch: each holds a connection for as long as he likes, so there are only so many.

use std::sync::{Arc, PoisonError};

use crate::problem::Problem;
use crate::service::Service;
use crate::settings::{MAX_STREAMS, MAX_STREAMS_OF_TENANT};

pub(crate) struct Seat {
    service: Arc<Service>,
    tenant: String,
}

impl Seat {
    pub(crate) fn take(service: &Arc<Service>, tenant: &str) -> Result<Seat, Problem> {
        let mut taken = service.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, his) = (taken.values().sum::<usize>(), taken.get(tenant).copied().unwrap_or(0));
        if all >= MAX_STREAMS || his >= MAX_STREAMS_OF_TENANT {
            return Err(Problem::busy("streams", format!("{his} streams of this tenant are open: close one first")));
        }
        *taken.entry(tenant.to_owned()).or_default() += 1;
        Ok(Seat { service: Arc::clone(service), tenant: tenant.to_owned() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.service.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.tenant);
            }
        }
    }
}
