//! Files that a run has left: those that its outcome lists, by their names in it, and no others.

use std::io::Read;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::stream::unfold;
use hotcell_contract::{Artifact, ArtifactList, KeyScope};

use super::{Answer, Id, json};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;

/// What is read at once.
const CHUNK: usize = 64 << 10;

pub(super) async fn list(State(service): State<Arc<Service>>, caller: Caller, Id(id): Id) -> Answer {
    caller.may(KeyScope::Read)?;
    let tenant = caller.tenant;
    let artifacts = service.blocking(move |service| artifacts(service, &tenant, &id)).await?;
    json(StatusCode::OK, &ArtifactList { artifacts })
}

fn artifacts(service: &Service, tenant: &str, id: &str) -> Result<Vec<Artifact>, Problem> {
    let run = service.view(tenant, id)?;
    let files = run.outcome.map(|outcome| outcome.artifacts).unwrap_or_default();
    // What a leased run wrote into a repository is the operator's.
    Ok(files.into_iter().filter(|file| !file.path.starts_with("repo://")).collect())
}

/// The id of a run and the name of a file, as they stand in the path.
pub(super) struct Place(String, String);

impl FromRequestParts<Arc<Service>> for Place {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Place, Problem> {
        let place = Path::<(String, String)>::from_request_parts(parts, service).await;
        place.map(|place| Place(place.0.0, place.0.1)).map_err(|_| Problem::not_found("artifact"))
    }
}

pub(super) async fn fetch(State(service): State<Arc<Service>>, caller: Caller, Place(id, name): Place) -> Answer {
    caller.may(KeyScope::Read)?;
    let unknown = || Problem::not_found("artifact");
    let (file, artifact) = service
        .blocking(move |service| {
            let known = artifacts(service, &caller.tenant, &id)?;
            let artifact = known.into_iter().find(|file| file.path == name).ok_or_else(unknown)?;
            let file = service.results.open_artifact(&id, &artifact.path).map_err(|_| unknown())?;
            Ok((file, artifact))
        })
        .await?;
    let body = Body::from_stream(unfold(Some((file, artifact.bytes)), |reading| async move {
        let (file, left) = reading.filter(|(_, left)| *left > 0)?;
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
            let n = (&file).read(&mut bytes)?;
            bytes.truncate(n);
            // A file that is shorter than it was must not pass for a whole one.
            if n == 0 { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok((Bytes::from(bytes), file)) }
        });
        match read.await.unwrap_or_else(|e| Err(std::io::Error::other(e))) {
            Ok((bytes, file)) => {
                let left = left - bytes.len() as u64;
                Some((Ok(bytes), Some((file, left))))
            }
            Err(error) => Some((Err(error), None)),
        }
    }));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        // Its content is a stranger's: no browser is to show it.
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::CONTENT_LENGTH, HeaderValue::from(artifact.bytes)),
        (header::ETAG, HeaderValue::from_str(&format!("\"{}\"", artifact.sha256)).map_err(|e| Problem::internal(&e))?),
    ];
    Ok((headers, body).into_response())
}
