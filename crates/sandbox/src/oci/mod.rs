//! Cells that an OCI runtime makes.
//!
//! The launcher clones a porter instead of a cell. In a mount namespace of its own the porter lays out the cell's root
//! with the very steps that a cell takes, writes a bundle beside it, and calls the runtime. All of that is in a tmpfs that
//! nobody else sees and that is gone with the porter.
//!
//!   launcher -> porter -> runtime -> init of the container -> program
//!
//! Where the container shares the host's kernel, its init is this program again ([`inside`]): from the moment at which
//! it is told what to run it takes the same last steps as a cell's init, with the same filter, and tells the supervisor
//! the same things. So the evidence is the same. A second filter, by the runtime, would hide what ours witnesses: the
//! kernel takes the stricter answer and tells nobody.
//!
//! A runtime with a kernel of its own (gVisor) lets nothing of ours in: there the porter tells what it sees from outside.
//!
//! A container of an engine's (Docker, Podman) is there before the porter is: its init has called, and builds a whole cell
//! within ([`shell`]) from what the porter hands in, before it goes on as the init of any other container.

mod bundle;
mod guest;
pub(crate) mod inside;
mod layout;
mod log;
mod porter;
mod shell;
mod visit;

pub(crate) use porter::live;
