//! What can be asked: as a document for machines, and as a page for people that is made from it.

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse};

use super::Answer;
use crate::openapi::{DOCUMENT, page as rendered};

pub(super) async fn document() -> Answer {
    let content_type = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, content_type)], DOCUMENT).into_response())
}

pub(super) async fn page() -> Answer {
    Ok(Html(rendered()).into_response())
}
