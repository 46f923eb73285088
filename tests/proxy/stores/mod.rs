//! Stores: leases on disk, proxies that share a store, and a store that fails.

mod disk_crashes;
mod disk_restarts;
mod held_leases;
mod killed_workers;
mod lost_changes;
mod retries;
mod shared_azure_queue;
mod shared_queue;
pub mod shared_store;
mod store_outage;
mod watched;
mod worker_locks;
