//! Seats for those who watch: each holds a connection for as long as he likes, so there are only so many. Who was let in with a
//! key leaves when it is revoked.

use std::sync::{Arc, PoisonError};

use tokio::time::{Instant, sleep_until};

use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;
use crate::settings::{KEY_PULSE, MAX_STREAMS, MAX_STREAMS_OF_TENANT};

/// Why he is sent away.
pub(crate) const REVOKED: &str = "the key was revoked";

pub(crate) struct Seat {
    service: Arc<Service>,
    tenant: String,
    key_id: Option<String>,
    /// When his key is looked at again.
    look_at: Instant,
}

impl Seat {
    pub(crate) fn take(service: &Arc<Service>, caller: &Caller) -> Result<Seat, Problem> {
        let tenant = &caller.tenant;
        let mut taken = service.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, his) = (taken.values().sum::<usize>(), taken.get(tenant).copied().unwrap_or(0));
        if all >= MAX_STREAMS || his >= MAX_STREAMS_OF_TENANT {
            return Err(Problem::busy("streams", format!("{his} streams of this tenant are open: close one first")));
        }
        *taken.entry(tenant.to_owned()).or_default() += 1;
        let (tenant, key_id) = (tenant.to_owned(), caller.key_id.clone());
        Ok(Seat { service: Arc::clone(service), tenant, key_id, look_at: Instant::now() + KEY_PULSE })
    }

    /// Waits until his key is none any more. To be asked again and again: nothing that he is told puts the next look off.
    pub(crate) async fn revoked(&mut self) {
        let Some(key_id) = &self.key_id else { return std::future::pending().await };
        loop {
            sleep_until(self.look_at).await;
            self.look_at = Instant::now() + KEY_PULSE;
            match self.service.keys().is_api_key(key_id) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::error!(key_id, %error, "cannot see whether a key is revoked"),
            }
        }
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
