//! What was learned of resources, and who may know it.

pub(crate) mod collections;
pub(crate) mod evidence;
pub(crate) mod issued_tags;
pub(crate) mod principal;
pub(crate) mod responses;
pub(crate) mod selection;
pub(crate) mod spelling;
