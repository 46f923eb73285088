//! One contract, and every store against it, those outside the process on their real servers.

mod contract;
mod memory;
