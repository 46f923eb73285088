//! The azure-table dialect: the entities of Azure Table Storage in front of a backend that stores them as JSON and
//! checks no tag (`docs/azure.md`).
//!
//! The operations are a closed list: an entity has one spelling, and so one key, and a request that could change
//! several entities reaches no backend. Leases are those of the native dialect, since tables of Azure have none.

mod error;
mod grammar;
mod operation;

pub use error::document;
pub use grammar::AzureTable;
pub use operation::TableOperation;
