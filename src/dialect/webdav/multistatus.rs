//! Cuts a multistatus document (RFC 4918 section 13) into the elements below its root, while it arrives.
//!
//! # Design
//!
//! *Why a scanner of its own?* A document has any number of responses, and is forwarded while it arrives. So the
//! scanner finds the cuts octet by octet: the pieces in which a document arrives cannot matter. A real reader of XML
//! reads the content of an element.

use super::markup::NESTING_MAX;

/// The longest element below the root, in bytes: the properties of one resource.
pub const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// A piece of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPiece {
    /// Octets between the elements.
    Other(Vec<u8>),
    /// A whole element below the root.
    Element(Vec<u8>),
}

/// The reason why a document cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the backend's answer is no multistatus in UTF-8 whose responses have at most {RESPONSE_BYTES_MAX} bytes each")]
pub struct MalformedMultistatus;

/// The place of the scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scanning {
    Text,
    /// After `<`.
    Open,
    /// In a start tag, perhaps between quotes; whether the last octet was a slash.
    Start {
        quote: Option<u8>,
        slash: bool,
    },
    End,
    /// After `<!`, up to the part that was read.
    Bang(Bang),
    /// In a section that this ends, of which this part was read.
    Until {
        end: &'static [u8],
        read: usize,
    },
}

/// The beginning of a comment or a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bang {
    Begun,
    Comment,
    Section(usize),
}

const SECTION: &[u8] = b"[CDATA[";

/// The cutter of one document.
#[derive(Debug)]
pub struct Cutter {
    at: Scanning,
    depth: usize,
    /// The octets since the last piece.
    begun: Vec<u8>,
    /// The start tag of the root, once it is read whole.
    root: Option<Vec<u8>>,
    is_first: bool,
}

impl Default for Cutter {
    fn default() -> Self {
        Self { at: Scanning::Text, depth: 0, begun: Vec::new(), root: None, is_first: true }
    }
}

impl Cutter {
    /// The start tag of the root, in whose scope the elements are; nothing before the first of them.
    pub fn root(&self) -> &[u8] {
        self.root.as_deref().unwrap_or_default()
    }

    /// Takes the next octets, and returns the pieces that have become whole.
    ///
    /// # Errors
    ///
    /// The document cannot be forwarded.
    pub fn push(&mut self, octets: &[u8]) -> Result<Vec<ListPiece>, MalformedMultistatus> {
        let mut pieces = Vec::new();
        for octet in octets {
            self.take(*octet, &mut pieces)?;
        }
        // Text outside of elements need not be kept.
        if self.depth < 2 && self.at == Scanning::Text && !self.begun.is_empty() {
            pieces.push(ListPiece::Other(std::mem::take(&mut self.begun)));
        }
        Ok(joined(pieces))
    }

    /// Ends the document, and returns its rest.
    ///
    /// # Errors
    ///
    /// The document has no end.
    pub fn finish(self) -> Result<(), MalformedMultistatus> {
        let is_whole = self.at == Scanning::Text && self.depth == 0 && self.root.is_some() && self.begun.is_empty();
        if is_whole { Ok(()) } else { Err(MalformedMultistatus) }
    }

    fn take(&mut self, octet: u8, pieces: &mut Vec<ListPiece>) -> Result<(), MalformedMultistatus> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        // Other encodings begin with another octet, or with none.
        if octet == 0 || is_first && matches!(octet, 0xfe | 0xff) {
            return Err(MalformedMultistatus);
        }
        if self.at == Scanning::Text && octet == b'<' && self.depth < 2 && !self.begun.is_empty() {
            pieces.push(ListPiece::Other(std::mem::take(&mut self.begun)));
        }
        self.begun.push(octet);
        if self.begun.len() > RESPONSE_BYTES_MAX {
            return Err(MalformedMultistatus);
        }
        self.at = match (self.at, octet) {
            (Scanning::Text, b'<') => Scanning::Open,
            (Scanning::Text, _) => Scanning::Text,
            (Scanning::Open, b'/') => Scanning::End,
            (Scanning::Open, b'!') => Scanning::Bang(Bang::Begun),
            (Scanning::Open, b'?') => Scanning::Until { end: b"?>", read: 0 },
            (Scanning::Open, b'>' | b'<') | (Scanning::Start { quote: None, .. }, b'<') => {
                return Err(MalformedMultistatus);
            }
            (Scanning::Open, _) => Scanning::Start { quote: None, slash: false },
            (Scanning::Start { quote: Some(quote), .. }, octet) => {
                Scanning::Start { quote: Some(quote).filter(|quote| *quote != octet), slash: false }
            }
            (Scanning::Start { quote: None, slash }, b'>') => return self.start_tag_ends(slash, pieces),
            (Scanning::Start { quote: None, .. }, octet) => {
                Scanning::Start { quote: Some(octet).filter(|octet| b"\"'".contains(octet)), slash: octet == b'/' }
            }
            (Scanning::End, b'>') => return self.element_ends(pieces),
            (Scanning::End, _) => Scanning::End,
            (Scanning::Bang(Bang::Begun), b'-') => Scanning::Bang(Bang::Comment),
            (Scanning::Bang(Bang::Comment), b'-') => Scanning::Until { end: b"-->", read: 0 },
            (Scanning::Bang(Bang::Begun), b'[') => Scanning::Bang(Bang::Section(1)),
            (Scanning::Bang(Bang::Section(read)), octet) if SECTION.get(read) == Some(&octet) => {
                if read + 1 == SECTION.len() {
                    Scanning::Until { end: b"]]>", read: 0 }
                } else {
                    Scanning::Bang(Bang::Section(read + 1))
                }
            }
            // A document type, or nothing that XML knows.
            (Scanning::Bang(_), _) => return Err(MalformedMultistatus),
            (Scanning::Until { end, read }, octet) => match (end.get(read), end.first()) {
                (Some(next), _) if *next == octet && read + 1 == end.len() => {
                    self.part_ends(pieces);
                    Scanning::Text
                }
                (Some(next), _) if *next == octet => Scanning::Until { end, read: read + 1 },
                // `]]]>` ends a section, and `--->` a comment.
                (_, Some(first)) if *first == octet && read > 0 && end.len() == 3 => Scanning::Until { end, read },
                (_, Some(first)) => Scanning::Until { end, read: usize::from(*first == octet) },
                _ => return Err(MalformedMultistatus),
            },
        };
        Ok(())
    }

    fn start_tag_ends(&mut self, is_empty: bool, pieces: &mut Vec<ListPiece>) -> Result<(), MalformedMultistatus> {
        self.at = Scanning::Text;
        if self.depth == 0 {
            if self.root.is_some() || is_empty {
                // A second root, or one without responses, which has nothing to change.
                let is_first = self.root.is_none();
                self.root.get_or_insert_default();
                pieces.push(ListPiece::Other(std::mem::take(&mut self.begun)));
                return if is_first { Ok(()) } else { Err(MalformedMultistatus) };
            }
            self.root = Some(self.begun.clone());
            pieces.push(ListPiece::Other(std::mem::take(&mut self.begun)));
        }
        if is_empty {
            if self.depth == 1 {
                pieces.push(ListPiece::Element(std::mem::take(&mut self.begun)));
            }
            return Ok(());
        }
        self.depth += 1;
        if self.depth > NESTING_MAX { Err(MalformedMultistatus) } else { Ok(()) }
    }

    fn element_ends(&mut self, pieces: &mut Vec<ListPiece>) -> Result<(), MalformedMultistatus> {
        self.at = Scanning::Text;
        self.depth = self.depth.checked_sub(1).ok_or(MalformedMultistatus)?;
        match self.depth {
            0 => pieces.push(ListPiece::Other(std::mem::take(&mut self.begun))),
            1 => pieces.push(ListPiece::Element(std::mem::take(&mut self.begun))),
            _ => {}
        }
        Ok(())
    }

    /// A comment, a section or an instruction has ended.
    fn part_ends(&mut self, pieces: &mut Vec<ListPiece>) {
        if self.depth < 2 {
            pieces.push(ListPiece::Other(std::mem::take(&mut self.begun)));
        }
    }
}

/// Joins pieces between elements, so the result does not depend on where they were cut before.
fn joined(pieces: Vec<ListPiece>) -> Vec<ListPiece> {
    let mut joined: Vec<ListPiece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(ListPiece::Other(before)), ListPiece::Other(more)) => before.extend(more),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &str = "\u{feff}<?xml version='1.0'?><!-- <a> --->\n<D:multistatus xmlns:D='DAV:' a='>/'>\
        <D:response a=\"</D:response>\"><![CDATA[</D:response>]]]]><x/><y></y></D:response>\n\
        <D:empty/><?pi </a>??><D:response>\u{e4}<!--</D:response>--></D:response></D:multistatus>\n";

    /// The pieces of a document that comes in these lengths.
    fn cut(document: &[u8], lengths: &[usize]) -> Result<Vec<ListPiece>, MalformedMultistatus> {
        let (mut cutter, mut pieces, mut rest) = (Cutter::default(), Vec::new(), document);
        for length in lengths.iter().copied().chain([usize::MAX]) {
            let (part, after) = rest.split_at(length.min(rest.len()));
            pieces.extend(cutter.push(part)?);
            rest = after;
        }
        cutter.finish()?;
        Ok(joined(pieces))
    }

    fn elements(pieces: &[ListPiece]) -> Vec<String> {
        let element = |piece: &ListPiece| match piece {
            ListPiece::Element(octets) => Some(String::from_utf8_lossy(octets).into_owned()),
            ListPiece::Other(_) => None,
        };
        pieces.iter().filter_map(element).collect()
    }

    #[test]
    fn elements_are_cut_at_their_ends() {
        let pieces = cut(WHOLE.as_bytes(), &[]).expect("whole");
        let expected = [
            "<D:response a=\"</D:response>\"><![CDATA[</D:response>]]]]><x/><y></y></D:response>",
            "<D:empty/>",
            "<D:response>\u{e4}<!--</D:response>--></D:response>",
        ];
        assert_eq!(elements(&pieces), expected);
        let whole: Vec<u8> = pieces
            .into_iter()
            .flat_map(|piece| match piece {
                ListPiece::Other(octets) | ListPiece::Element(octets) => octets,
            })
            .collect();
        assert_eq!(whole, WHOLE.as_bytes(), "no octet is lost");
    }

    #[test]
    fn what_is_no_whole_document_fails() {
        for document in [
            "",
            "text",
            "<a>",
            "<a><b></a>",
            "<a></a></a>",
            "<a/><b/>",
            "<a></a><b></b>",
            "<!DOCTYPE a><a></a>",
            "<a><></a>",
            "<a><b <c></b></a>",
            "<a><!x></a>",
            "<a><![CDATA [x]]></a>",
            "<a></a",
            "<a></a><!--",
            "\0<a></a>",
        ] {
            assert_eq!(cut(document.as_bytes(), &[]), Err(MalformedMultistatus), "{document}");
        }
        assert!(cut(b"<a/>", &[]).is_ok());
        let utf16: Vec<u8> = "<a></a>".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(cut(&utf16, &[]), Err(MalformedMultistatus));
    }

    /// Rule 13: one response has a limit, and all together have none.
    #[test]
    fn a_response_has_a_limit() {
        let response = |bytes: usize| format!("<a><b>{}</b></a>", "x".repeat(bytes - 7));
        assert!(cut(response(RESPONSE_BYTES_MAX).as_bytes(), &[]).is_ok());
        assert_eq!(cut(response(RESPONSE_BYTES_MAX + 1).as_bytes(), &[]), Err(MalformedMultistatus));
        let many = format!("<a>{}</a>", "<b></b>\n".repeat(RESPONSE_BYTES_MAX / 4));
        assert!(cut(many.as_bytes(), &[1 << 16; 40]).is_ok());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_a_document_is_cut(lengths in proptest::collection::vec(0_usize..20, 0..40)) {
            prop_assert_eq!(cut(WHOLE.as_bytes(), &lengths), cut(WHOLE.as_bytes(), &[]));
        }

        #[test]
        fn any_octets_are_cut_alike(document in "[<>/!a\\[\\]CDAT?'\"-]{0,40}", lengths in proptest::collection::vec(0_usize..9, 0..20)) {
            prop_assert_eq!(cut(document.as_bytes(), &lengths), cut(document.as_bytes(), &[]));
        }
    }
}
