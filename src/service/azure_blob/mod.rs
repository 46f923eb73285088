//! What Azure's blobs have besides the requests of plain HTTP: uploads in blocks, lists, and parts of what the upstream
//! sends whole.

pub(crate) mod blocks;
pub(crate) mod folders;
pub(crate) mod listed;
pub(crate) mod parts;
