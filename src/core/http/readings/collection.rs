//! The signs that a resource is a collection, so that its removal would also remove the resources in it.
//!
//! # Design
//!
//! *Why is a redirect alone no sign?* A file server redirects a folder to its name with a slash, and so do frameworks
//! whose resources all end with one. Only the first answers that name with a page, or not at all.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::core::http::request_target::{KeptInNames, normalize, split_query};

/// The field in which a `WebDAV` server tells what it supports (RFC 4918 section 10.1).
const DAV: HeaderName = HeaderName::from_static("dav");

/// The content of a PROPFIND that asks for the type of a resource alone.
pub const TYPE_OF_RESOURCE: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<propfind xmlns=\"DAV:\"><prop><resourcetype/></prop></propfind>\n";

/// True if the fields of an answer to OPTIONS tell that the resource is one of `WebDAV`.
pub fn speaks_webdav(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ALLOW).into_iter().chain(headers.get_all("public"));
    let mut methods = lines.flat_map(|line| line.as_bytes().split(|&octet| octet == b','));
    headers.contains_key(DAV) || methods.any(|method| method.trim_ascii().eq_ignore_ascii_case(b"PROPFIND"))
}

/// True if the content of a 207 that answers [`TYPE_OF_RESOURCE`] shows a collection; `None` if it shows no type.
pub fn is_collection(multistatus: &[u8]) -> Option<bool> {
    let text = String::from_utf8_lossy(multistatus);
    let mut tags = text.split('<').skip(1).filter_map(local_name);
    tags.by_ref().find(|name| *name == "resourcetype")?;
    Some(tags.take_while(|name| *name != "/resourcetype").any(|name| name == "collection"))
}

/// Returns the path that a target names a folder by, in normal form without the slash at its end: nothing for the root.
/// `None` if the target ends with no slash and no dot segment.
pub fn named_folder(target: &[u8]) -> Option<Vec<u8>> {
    let (path, _) = split_query(target);
    let normal = normalize(path, KeptInNames::ALL).ok()?;
    let is_named = path.ends_with(b"/") || path.ends_with(b"/.") || path.ends_with(b"/..");
    Some(normal.as_str().trim_end_matches('/')).filter(|_| is_named).map(Into::into)
}

/// True if the answer to OPTIONS is that of a server without `WebDAV`. An absent resource, or a path that the server
/// does not take, says nothing about the server.
pub fn denies_webdav(status: StatusCode, headers: &HeaderMap) -> bool {
    !speaks_webdav(headers) && (status.is_success() || matches!(status.as_u16(), 405 | 501))
}

/// True if an answer leads from a path to the same path with a slash.
pub fn leads_to_slash(status: StatusCode, headers: &HeaderMap, without_slash: &[u8]) -> bool {
    let location = headers.get(header::LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
    let (path, _) = split_query(location);
    status.is_redirection() && path.strip_suffix(b"/").is_some_and(|path| path.ends_with(without_slash))
}

/// True if an answer to a GET of a path with a slash could be that of a folder: a page, or no content.
pub fn may_be_folder(status: StatusCode, headers: &HeaderMap) -> bool {
    let content = headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
    let is_page = content.is_none_or(|content| {
        [&b"text/html"[..], b"application/xhtml", b"httpd/unix-directory"].iter().any(|page| content.starts_with(page))
    });
    match status.as_u16() {
        404 | 410 => false,
        200..300 => is_page,
        _ => true,
    }
}

/// The name in a tag without the prefix of its namespace, with the slash of an end tag. `None` for a comment.
fn local_name(tag: &str) -> Option<&str> {
    let name = tag.split(|octet: char| octet.is_ascii_whitespace() || octet == '>').next()?;
    let is_end = name.starts_with('/');
    let bare = if is_end { name } else { name.trim_end_matches('/') };
    match bare.rsplit_once(':') {
        Some((_, local)) if !is_end => Some(local),
        Some((_, "resourcetype")) => Some("/resourcetype"),
        _ => Some(bare).filter(|bare| !bare.starts_with(['!', '?'])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    #[test]
    fn a_server_of_webdav_says_so() {
        for (answer, speaks) in [
            (&[("dav", "1,2")][..], true),
            (&[("allow", "GET, HEAD, propfind , PUT")], true),
            (&[("public", "PROPFIND")], true),
            (&[("allow", "GET, HEAD, PUT, DELETE, PROPFINDER")], false),
            (&[], false),
        ] {
            assert_eq!(speaks_webdav(&fields(answer)), speaks, "{answer:?}");
        }
    }

    /// Rule 18: the spellings of `WsgiDAV`, Apache, `SabreDAV` and Go.
    #[test]
    fn the_type_of_a_resource_is_read() {
        for (content, is_folder) in [
            ("<ns0:prop><ns0:resourcetype><ns0:collection /></ns0:resourcetype></ns0:prop>", Some(true)),
            ("<D:prop>\n<lp1:resourcetype><D:collection/></lp1:resourcetype>\n</D:prop>", Some(true)),
            ("<d:resourcetype><d:collection/><cal:calendar/></d:resourcetype>", Some(true)),
            ("<resourcetype><collection xmlns=\"DAV:\"></collection></resourcetype>", Some(true)),
            ("<D:resourcetype/>", Some(false)),
            ("<D:resourcetype></D:resourcetype><D:collection/>", Some(false)),
            ("<resourcetype /><displayname>collection</displayname>", Some(false)),
            ("<D:resourcetype><!-- <D:collection/> --></D:resourcetype>", Some(true)),
            ("<D:multistatus/>", None),
            ("", None),
        ] {
            assert_eq!(is_collection(content.as_bytes()), is_folder, "{content}");
        }
    }

    #[test]
    fn a_folder_is_told_by_a_redirect_and_a_page() {
        let moved = StatusCode::MOVED_PERMANENTLY;
        for (status, location, leads) in [
            (moved, "/d/folder/", true),
            (moved, "http://backend/d/folder/", true),
            (StatusCode::TEMPORARY_REDIRECT, "/d/folder/?a=1", true),
            (moved, "/d/other/", false),
            (moved, "/login", false),
            (StatusCode::OK, "/d/folder/", false),
        ] {
            assert_eq!(leads_to_slash(status, &fields(&[("location", location)]), b"/d/folder"), leads, "{location}");
        }
        let json = fields(&[("content-type", "application/json")]);
        let page = fields(&[("content-type", "Text/HTML; charset=utf-8")]);
        for (status, headers, may_be) in [
            (StatusCode::OK, &json, false),
            (StatusCode::OK, &page, true),
            (StatusCode::FORBIDDEN, &page, true),
            (StatusCode::FORBIDDEN, &json, true),
            (StatusCode::NOT_FOUND, &page, false),
            (StatusCode::OK, &HeaderMap::new(), true),
        ] {
            assert_eq!(may_be_folder(status, headers), may_be, "{status} {headers:?}");
        }
    }

    /// Rule 18: a server that resolves a path reads all of these as the folder.
    #[test]
    fn a_folder_is_named_by_a_slash_or_a_dot_segment() {
        for target in ["/d/folder/", "/d/folder/?a=1", "/d/folder//", "/d/folder/.", "/d/folder/x/.."] {
            assert_eq!(named_folder(target.as_bytes()).as_deref(), Some(&b"/d/folder"[..]), "{target}");
        }
        for target in ["/", "/d/.."] {
            assert_eq!(named_folder(target.as_bytes()).as_deref(), Some(&b""[..]), "{target}");
        }
        for target in ["/d/folder", "//", "/d/x/../folder"] {
            assert_eq!(named_folder(target.as_bytes()), None, "{target}");
        }
    }

    #[test]
    fn only_an_answer_about_the_server_denies_webdav() {
        for (status, fields_, denies) in [
            (200, &[][..], true),
            (204, &[("allow", "GET, DELETE")], true),
            (405, &[], true),
            (501, &[], true),
            (200, &[("dav", "1")], false),
            (404, &[], false),
            (400, &[], false),
            (301, &[], false),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(denies_webdav(status, &fields(fields_)), denies, "{status} {fields_:?}");
        }
    }
}
