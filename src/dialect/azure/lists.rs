//! The part of the grammar for lists.

use super::{containers, list, query::Query};
use crate::{
    core::{http::request_target::split_query, objects::folders::Page},
    dialect::{ShownDocument, objects::ListGrammar, xml},
};

/// Lists of Azure Blob Storage: of blobs, and of containers.
#[derive(Debug)]
pub(super) struct AzureLists;

impl ListGrammar for AzureLists {
    fn page(&self, target: &[u8], page: &Page) -> ShownDocument {
        let (path, query) = split_query(target);
        let query = Query::read(query.unwrap_or_default()).unwrap_or_default();
        let show = if query.container { list::page } else { containers::page };
        ShownDocument { content_type: xml::CONTENT_TYPE, body: show(path, &query, page) }
    }

    fn folder_query(&self) -> &'static [u8] {
        b"restype=container"
    }
}
