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

/// Who comes while somebody looks waits for what he finds.
pub(crate) fn languages(service: &Service) -> Arc<LanguageList> {
    let mut last = service.languages.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
        return Arc::clone(found);
    }
    let languages = survey(&service.launcher, &service.catalogue).into_iter().map(|language| LanguageSummary {
        name: language.name,
        aliases: language.aliases,
        extensions: language.extensions,
        compiled: language.compiled,
        available: language.missing.is_none(),
        version: language.version,
        missing: language.missing,
    });
    let found = Arc::new(LanguageList { languages: languages.collect() });
    *last = Some((Instant::now(), Arc::clone(&found)));
    found
}
