//! What can be run here, asked of the tools themselves, and not more often than they change.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use hotcell_contract::{KeyScope, LanguageList, LanguageSummary};
use hotcell_engine::survey;

use super::{Answer, json};
use crate::auth::Caller;
use crate::service::Service;

/// Each look is a cell for every language.
const FRESH: Duration = Duration::from_secs(300);

pub(super) async fn list(State(service): State<Arc<Service>>, caller: Caller) -> Answer {
    caller.may(KeyScope::Read)?;
    let found = service.blocking(|service| Ok(languages(service))).await?;
    json(StatusCode::OK, &*found)
}

/// Who comes while somebody looks for the first time waits for what he finds; later, what is old is told while somebody looks.
pub(crate) fn languages(service: &Arc<Service>) -> Arc<LanguageList> {
    let mut last = service.languages.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, found)) = last.as_mut() {
        if at.elapsed() >= FRESH {
            *at = Instant::now();
            let service = Arc::clone(service);
            // Without a thread it stays as old as it is until the next time.
            let _ = std::thread::Builder::new().spawn(move || {
                let found = look(&service);
                *service.languages.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), found));
            });
        }
        return Arc::clone(found);
    }
    let found = look(service);
    *last = Some((Instant::now(), Arc::clone(&found)));
    found
}

fn look(service: &Service) -> Arc<LanguageList> {
    let languages = survey(&service.launcher, &service.catalogue).into_iter().map(|language| LanguageSummary {
        name: language.name,
        aliases: language.aliases,
        extensions: language.extensions,
        compiled: language.compiled,
        available: language.missing.is_none(),
        version: language.version,
        missing: language.missing,
    });
    Arc::new(LanguageList { languages: languages.collect() })
}
