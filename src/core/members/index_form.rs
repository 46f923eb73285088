//! The form in which a backend lists the members of a collection (`index`).

use crate::core::tags::json::JsonPointer;

/// The form of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexForm {
    /// The multistatus that answers PROPFIND (RFC 4918).
    WebDav,
    /// The document of nginx (`autoindex_format json`).
    NginxJson,
    /// The list of a bucket of Amazon S3 (`ListObjectsV2`).
    S3,
    /// Any JSON document, with the place of the names in it. `*` stands for each element of a list.
    Json(JsonPointer),
}
