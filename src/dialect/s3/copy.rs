//! Copies of objects (`CopyObject`, `UploadPartCopy`). The server makes them; the proxy looks at their sources.

use http::{
    HeaderMap, HeaderName,
    header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE},
};

use crate::{
    core::{
        policy::TagSource,
        refusal::{Code, Refusal},
    },
    dialect::objects::CopySource,
};

/// The field that names the source of a copy, and the start of those that describe it further.
const COPY_SOURCE: &str = "x-amz-copy-source";

/// The conditions on the source, each with its form in a read of the source.
static OF_SOURCE: [(HeaderName, HeaderName); 4] = [
    (HeaderName::from_static("x-amz-copy-source-if-match"), IF_MATCH),
    (HeaderName::from_static("x-amz-copy-source-if-none-match"), IF_NONE_MATCH),
    (HeaderName::from_static("x-amz-copy-source-if-modified-since"), IF_MODIFIED_SINCE),
    (HeaderName::from_static("x-amz-copy-source-if-unmodified-since"), IF_UNMODIFIED_SINCE),
];

/// Returns the source of a copy, with the conditions that the proxy judges. A server that judges itself (`delegate`)
/// judges them too.
///
/// # Errors
///
/// The source or a condition is given twice, or is no text.
pub(super) fn source(headers: &HeaderMap, etag: &TagSource) -> Result<Option<CopySource>, Refusal> {
    let mut named = headers.get_all(COPY_SOURCE).iter();
    let Some(value) = named.next() else { return Ok(None) };
    let bad = || Refusal::new(Code::MalformedRequest, "send one x-amz-copy-source, and each condition on it once");
    let path = value.to_str().ok().filter(|_| named.next().is_none()).ok_or_else(bad)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut fields = Vec::new();
    for (name, standing_for) in &OF_SOURCE {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => {}
            (Some(_), Some(_)) => return Err(bad()),
            (Some(value), None) => fields.push((standing_for.clone(), value.clone())),
        }
    }
    if *etag == TagSource::Delegate {
        fields.clear();
    }
    Ok(Some(CopySource { url: [slash, path].concat(), fields, md5: None }))
}

/// True if the read of the source has this field of the copy.
pub fn is_of_source(name: &HeaderName) -> bool {
    let starts = |start| name.as_str().starts_with(start);
    !starts(COPY_SOURCE) && !starts("if-") && !starts("content-") && !starts("lease-") && *name != http::header::RANGE
}

/// The refusal of conditions on a source that no guarded route leads to.
pub fn not_judged() -> Refusal {
    let detail = "no guarded route leads to the source of this copy, and the server may ignore the conditions on it: send \
                  none";
    Refusal::new(Code::NotSupported, detail)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(fields: &[(&'static str, &'static str)], etag: &TagSource) -> Result<Option<CopySource>, Refusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        source(&headers, etag)
    }

    #[test]
    fn a_source_is_a_path_with_the_conditions_on_it() {
        let named = ("x-amz-copy-source", "bucket/a%20b?versionId=1");
        let condition = ("x-amz-copy-source-if-match", "\"a\"");
        let read_by = |etag| read(&[named, condition], etag).unwrap().unwrap();
        let CopySource { url, fields, .. } = read_by(&TagSource::Upstream);
        assert_eq!(url, "/bucket/a%20b?versionId=1");
        assert_eq!(fields, [(IF_MATCH, HeaderValue::from_static("\"a\""))]);
        assert_eq!(read_by(&TagSource::Delegate).fields, []);
        let rooted = read(&[("x-amz-copy-source", "/bucket/a")], &TagSource::Upstream).unwrap().unwrap();
        assert_eq!(rooted.url, "/bucket/a");
        assert_eq!(read(&[condition], &TagSource::Upstream), Ok(None), "no copy");
        for twice in [[named, named], [named, named]].iter().chain([&[condition, condition]]) {
            assert!(read(&[&twice[..], &[named]].concat(), &TagSource::Upstream).is_err(), "{twice:?}");
        }
    }
}
