//! The question of a PROPFIND (RFC 4918 section 9.1). The backend reads it too, and refuses a question that it cannot
//! read.

use quick_xml::events::Event;

use super::{
    NAMESPACE,
    markup::{NESTING_MAX, Unreadable, name_in, next, reader, text_of},
};

/// The longest question that is read, in bytes.
pub const QUESTION_BYTES_MAX: usize = 64 * 1024;

/// The properties of this proxy that a PROPFIND asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property, or a way to ask")]
pub struct Question {
    /// True if it asks for the locks.
    pub lockdiscovery: bool,
    /// True if it asks which locks can be taken.
    pub supportedlock: bool,
    /// True if it asks for the tag.
    pub getetag: bool,
    /// True if it asks only for names.
    pub is_of_names: bool,
    /// True if it names each property that it wants, and so learns of those that are not there.
    pub is_by_name: bool,
}

impl Question {
    /// All properties, as an absent document asks for.
    pub const ALL: Self =
        Self { lockdiscovery: true, supportedlock: true, getetag: true, is_of_names: false, is_by_name: false };

    /// Reads the document of a request. One that cannot be read asks for nothing.
    pub fn parse(document: &[u8]) -> Self {
        if document.trim_ascii().is_empty() {
            return Self::ALL;
        }
        if document.len() > QUESTION_BYTES_MAX {
            return Self::default();
        }
        Self::read(document).unwrap_or_default()
    }

    fn read(document: &[u8]) -> Result<Self, Unreadable> {
        let mut reader = reader(text_of(document)?);
        let (mut question, mut depth, mut is_named) = (Self::default(), 0_usize, false);
        loop {
            let (start, is_empty) = match next(&mut reader)? {
                Event::Eof => return Ok(question),
                Event::End(_) => {
                    depth = depth.saturating_sub(1);
                    continue;
                }
                Event::Start(start) => (start, false),
                Event::Empty(start) => (start, true),
                _ => continue,
            };
            match (depth, name_in(&reader, &start, NAMESPACE)) {
                (1, Some("allprop")) => question = Self::ALL,
                (1, Some("propname")) => question = Self { is_of_names: true, ..Self::ALL },
                (1, name) => {
                    is_named = name == Some("prop");
                    question.is_by_name |= is_named;
                }
                (2, Some("lockdiscovery")) if is_named => question.lockdiscovery = true,
                (2, Some("supportedlock")) if is_named => question.supportedlock = true,
                (2, Some("getetag")) if is_named => question.getetag = true,
                _ => {}
            }
            depth += usize::from(!is_empty);
            if depth > NESTING_MAX {
                return Err(Unreadable::Markup);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_tells_what_it_wants() {
        let find =
            |content: &str| format!("<?xml version=\"1.0\"?><D:propfind xmlns:D=\"DAV:\">{content}</D:propfind>");
        let named = Question { is_by_name: true, ..Question::default() };
        for (document, expected) in [
            (String::new(), Question::ALL),
            (" \r\n".to_owned(), Question::ALL),
            (find("<D:allprop/>"), Question::ALL),
            (find("<D:allprop/><D:include><D:getetag/></D:include>"), Question::ALL),
            (find("<D:propname/>"), Question { is_of_names: true, ..Question::ALL }),
            (find("<D:prop><D:getetag/><D:other/></D:prop>"), Question { getetag: true, ..named }),
            (
                find("<D:prop><D:lockdiscovery/><supportedlock xmlns=\"DAV:\"></supportedlock></D:prop>"),
                Question { lockdiscovery: true, supportedlock: true, ..named },
            ),
            (find("<D:prop><D:a><D:getetag/></D:a></D:prop>"), named),
            (find("<D:prop><getetag/><x:getetag xmlns:x=\"u:1\"/></D:prop>"), named),
            ("<propfind".to_owned(), Question::default()),
            (find("<!DOCTYPE a><D:prop><D:getetag/></D:prop>"), Question::default()),
        ] {
            assert_eq!(Question::parse(document.as_bytes()), expected, "{document}");
        }
        assert_eq!(Question::parse(&vec![b'<'; QUESTION_BYTES_MAX + 1]), Question::default());
    }
}
