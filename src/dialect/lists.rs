//! Lists of resources, for dialects that have them.

use super::ShownDocument;
use crate::core::objects::folders::Page;

/// The part of a grammar for lists.
pub trait ListGrammar: Sync {
    /// Returns the document that shows a page, for a request with this target.
    fn page(&self, target: &[u8], page: &Page) -> ShownDocument;

    /// Returns the part of the query by which a read of a folder says that it means the folder.
    fn folder_query(&self) -> &'static [u8];
}
