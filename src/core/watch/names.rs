//! The resources that a query names, to be watched together: `?path=/docs/1&path=/docs/2`.

use percent_encoding::percent_decode;

use crate::core::{
    http::request_target::split_query,
    refusal::{Code, Refusal},
};

/// The most resources of one request. A target of 8 KiB has room for about this number of names of usual length.
pub const NAMES_MAX: usize = 100;

/// Returns the targets that the `path` parameters of a query name. Nothing else reads this query, so only this spelling
/// counts.
pub fn names_in_query(target: &[u8]) -> impl Iterator<Item = Result<Vec<u8>, Refusal>> {
    let (_, query) = split_query(target);
    let parameters = query.unwrap_or_default().split(|&octet| octet == b'&');
    parameters.filter_map(|parameter| parameter.strip_prefix(b"path=")).map(name)
}

/// Reads a value as forms encode it.
fn name(value: &[u8]) -> Result<Vec<u8>, Refusal> {
    let spaced: Vec<u8> = value.iter().map(|&octet| if octet == b'+' { b' ' } else { octet }).collect();
    let name: Vec<u8> = percent_decode(&spaced).collect();
    let is_target = name.starts_with(b"/") && name.iter().all(u8::is_ascii_graphic) && !name.contains(&b'#');
    if is_target { Ok(name) } else { Err(no_name()) }
}

fn no_name() -> Refusal {
    let detail = "write each path as a request to the resource has it, percent-encoded once more for the query: a \
                  resource /a%20b is path=%2Fa%2520b";
    Refusal::new(Code::AmbiguousTarget, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(target: &str) -> Vec<Option<String>> {
        let read = |name: Result<Vec<u8>, Refusal>| name.ok().map(|name| String::from_utf8(name).expect("text"));
        names_in_query(target.as_bytes()).map(read).collect()
    }

    #[test]
    fn a_query_names_targets() {
        let named = names("/.watch?path=/docs/1&path=%2Fdocs%2Fa%2520b%3Fv%3D2&other=1&PATH=/x&p%61th=/y");
        assert_eq!(named, [Some("/docs/1".to_owned()), Some("/docs/a%20b?v=2".to_owned())]);
        assert_eq!(names("/.watch"), []);
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for value in ["", "docs/1", "/a+b", "/a%20b", "/a%0d%0ab", "/a%23b", "/%C3%A4", "http://x/docs/1"] {
            assert_eq!(names(&format!("/.watch?path={value}")), [None], "{value}");
        }
    }
}
