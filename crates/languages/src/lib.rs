//! What each language is, as data: one TOML file each, and where its toolchain is on this host.
//!
//!   Catalogue   the files, built in and the user's own, by name and by extension
//!   find        the real program behind a name: never a shim
//!   plan        sources + language -> a compile step (for some) and a run step
//!
//! Nothing is started here. What a step says is carried out in cells, by somebody else.

mod catalogue;
mod check;
mod find;
mod glob;
mod plan;
mod sources;

pub use catalogue::{Catalogue, CatalogueError, Check, Language, Prepare, Results, ResultsFormat, Step, Tool, Way};
pub use check::{PlannedCheck, ReadyCheck, checks};
pub use find::{Found, Host, in_cell};
pub use glob::matches;
pub use plan::{PlanError, Planned, Preparation, Ready, Tools, identity, plan, preparation, tools};
pub use sources::{MAX_SOURCES, Sources};
