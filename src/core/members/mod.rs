//! The members of a collection: how its index shows them, and which client takes which of them next.

pub mod index_form;
pub mod index_page;
pub mod line;
