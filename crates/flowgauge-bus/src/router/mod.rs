//! Requests about live flows.

mod answers;
mod config;
mod hub;
mod request;
mod requester;
#[allow(clippy::module_inception, reason = "the type that the folder is named after")]
mod router;
mod stats;
mod tour;

pub use answers::Answers;
pub use config::RouterConfig;
pub use request::Request;
pub use requester::Requester;
pub use router::Router;
pub use stats::RouterStats;
