//! The expectation of a client that waits for a 100 before it sends its content (RFC 9110 section 10.1.1).
//!
//! # Design
//!
//! *Why does a request without content get a 100, although the RFC lets a server omit it?* Older releases of botocore
//! keep the status line of an answer that came in place of a 100. They take it for that of the next request on the same
//! connection, and wait for an answer until they time out. A connection therefore stays only if its client got the 100
//! or did not wait for one.

use http::{HeaderMap, Version, header};

/// True if the sender of this request expects a 100 before it sends its content.
pub fn expects_continue(version: Version, fields: &HeaderMap) -> bool {
    let is_continue = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    version >= Version::HTTP_11 && fields.get_all(header::EXPECT).iter().any(is_continue)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_expectation_is_one_word_in_any_case_and_newer_than_http_1_0() {
        for (version, lines, expected) in [
            (Version::HTTP_11, &["100-continue"][..], true),
            (Version::HTTP_11, &["100-Continue"], true),
            (Version::HTTP_2, &["100-continue"], true),
            (Version::HTTP_11, &["other", "100-continue"], true),
            (Version::HTTP_10, &["100-continue"], false),
            (Version::HTTP_11, &["other"], false),
            (Version::HTTP_11, &[""], false),
            (Version::HTTP_11, &[], false),
        ] {
            let mut fields = HeaderMap::new();
            for line in lines {
                fields.append(header::EXPECT, HeaderValue::from_static(line));
            }
            assert_eq!(expects_continue(version, &fields), expected, "{version:?} {lines:?}");
        }
    }
}
