//! Calls over HTTP that are not answered yet, for clients that take one back in another request.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// A call has the name that its client gave it, which is one among the calls of its session, of its tenant.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) tenant: String,
    pub(super) session: String,
    /// As JSON: 1 is not "1".
    pub(super) id: String,
}

#[derive(Clone, Default)]
pub(crate) struct Open(Arc<Mutex<HashMap<Name, watch::Sender<bool>>>>);

/// As long as it lives, the call can be taken back.
pub(super) struct Listed {
    open: Open,
    name: Name,
}

impl Open {
    /// Nothing where there is such a call already: a client that gives two of them one name cannot take back the second.
    pub(super) fn list(&self, name: Name, gone: watch::Sender<bool>) -> Option<Listed> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match open.entry(name.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(gone);
                Some(Listed { open: self.clone(), name })
            }
        }
    }

    pub(super) fn take_back(&self, name: &Name) {
        if let Some(gone) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            gone.send_replace(true);
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.open.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}
