//! Whether two routes can make one key.

use super::{
    super::{
        http::request_target::is_segment_character,
        route::{HostPattern, PathPattern},
    },
    KeyTemplate,
    template::TemplatePart,
};

/// The parts of a route that determine its keys.
#[derive(Clone, Copy, Debug)]
pub struct KeySource<'a> {
    /// The template of the keys.
    pub template: &'a KeyTemplate,
    /// The hosts that the route matches.
    pub host: &'a HostPattern,
    /// The paths that the route matches, from which captures are taken.
    pub path: &'a PathPattern,
    /// The paths that the upstream receives, from which keys are made.
    pub upstream_path: &'a PathPattern,
}

/// The content of one place in a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// This octet.
    Octet(u8),
    /// Any text, perhaps empty, of segment characters and these others.
    Any { others: &'static str },
}

impl Piece {
    fn holds(self, octet: u8) -> bool {
        match self {
            Self::Octet(own) => own == octet,
            Self::Any { others } => is_segment_character(octet) || others.bytes().any(|other| other == octet),
        }
    }
}

impl KeySource<'_> {
    /// True if a key that this route makes can be one that the other makes, for the same upstream. A value counts as
    /// any text that it can hold, so the answer may be yes for two routes that never meet in fact.
    pub fn can_meet(&self, other: &Self) -> bool {
        let (one, other) = (self.pieces(), other.pieces());
        // From the ends on: whether what follows two places can be the same text.
        let mut next = meet_at_the_end(&other);
        for piece in one.iter().rev() {
            let mut row = vec![false; other.len() + 1];
            let is_any = matches!(piece, Piece::Any { .. });
            for place in (0..=other.len()).rev() {
                let after_both = next.get(place + 1).copied().unwrap_or_default();
                let after_one = next.get(place).copied().unwrap_or_default();
                let after_other = row.get(place + 1).copied().unwrap_or_default();
                let meets = match other.get(place) {
                    None => is_any && after_one,
                    Some(any @ Piece::Any { .. }) => {
                        after_other
                            || (is_any || matches!(piece, Piece::Octet(octet) if any.holds(*octet))) && after_one
                    }
                    Some(Piece::Octet(octet)) => match piece {
                        Piece::Octet(own) => own == octet && after_both,
                        Piece::Any { .. } => after_one || piece.holds(*octet) && after_other,
                    },
                };
                if let Some(cell) = row.get_mut(place) {
                    *cell = meets;
                }
            }
            next = row;
        }
        next.first().copied().unwrap_or_default()
    }

    fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for part in &self.template.parts {
            match part {
                TemplatePart::Literal(text) => append(&mut pieces, text),
                TemplatePart::Host => match self.host {
                    HostPattern::Exact(host) => append(&mut pieces, host),
                    HostPattern::Any | HostPattern::Suffix(_) => pieces.push(Piece::Any { others: "" }),
                },
                TemplatePart::Path => append_path(&mut pieces, self.upstream_path),
                TemplatePart::Capture { maybe_rest, .. } => {
                    let is_rest = *maybe_rest && self.path.is_open();
                    pieces.push(Piece::Any { others: if is_rest { "/" } else { "" } });
                }
                // `?` stands for an absent value.
                TemplatePart::Query(_) | TemplatePart::Header(_) | TemplatePart::JsonHeader(_) => {
                    pieces.push(Piece::Any { others: "?" });
                }
            }
        }
        pieces
    }
}

/// For each place in a key, whether the rest from there on can be empty.
fn meet_at_the_end(pieces: &[Piece]) -> Vec<bool> {
    let can_be_empty = |place: usize| pieces.iter().skip(place).all(|piece| matches!(piece, Piece::Any { .. }));
    (0..=pieces.len()).map(can_be_empty).collect()
}

fn append(pieces: &mut Vec<Piece>, text: &str) {
    pieces.extend(text.bytes().map(Piece::Octet));
}

fn append_path(pieces: &mut Vec<Piece>, path: &PathPattern) {
    let begin = pieces.len();
    for (captures, text) in path.texts() {
        append(pieces, "/");
        if captures {
            pieces.push(Piece::Any { others: "" });
        }
        append(pieces, text);
    }
    if pieces.len() == begin {
        append(pieces, "/");
    }
    if path.is_open() {
        pieces.push(Piece::Any { others: "/" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if two routes, each given as a path and a key, can make one key.
    fn meet(one: (&str, &str), other: (&str, &str)) -> bool {
        let read = |(path, key): (&str, &str)| {
            let path = PathPattern::parse(path).unwrap();
            let template = KeyTemplate::parse(key, &path.names().collect::<Vec<_>>()).unwrap();
            (path, template)
        };
        let ((path, template), (other_path, other_template)) = (read(one), read(other));
        let host = &HostPattern::Any;
        let source = KeySource { template: &template, host, path: &path, upstream_path: &path };
        let (path, template) = (&other_path, &other_template);
        let other = KeySource { template, host, path, upstream_path: path };
        assert_eq!(source.can_meet(&other), other.can_meet(&source), "it is the same from both sides");
        source.can_meet(&other)
    }

    #[test]
    fn keys_meet_where_one_text_fits_both() {
        for (one, other) in [
            (("/a/{id}", "{id}"), ("/b/{id}", "{id}")),
            (("/a/{id}", "/docs/{id}"), ("/docs/{id}", "{path}")),
            (("/a/{*rest}", "/{rest}"), ("/docs/{id}", "{path}")),
            (("/drawings/{id}/{*part}", "/drawings/{id}"), ("/drawings/{id}", "{path}")),
            (("/a", "{query.id}"), ("/b/{id}", "{id}")),
            (("/a/{id}/b", "x{id}1"), ("/c/{id}", "xy{id}")),
            (("/{*rest}", "{path}"), ("/docs/{id}", "{path}")),
            (("/", "{path}"), ("/{*rest}", "{path}")),
        ] {
            assert!(meet(one, other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn keys_that_no_text_fits_do_not_meet() {
        for (one, other) in [
            (("/a/{id}", "{path}"), ("/b/{id}", "{path}")),
            (("/projects/{id}", "{path}"), ("/projects/{id}/items/{item}", "{path}")),
            (("/jobs/{job}/{stage}", "{job}#{stage}"), ("/{*rest}", "{path}")),
            (("/a/{id}", "a#{id}"), ("/b/{id}", "b#{id}")),
            (("/a/{id}", "{id}"), ("/docs/{id}", "{path}")),
            (("/", "{path}"), ("/docs", "{path}")),
            (("/a/{id}", "{id}"), ("/b/{id}", "#{id}")),
            (("/a/{id}/b", "x{id}#1"), ("/c/{id}", "xy{id}")),
        ] {
            assert!(!meet(one, other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn hosts_that_differ_make_keys_that_differ() {
        let path = PathPattern::parse("/docs/{id}").unwrap();
        let template = KeyTemplate::parse("{host}{path}", &["id"]).unwrap();
        let [a, b] = ["a.example", "b.example"].map(|host| HostPattern::Exact(host.to_owned()));
        let source = |host| KeySource { template: &template, host, path: &path, upstream_path: &path };
        assert!(source(&a).can_meet(&source(&a)) && !source(&a).can_meet(&source(&b)));
        assert!(source(&a).can_meet(&source(&HostPattern::Any)));
    }
}
