//! The entries of Via, in which each proxy names itself (RFC 9110 section 7.6.3), and requests that go round.
//!
//! # Design
//!
//! *How does a process know its own entry?* By a comment of its own after the name that all of them share. A request
//! with that comment has been here before.
//!
//! *What if a proxy on the way removes the comments?* It may. Then a request that several processes have received goes
//! round too: no service has that number in a row.
//!
//! *Why is the first return refused?* A guarded write holds the claim of its resource while it is forwarded. When it
//! comes back it would wait for itself.

use http::{HeaderMap, header};

/// The name under which this program stands in `Via` and `Proxy-Status`.
pub const PSEUDONYM: &str = "ifmatch";

/// The number of processes of this program that a request may have passed.
const PASSES_MAX: usize = 8;

/// True if a request has been here before. `own` is the comment of this process, with its parentheses.
pub fn goes_round(fields: &HeaderMap, own: &str) -> bool {
    let mut passes = 0;
    for entry in fields.get_all(header::VIA).iter().flat_map(|line| entries(line.as_bytes())) {
        let Some(comment) = comment_after(entry, PSEUDONYM) else { continue };
        passes += 1;
        if comment == own.as_bytes() || passes > PASSES_MAX {
            return true;
        }
    }
    false
}

/// Returns the entries of a line. A comma within a comment separates nothing.
fn entries(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut depth, mut is_escaped) = (0_usize, false);
    line.split(move |octet| {
        let is_plain = !std::mem::take(&mut is_escaped);
        match octet {
            b'\\' if depth > 0 => is_escaped = is_plain,
            b'(' if is_plain => depth += 1,
            b')' if is_plain => depth = depth.saturating_sub(1),
            b',' => return depth == 0,
            _ => {}
        }
        false
    })
}

/// Returns what follows this name in an entry: a comment, or nothing. `None` if the entry has another name.
fn comment_after<'a>(entry: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (_, rest) = cut(entry.trim_ascii());
    let (found, comment) = cut(rest);
    (found == name.as_bytes()).then_some(comment)
}

/// Cuts a text after its first word.
fn cut(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
    (word, rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const OWN: &str = "(own)";

    fn is_back(lines: &[&str]) -> bool {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(header::VIA, HeaderValue::from_str(line).expect("a value"));
        }
        goes_round(&fields, OWN)
    }

    #[test]
    fn a_request_with_the_entry_of_this_process_has_been_here() {
        for (lines, expected) in [
            (&[][..], false),
            (&["1.1 ifmatch (own)"], true),
            (&["1.1 ifmatch"], false),
            (&["1.1 ifmatch (other)"], false),
            (&["1.1 a, 2 ifmatch (own), 1.1 b (c)"], true),
            (&["1.0 a", "1.1 ifmatch (other),1.1 ifmatch (own)"], true),
            (&["1.1 a (b, (c), \\), d), 1.1 ifmatch (own)"], true),
            (&["HTTP/1.1  ifmatch\t (own) "], true),
            (&["1.1 a (1.1 ifmatch (own))"], false),
            (&["1.1 a (b, 1.1 ifmatch (own), c)"], false),
            (&["1.1 notifmatch (own)"], false),
            (&["1.1 other (own)"], false),
            (&["1.1 ifmatch (own) x"], false),
            (&["ifmatch (own)"], false),
            (&["", ",", "1.1", "(", ")", "1.1 a ("], false),
        ] {
            assert_eq!(is_back(lines), expected, "{lines:?}");
        }
    }

    /// Proxies may remove comments.
    #[test]
    fn a_request_that_many_of_them_have_passed_goes_round() {
        let passed = |count| vec!["1.1 ifmatch"; count];
        for joined in [false, true] {
            let is_back = |count| if joined { is_back(&[&passed(count).join(", ")]) } else { is_back(&passed(count)) };
            assert!(!is_back(PASSES_MAX) && is_back(PASSES_MAX + 1), "{joined}");
        }
        assert!(!is_back(&vec!["1.1 another"; 100]), "other proxies may be many");
    }
}
