//! Operations: starts, reloads and ends, health and load, and everything that an operator sees and does.

mod admin_access;
mod admin_command;
mod admin_health;
mod admin_leases;
mod admin_watch;
pub mod balancing;
mod collected;
mod console;
mod draining;
pub mod example_files;
mod explained;
mod few_threads;
mod file_size_limit;
mod health_command;
mod lifecycle;
mod observe;
mod reload;
mod reload_files;
mod reload_names;
mod scraped;
mod server_health;
mod slow_saves;
mod supervisor;
mod why;
mod worker_pool;
