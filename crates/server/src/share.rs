//! What bodies take in memory while they are read and become jobs: of all together, and of one tenant, only so much.

use std::sync::{Arc, PoisonError};

use crate::problem::Problem;
use crate::service::Service;
use crate::settings::{MAX_BODIES, MAX_BODIES_OF_TENANT};

/// Given back when it is dropped.
pub(crate) struct Share {
    service: Arc<Service>,
    tenant: String,
    bytes: usize,
}

impl Share {
    pub(crate) fn new(service: &Arc<Service>, tenant: &str) -> Share {
        Share { service: Arc::clone(service), tenant: tenant.to_owned(), bytes: 0 }
    }

    pub(crate) fn take(&mut self, more: usize) -> Result<(), Problem> {
        let mut taken = self.service.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, his) = (taken.values().sum::<usize>(), taken.get(&self.tenant).copied().unwrap_or(0));
        if all + more > MAX_BODIES || his + more > MAX_BODIES_OF_TENANT {
            return Err(Problem::unavailable("busy", "too many large requests are being read: come back later"));
        }
        *taken.entry(self.tenant.clone()).or_default() += more;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.service.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(his) = taken.get_mut(&self.tenant) {
            *his -= self.bytes.min(*his);
            if *his == 0 {
                taken.remove(&self.tenant);
            }
        }
    }
}
