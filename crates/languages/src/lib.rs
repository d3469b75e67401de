//! What each language is, as data: one TOML file each, and where its toolchain is on this host.
//!
//!   Catalogue   the files, built in and the user's own, by name and by extension
//!   find        the real program behind a name: never a shim
//!   plan        sources + language -> a compile step (for some) and a run step
//!
//! Nothing is started here. What a step says is carried out in cells, by somebody else.

mod catalogue;
mod find;
mod plan;
mod sources;

pub use catalogue::{Catalogue, CatalogueError, Language, Prepare, Step, Tool, Way};
pub use find::{Found, Host};
pub use plan::{PlanError, Planned, Preparation, Ready, Tools, plan, tools};
pub use sources::{MAX_SOURCES, Sources};
