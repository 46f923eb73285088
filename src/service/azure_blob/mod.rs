//! The operations of Azure's blobs beside the requests of plain HTTP: uploads in blocks, copies, lists, and parts of
//! content that the upstream sends whole.

pub(crate) mod blocks;
pub(crate) mod copied_content;
pub(crate) mod copies;
pub(crate) mod folders;
pub(crate) mod listed;
pub(crate) mod parts;
