//! The data of services beside the content of a resource: its description, its folder, and the parts of an upload.

pub mod blocks;
pub mod description;
pub mod folders;
pub mod metadata;
