//! The tools: what each is called, takes and gives, and how its arguments become a request.

use std::sync::{Arc, LazyLock};

use hotcell_contract::{
    Bytes, LanguageList, ListLanguages, LowerLimits, RunCode, RunCommand, RunRequest, RunSummary, VerifyCode,
};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};

use serde_json::{Value, json};

use crate::http::body::{Fields, understand_value};
use crate::problem::Problem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    RunCode,
    RunCommand,
    VerifyCode,
    ListLanguages,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::RunCode, Kind::RunCommand, Kind::VerifyCode, Kind::ListLanguages];

    pub(super) fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::RunCode => "run_code",
            Kind::RunCommand => "run_command",
            Kind::VerifyCode => "verify_code",
            Kind::ListLanguages => "list_languages",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Kind::RunCode => {
                "Run a program from its source in a sealed cell: compiled if need be, without network, under limits of time, \
                 memory and processes. Gives the verdict, the exit code and what it printed. Nothing is kept between two runs."
            }
            Kind::RunCommand => {
                "Run a command of this machine's in a sealed cell, without network and with nothing of the machine's but its \
                 programs. For a pipeline use [\"sh\", \"-c\", \"...\"]. Nothing is kept between two runs."
            }
            Kind::VerifyCode => {
                "Check sources and the unit tests among them in sealed cells: does it parse, compile and lint (L0), do its tests \
                 pass (L1), does a command of yours (L2). Gives the highest tier that was passed, and each check."
            }
            Kind::ListLanguages => {
                "List the languages that can be run here, their versions, and what is missing for the others."
            }
        }
    }

    fn tool(self) -> Tool {
        let (input, output) = match self {
            Kind::RunCode => (schema::<RunCode>(false), schema::<RunSummary>(true)),
            Kind::RunCommand => (schema::<RunCommand>(false), schema::<RunSummary>(true)),
            Kind::VerifyCode => (schema::<VerifyCode>(false), schema::<RunSummary>(true)),
            Kind::ListLanguages => (schema::<ListLanguages>(false), schema::<LanguageList>(true)),
        };
        // What lasts of a run is its record.
        let hints = ToolAnnotations::new().read_only(self == Kind::ListLanguages).destructive(false).open_world(false);
        let mut tool = Tool::new(self.name(), self.description(), input);
        (tool.output_schema, tool.annotations) = (Some(output), Some(hints));
        tool
    }
}

/// As clients are told of them.
pub(super) fn list() -> &'static [Tool] {
    static LIST: LazyLock<Vec<Tool>> = LazyLock::new(|| Kind::ALL.map(Kind::tool).to_vec());
    &LIST
}

/// The same as a document, as it is checked in.
pub fn tools() -> Value {
    json!({ "tools": list() })
}

/// Whole in itself: not every client follows references. And short: a model reads it at the beginning of every conversation.
fn schema<T: JsonSchema>(is_answer: bool) -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = if is_answer { settings.for_serialize() } else { settings.for_deserialize() };
    let short = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("default");
        schema.remove("format");
    });
    let schema = settings.with_transform(short).into_generator().into_root_schema_for::<T>();
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

impl Fields for RunCode {
    const LISTS: &'static [&'static str] = &["args"];
}

impl Fields for RunCommand {
    const LISTS: &'static [&'static str] = &["command"];
}

impl Fields for VerifyCode {
    const LISTS: &'static [&'static str] = &[];
}

impl Fields for ListLanguages {
    const LISTS: &'static [&'static str] = &[];
}

/// What is asked, or nothing where no run is.
pub(super) fn request(kind: Kind, arguments: JsonObject) -> Result<Option<RunRequest>, Problem> {
    let text = |text: String| Bytes::Text(text);
    let arguments = Value::Object(arguments);
    let request = match kind {
        Kind::RunCode => {
            let asked: RunCode = understand_value(arguments)?;
            RunRequest {
                code: asked.code.map(text),
                files: asked.files,
                language: asked.language,
                entry: asked.entry,
                args: asked.args,
                stdin: asked.stdin.map(text),
                environment: asked.environment,
                limits: limits(asked.limits, asked.timeout_ms)?,
                lease: asked.lease,
                ..RunRequest::default()
            }
        }
        Kind::RunCommand => {
            let asked: RunCommand = understand_value(arguments)?;
            RunRequest {
                command: Some(asked.command),
                stdin: asked.stdin.map(text),
                environment: asked.environment,
                limits: limits(asked.limits, asked.timeout_ms)?,
                lease: asked.lease,
                ..RunRequest::default()
            }
        }
        Kind::VerifyCode => {
            let asked: VerifyCode = understand_value(arguments)?;
            RunRequest {
                code: asked.code.map(text),
                files: asked.files,
                language: asked.language,
                entry: asked.entry,
                environment: asked.environment,
                limits: limits(asked.limits, asked.timeout_ms)?,
                checks: Some(asked.checks),
                ..RunRequest::default()
            }
        }
        Kind::ListLanguages => {
            let ListLanguages {} = understand_value(arguments)?;
            return Ok(None);
        }
    };
    Ok(Some(request))
}

fn limits(limits: LowerLimits, timeout_ms: Option<u64>) -> Result<LowerLimits, Problem> {
    if timeout_ms.is_some() && limits.wall_ms.is_some() {
        let detail = "`timeout_ms` and `limits.wall_ms` are the same: give one of them";
        return Err(Problem::field("timeout_ms", detail));
    }
    Ok(LowerLimits { wall_ms: timeout_ms.or(limits.wall_ms), ..limits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_that_are_checked_in_are_those_that_are_made() {
        let checked_in: Value = serde_json::from_str(include_str!("../../mcp.json")).expect("it is JSON");
        assert!(checked_in == tools(), "they have changed: hotcell schema mcp > crates/server/mcp.json");
    }

    #[test]
    fn a_schema_is_whole_in_itself() {
        assert!(!tools().to_string().contains("$ref"));
    }
}
