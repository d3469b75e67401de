//! The API as a document (OpenAPI 3.1), made from the routes below and the schemas of the contract. It is checked in, and a test
//! fails when it is not what is made.

use std::sync::LazyLock;

use hotcell_contract as contract;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// As it is served.
pub(crate) const DOCUMENT: &str = include_str!("../openapi.json");

struct Route {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// None: for everybody.
    scope: Option<&'static str>,
    query: &'static [Parameter],
    body: Option<&'static str>,
    /// Statuses of success, with the schema of the answer, or its media type where it is no JSON.
    answers: &'static [(u16, &'static str, Option<&'static str>)],
    problems: &'static [u16],
}

/// A name, what it can be (see `values`), and a text.
type Parameter = (&'static str, &'static str, &'static str);

const WAIT: &[Parameter] = &[
    ("wait", "boolean", "Answer when it has ended (the default), or at once."),
    ("keep", "boolean", "Let it go on when whoever waits for it goes away."),
];
const WAIT_OR_ATTACH: &[Parameter] = &[
    ("wait", "boolean", "Answer when it has ended (the default), or at once."),
    ("keep", "boolean", "Let it go on when whoever waits for it goes away."),
    ("attach", "boolean", "Its input is written by who attaches; implies `wait=false`."),
];
const KEEP: &[Parameter] = &[("keep", "boolean", "Let the run go on when the connection ends.")];
const SWITCH: &[Parameter] = &[("tenant_id", "id", "That of one tenant; without it, everybody's.")];
const TENANT: &[Parameter] = &[("tenant_id", "string", "Of one tenant; the operator's keys see all without it.")];
const RECORDS: &[Parameter] = &[
    ("tenant_id", "string", "Of one tenant; the operator's keys see all without it."),
    ("user_id", "string", "On behalf of this user."),
    ("run_id", "string", "Of this run of the caller's."),
    ("status", "status", "pending, running, completed, failed, timeout, killed or denied."),
    ("language", "string", "In this language; `command` for commands."),
    ("policy_id", "string", "Under this policy."),
    ("since", "time", "Not older than this: a date, or a moment with its offset."),
    ("until", "time", "Older than this."),
    ("before", "string", "Older than this record: for the next page."),
    ("limit", "limit", "So many: 1 to 1000, 50 where it is left out."),
];
const REASON: &[Parameter] = &[("reason", "string", "Why.")];

const BODY: &[u16] = &[400, 401, 403, 408, 413, 415, 422, 500, 503];
const LOOK: &[u16] = &[401, 403, 404, 422, 500, 503];

const fn route(method: &'static str, path: &'static str, summary: &'static str, scope: Option<&'static str>) -> Route {
    Route { method, path, summary, scope, query: &[], body: None, answers: &[], problems: LOOK }
}

const ROUTES: &[Route] = &[
    Route {
        query: WAIT_OR_ATTACH,
        body: Some("RunRequest"),
        answers: &[(200, "It has ended.", Some("Run")), (202, "It waits or goes.", Some("Run"))],
        problems: &[400, 401, 403, 408, 409, 413, 415, 422, 429, 500, 503],
        ..route("post", "/v1/runs", "Run a program", Some("run"))
    },
    Route {
        answers: &[(200, "The run, with its outcome once it has ended.", Some("Run"))],
        ..route("get", "/v1/runs/{id}", "Look at a run", Some("read"))
    },
    Route {
        answers: &[
            (202, "It is being called off, or has just ended.", Some("Run")),
            (200, "It had ended long ago.", Some("Run")),
        ],
        ..route("delete", "/v1/runs/{id}", "Call a run off", Some("run"))
    },
    Route {
        answers: &[(200, "Server-sent events; `Last-Event-ID` goes on behind an event.", Some("text/event-stream"))],
        problems: &[401, 403, 404, 410, 422, 429, 500, 503],
        ..route("get", "/v1/runs/{id}/events", "Follow a run", Some("read"))
    },
    Route {
        query: KEEP,
        answers: &[(101, "A WebSocket: events out, input in.", None)],
        problems: &[401, 403, 404, 410, 422, 426, 429, 500, 503],
        ..route("get", "/v1/runs/{id}/attach", "Talk to a run", Some("run"))
    },
    Route {
        answers: &[(200, "Files that the run has left.", Some("ArtifactList"))],
        ..route("get", "/v1/runs/{id}/artifacts", "List artifacts", Some("read"))
    },
    Route {
        answers: &[(200, "The file.", Some("application/octet-stream"))],
        ..route("get", "/v1/runs/{id}/artifacts/{name}", "Fetch an artifact", Some("read"))
    },
    Route {
        query: WAIT,
        body: Some("VerifyRequest"),
        answers: &[(200, "It has ended.", Some("Run")), (202, "It waits or goes.", Some("Run"))],
        problems: &[400, 401, 403, 408, 409, 413, 415, 422, 429, 500, 503],
        ..route("post", "/v1/verify", "Check sources and their tests", Some("run"))
    },
    Route {
        answers: &[(200, "Those that this key may use; all, for the operator.", Some("PolicyList"))],
        ..route("get", "/v1/policies", "List policies", Some("read"))
    },
    Route {
        body: Some("Policy"),
        answers: &[(201, "It is defined.", Some("KnownPolicy"))],
        problems: &[400, 401, 403, 408, 409, 413, 415, 422, 500, 503],
        ..route("post", "/v1/policies", "Define a policy", Some("admin"))
    },
    Route {
        answers: &[(200, "The policy.", Some("KnownPolicy"))],
        ..route("get", "/v1/policies/{id}", "Look at a policy", Some("read"))
    },
    Route {
        answers: &[(200, "It is gone.", Some("KnownPolicy"))],
        problems: &[401, 403, 404, 409, 500, 503],
        ..route("delete", "/v1/policies/{id}", "Delete a policy", Some("admin"))
    },
    Route {
        answers: &[(200, "Those that were issued here.", Some("LeaseList"))],
        ..route("get", "/v1/leases", "List leases", Some("admin"))
    },
    Route {
        body: Some("LeaseRequest"),
        answers: &[(201, "It is signed.", Some("IssuedLeaseText"))],
        problems: &[400, 401, 403, 408, 409, 413, 415, 422, 500, 503],
        ..route("post", "/v1/leases", "Issue a lease", Some("admin"))
    },
    Route {
        query: REASON,
        answers: &[(200, "It is refused from now on, and what ran under it has ended.", Some("RevokedLease"))],
        ..route("delete", "/v1/leases/{id}", "Revoke a lease", Some("admin"))
    },
    Route {
        answers: &[(200, "Questions and answers.", Some("ApprovalList"))],
        ..route("get", "/v1/approvals", "List approvals", Some("read"))
    },
    Route {
        answers: &[(200, "The question, with all that is to run.", Some("Approval"))],
        ..route("get", "/v1/approvals/{id}", "Look at an approval", Some("read"))
    },
    Route {
        body: Some("Decision"),
        answers: &[(200, "It is decided.", Some("Approval"))],
        problems: &[400, 401, 403, 404, 408, 409, 413, 415, 422, 500, 503],
        ..route("post", "/v1/approvals/{id}", "Decide about a run", Some("admin"))
    },
    Route {
        query: RECORDS,
        answers: &[(200, "Newest first.", Some("RecordList"))],
        ..route("get", "/v1/records", "List runs and refusals", Some("read"))
    },
    Route {
        answers: &[(200, "The record.", Some("ExecutionRecord"))],
        ..route("get", "/v1/records/{id}", "Look at a record", Some("read"))
    },
    Route {
        query: TENANT,
        answers: &[(200, "All runs together.", Some("Stats"))],
        ..route("get", "/v1/stats", "Count runs", Some("read"))
    },
    Route {
        answers: &[(200, "What can be run here.", Some("LanguageList"))],
        ..route("get", "/v1/languages", "List languages", Some("read"))
    },
    Route {
        answers: &[(200, "Which are on.", Some("SwitchList"))],
        ..route("get", "/v1/killswitch", "Look at the kill switch", Some("read"))
    },
    Route {
        body: Some("SwitchRequest"),
        answers: &[(200, "It is on, and what it is for has ended.", Some("SwitchList"))],
        problems: BODY,
        ..route("post", "/v1/killswitch", "Stop everything", Some("admin"))
    },
    Route {
        query: SWITCH,
        answers: &[(200, "It is off.", Some("SwitchList"))],
        ..route("delete", "/v1/killswitch", "Let runs begin again", Some("admin"))
    },
    Route {
        answers: &[(200, "The process answers.", Some("Health"))],
        problems: &[],
        ..route("get", "/healthz", "Is it there", None)
    },
    Route {
        answers: &[(200, "Runs are taken.", Some("Health"))],
        problems: &[500, 503],
        ..route("get", "/readyz", "Does it take runs", None)
    },
    Route {
        answers: &[(200, "Its version.", Some("Version"))],
        problems: &[],
        ..route("get", "/version", "What is it", None)
    },
    Route {
        answers: &[(200, "Numbers for Prometheus.", Some("text/plain"))],
        problems: &[401, 403, 500],
        ..route("get", "/metrics", "How does it do", Some("admin"))
    },
];

/// The document, made anew.
pub fn openapi() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Hotcell",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs untrusted code in cells, and says with proof what happened.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "bearer": [] }, { "api_key": [] }, {}],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "api_key": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = vec![];
    for name in ["id", "name"].iter().filter(|name| route.path.contains(&format!("{{{name}}}"))) {
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    for (name, kind, text) in route.query {
        parameters.push(json!({ "name": name, "in": "query", "description": text, "schema": values(kind) }));
    }
    let is_asked = matches!(route.path, "/v1/runs" | "/v1/verify");
    if is_asked {
        let text = "The same key and the same body are one run.";
        let schema = json!({ "type": "string", "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$" });
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "description": text, "schema": schema }));
    }
    let mut responses = Map::new();
    for (status, text, schema) in route.answers {
        let mut response = json!({ "description": text });
        match schema {
            Some(media) if media.contains('/') => response["content"] = json!({ *media: { "schema": said_in(media) } }),
            Some(schema) => response["content"] = json!({ "application/json": { "schema": reference(schema) } }),
            None => {}
        }
        responses.insert(status.to_string(), response);
    }
    for status in route.problems {
        let reason = axum::http::StatusCode::from_u16(*status).ok().and_then(|s| s.canonical_reason()).unwrap_or("");
        let content = json!({ "application/problem+json": { "schema": reference("HttpProblem") } });
        responses.insert(status.to_string(), json!({ "description": reason, "content": content }));
    }
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "responses": responses,
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = route.body {
        let content = json!({ "application/json": { "schema": reference(body) } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    match route.scope {
        Some(scope) => operation["description"] = format!("For keys with the scope `{scope}`.").into(),
        None => operation["security"] = json!([{}]),
    }
    operation
}

/// `get /v1/runs/{id}/events` is `get_runs_id_events`.
fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty() && *word != "v1");
    std::iter::once(route.method).chain(words).collect::<Vec<_>>().join("_")
}

/// What comes in answers that are no JSON.
fn said_in(media: &str) -> Value {
    match media {
        // Of each event.
        "text/event-stream" => json!({
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "event": { "type": "string" },
                "data": { "type": "string", "contentMediaType": "application/json", "contentSchema": reference("RunEvent") },
            },
        }),
        "application/octet-stream" => json!({ "type": "string", "format": "binary" }),
        _ => json!({ "type": "string" }),
    }
}

/// What a parameter can be.
fn values(kind: &str) -> Value {
    match kind {
        "id" => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
        "status" => reference("RecordStatus"),
        "time" => {
            json!({ "anyOf": [{ "type": "string", "format": "date" }, { "type": "string", "format": "date-time" }] })
        }
        kind => json!({ "type": kind }),
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn schemas() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = SchemaGenerator::new(settings);
    generator.subschema_for::<contract::RunRequest>();
    generator.subschema_for::<contract::Run>();
    generator.subschema_for::<contract::HttpProblem>();
    generator.subschema_for::<contract::ArtifactList>();
    generator.subschema_for::<contract::PolicyList>();
    generator.subschema_for::<contract::LeaseRequest>();
    generator.subschema_for::<contract::LeaseList>();
    generator.subschema_for::<contract::IssuedLeaseText>();
    generator.subschema_for::<contract::RevokedLease>();
    generator.subschema_for::<contract::ApprovalList>();
    generator.subschema_for::<contract::Decision>();
    generator.subschema_for::<contract::RecordList>();
    generator.subschema_for::<contract::Stats>();
    generator.subschema_for::<contract::LanguageList>();
    generator.subschema_for::<contract::SwitchRequest>();
    generator.subschema_for::<contract::SwitchList>();
    generator.subschema_for::<contract::Health>();
    generator.subschema_for::<contract::Version>();
    generator.subschema_for::<contract::RunEvent>();
    let mut schemas = generator.take_definitions(true);
    schemas.values_mut().for_each(plain_words);
    kinds_of_requests(&mut schemas);
    schemas
}

/// A choice of words, each of which says what it means, as one list of them: generators make a type of that, and of a choice of
/// constants one that takes the first alone.
fn plain_words(schema: &mut Value) {
    let words = |one: &Value| match (&one["const"], &one["enum"]) {
        (Value::String(word), _) => Some(vec![json!(word)]),
        (_, Value::Array(words)) => Some(words.clone()),
        _ => None,
    };
    let all = schema["oneOf"].as_array().and_then(|kinds| kinds.iter().map(words).collect::<Option<Vec<_>>>());
    let Some(all) = all else { return };
    let meaning = |one: &Value| Some(format!("`{}`: {}", one["const"].as_str()?, one["description"].as_str()?));
    let own = schema["description"].as_str().map(str::to_owned);
    let said = own.into_iter().chain(schema["oneOf"].as_array().into_iter().flatten().filter_map(meaning));
    let said: Vec<String> = said.collect();
    *schema = json!({ "type": "string", "enum": all.concat() });
    if !said.is_empty() {
        schema["description"] = said.join("\n").into();
    }
}

/// A program is one of three kinds, and fields that are for another are refused: said by a schema for each.
fn kinds_of_requests(schemas: &mut Map<String, Value>) {
    const KINDS: [(&str, &str, &str, &[&str]); 5] = [
        ("RunRequest", "RunOfCode", "code", &["files", "command", "entry", "checks"]),
        ("RunRequest", "RunOfFiles", "files", &["code", "command", "checks"]),
        ("RunRequest", "RunOfCommand", "command", &["code", "files", "language", "entry", "args", "state", "checks"]),
        ("VerifyRequest", "VerifyOfCode", "code", &["files", "entry"]),
        ("VerifyRequest", "VerifyOfFiles", "files", &["code"]),
    ];
    const NOT_VERIFIED: [&str; 6] = ["command", "args", "stdin", "lease", "collect", "state"];
    let Some(whole) = schemas.remove("RunRequest") else { return };
    for (request, name, program, others) in KINDS {
        let mut kind = whole.clone();
        let fields = kind["properties"].as_object_mut().into_iter();
        fields.for_each(|fields| {
            let is_verified = |field: &str| request == "RunRequest" || !NOT_VERIFIED.contains(&field);
            fields.retain(|field, _| is_verified(field) && !others.contains(&field.as_str()));
            fields.entry(program).and_modify(not_null);
        });
        kind["required"] = json!([program]);
        kind["description"] = format!("One program, as `{program}`.").into();
        schemas.insert(name.into(), kind);
        let one_of = &mut schemas.entry(request).or_insert_with(|| json!({ "oneOf": [] }))["oneOf"];
        one_of.as_array_mut().into_iter().for_each(|kinds| kinds.push(reference(name)));
    }
}

/// A field that may be left out, as one that may not.
fn not_null(schema: &mut Value) {
    let is_null = |kind: &Value| *kind == "null" || *kind == json!({ "type": "null" });
    for many in ["type", "anyOf"] {
        if let Some(kinds) = schema[many].as_array_mut() {
            kinds.retain(|kind| !is_null(kind));
            if let [only] = &kinds[..] {
                schema[many] = only.clone();
            }
        }
    }
    if let Some(only) = schema["anyOf"].as_object().cloned() {
        schema.as_object_mut().into_iter().for_each(|schema| {
            schema.remove("anyOf");
            schema.extend(only.clone());
        });
    }
    if let Some(object) = schema.as_object_mut() {
        object.retain(|name, value| name != "default" && !value.is_null());
    }
}

/// For people: each place with what it does, and the fields of what is sent and answered.
pub(crate) fn page() -> &'static str {
    static PAGE: LazyLock<String> = LazyLock::new(render);
    &PAGE
}

fn render() -> String {
    let mut text = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Hotcell</title></head><body>\n<h1>Hotcell</h1>\n\
         <p>Runs untrusted code in cells, and says with proof what happened. Everything here is in \
         <a href=\"/openapi.json\">/openapi.json</a> too. A key goes into <code>Authorization: Bearer KEY</code> or \
         <code>X-API-Key: KEY</code>. What is refused is told as <code>application/problem+json</code>, with the field that is wrong.</p>\n",
    );
    for route in ROUTES {
        let method = route.method.to_uppercase();
        text.push_str(&format!("<h2><code>{method} {}</code></h2>\n<p>{}.", route.path, route.summary));
        if let Some(scope) = route.scope {
            text.push_str(&format!(" Scope <code>{scope}</code>."));
        }
        text.push_str("</p>\n<ul>\n");
        for (name, _, what) in route.query {
            text.push_str(&format!("<li><code>?{name}=</code> {what}</li>\n"));
        }
        if let Some(body) = route.body {
            text.push_str(&format!("<li>body <a href=\"#{body}\">{body}</a></li>\n"));
        }
        for (status, what, schema) in route.answers {
            let of = schema.map(|name| format!(" <a href=\"#{name}\">{name}</a>")).unwrap_or_default();
            text.push_str(&format!("<li>{status} {what}{of}</li>\n"));
        }
        text.push_str("</ul>\n");
    }
    text.push_str("<h1>What is sent and answered</h1>\n");
    for (name, schema) in &schemas() {
        text.push_str(&format!("<h2 id=\"{name}\"><code>{name}</code></h2>\n<p>{}</p>\n<ul>\n", described(schema)));
        for kind in schema["oneOf"].as_array().into_iter().flatten() {
            let name = kind["$ref"].as_str().and_then(|place| place.rsplit('/').next()).unwrap_or_default();
            text.push_str(&format!("<li>one of <a href=\"#{name}\">{name}</a></li>\n"));
        }
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            text.push_str(&format!("<li><code>{field}</code> {}</li>\n", described(schema)));
        }
        text.push_str("</ul>\n");
    }
    text + "</body></html>\n"
}

fn described(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_that_is_checked_in_is_the_one_that_is_made() {
        let checked_in: Value = serde_json::from_str(DOCUMENT).expect("it is JSON");
        assert!(checked_in == openapi(), "it has changed: hotcell schema openapi > crates/server/openapi.json");
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
        let document = openapi();
        let text = document.to_string();
        for part in text.split("\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().expect("it ends");
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
        let mut names: Vec<String> = ROUTES.iter().map(operation_id).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ROUTES.len());
    }
}
