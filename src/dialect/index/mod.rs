//! How the members of a collection are asked for, and what the backend answers (`index`).
//!
//! # Design
//!
//! *Why does a reader tell names, and no paths?* Whatever an index says, a name can only be that of a file in the folder of
//! the members ([`MembersFolder::member`](crate::core::route::MembersFolder::member)). So no index leads to another
//! resource.

use http::{HeaderName, HeaderValue, Method, header};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{
    core::{
        http::readings::collection::TYPE_OF_RESOURCE,
        members::{
            index_form::IndexForm,
            index_page::{IndexPage, PageStart},
        },
        route::MembersFolder,
    },
    dialect::webdav::DEPTH,
};

mod json;
mod s3;
mod webdav;

/// The longest document that is read, in bytes. It shows about 100,000 files of nginx, and 30,000 of `WebDAV`.
pub const INDEX_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A question for the members of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexQuestion {
    /// The method.
    pub method: Method,
    /// The target at the upstream.
    pub target: Vec<u8>,
    /// The fields that belong to it.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// The content.
    pub content: &'static str,
}

/// An index that is none in its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index of the collection is no document in the form that `index` names")]
pub struct MalformedIndex;

/// Returns the question for a page of the members in a folder of the upstream. `collection` is the target at the upstream
/// of the collection itself, and `start` is where the page begins.
pub fn question(
    form: &IndexForm,
    (folder, collection): (&MembersFolder, &[u8]),
    start: Option<&PageStart>,
) -> IndexQuestion {
    let accept = |media_type| vec![(header::ACCEPT, HeaderValue::from_static(media_type))];
    let get = |target: Vec<u8>, media_type| IndexQuestion {
        method: Method::GET,
        target,
        fields: accept(media_type),
        content: "",
    };
    match form {
        IndexForm::Json(_) => get(collection.to_vec(), "application/json"),
        IndexForm::NginxJson => get(folder.path().into(), "application/json"),
        IndexForm::S3 => get(s3::target(folder.path(), start), "application/xml"),
        IndexForm::WebDav => {
            let mut fields = accept("application/xml");
            fields.push((DEPTH, HeaderValue::from_static("1")));
            fields.push((header::CONTENT_TYPE, HeaderValue::from_static("application/xml")));
            let method = Method::from_bytes(b"PROPFIND").unwrap_or(Method::GET);
            IndexQuestion { method, target: folder.path().into(), fields, content: TYPE_OF_RESOURCE }
        }
    }
}

/// Reads the page that begins there from the answer of the backend.
///
/// # Errors
///
/// The answer is no document in this form.
pub fn read(
    form: &IndexForm,
    document: &[u8],
    folder: &MembersFolder,
    start: Option<&PageStart>,
) -> Result<IndexPage, MalformedIndex> {
    let mut page = IndexPage::from(start);
    let mut add = |file: String| {
        if folder.member(&file).is_some() {
            page.add(file);
        }
    };
    let continuation = match form {
        IndexForm::Json(pointer) => {
            json::read(document, pointer.tokens(), &mut |name| add(folder.file_of(&name)))?;
            None
        }
        IndexForm::NginxJson => {
            json::read_nginx(document, &mut add)?;
            None
        }
        IndexForm::S3 => s3::read(document, folder.path(), &mut add)?,
        IndexForm::WebDav => {
            webdav::read(document, folder, &mut add)?;
            None
        }
    };
    page.next = continuation.map(PageStart::Continuation).or(page.next);
    Ok(page)
}

/// Encodes a text as a value of a query.
fn in_query(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Decodes a text of a document that is encoded like the value of a form.
fn from_form(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests;
