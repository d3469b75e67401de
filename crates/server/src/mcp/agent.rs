//! What an agent can ask of us.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::watch;

use super::call::call;
use super::open::Listed;
use super::tools::{Kind, list};
use crate::auth::Caller;
use crate::problem::shown;
use crate::service::Service;
use crate::share::Share;

const INSTRUCTIONS: &str = "Runs untrusted code in a sealed cell on this machine and says with proof what happened. Nothing \
    that a program does lasts beyond its run, and it can reach no network and no file unless the policy says so. A program \
    that fails is a result with a verdict; `isError` means that it did not run.";

/// One client, or over HTTP one request of a client's.
pub(super) struct Agent {
    pub(super) service: Arc<Service>,
    pub(super) caller: Caller,
    /// True once nobody waits for answers any more, or the client has taken back what it asked for.
    pub(super) gone: watch::Receiver<bool>,
    pub(super) held: Arc<Held>,
}

/// What is held for one request over HTTP.
#[derive(Default)]
pub(super) struct Held {
    /// Where it can be taken back.
    pub(super) _listed: Option<Listed>,
    pub(super) size: usize,
    /// Its share of what all bodies may have, until it has become a job.
    pub(super) counted: Mutex<Option<Share>>,
}

impl ServerHandler for Agent {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("hotcell", env!("CARGO_PKG_VERSION"));
        info.with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(list().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        list().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(kind) = Kind::named(&asked.name) else {
            let all = Kind::ALL.map(Kind::name).join(", ");
            let detail = format!("`{}` is no tool here: use one of {all}", shown(&asked.name));
            return Err(ErrorData::invalid_params(detail, None));
        };
        Ok(call(self, kind, asked.arguments.unwrap_or_default(), &context).await.into())
    }

    /// What the protocol has no place for, or what is a call of ours in another shape than it must have.
    async fn on_custom_request(
        &self,
        asked: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if asked.method == "tools/call" {
            let detail = "a call has a `name`, which is text, and `arguments`, which is an object";
            return Err(ErrorData::invalid_params(detail, None));
        }
        let detail = format!("`{}` is not known here", shown(&asked.method));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, detail, None))
    }

    /// The log has a line for each run, and none for each client.
    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {}
}
