//! The common demands on XML documents: UTF-8, and no document type. [`xml`](super::xml) writes XML.

use quick_xml::{
    NsReader, XmlVersion,
    escape::{partial_escape, resolve_xml_entity},
    events::{BytesStart, Event, attributes::Attribute},
    name::{Namespace, ResolveResult},
};

/// The deepest nesting that is read. The documents of all protocols are far flatter.
pub(super) const NESTING_MAX: usize = 64;

/// The reason why a document is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is not written in UTF-8.
    Encoding,
    /// It is no XML that could be read safely.
    Markup,
}

/// Returns the text of a document in UTF-8, without its mark.
pub(super) fn text_of(document: &[u8]) -> Result<&str, Unreadable> {
    if document.starts_with(&[0xfe, 0xff])
        || document.starts_with(&[0xff, 0xfe])
        || document.iter().take(4).any(|octet| *octet == 0)
    {
        return Err(Unreadable::Encoding);
    }
    let document = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document);
    let text = str::from_utf8(document).map_err(|_error| Unreadable::Markup)?;
    if text.chars().all(is_character) { Ok(text) } else { Err(Unreadable::Markup) }
}

/// True if a document may contain a character (XML 1.0 section 2.2).
fn is_character(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        other => other >= ' ',
    }
}

/// Returns a reader of a text.
pub(super) fn reader(text: &str) -> NsReader<&[u8]> {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().enable_all_checks(true);
    reader
}

/// Reads the next event, other than one that no document may have.
pub(super) fn next<'i>(reader: &mut NsReader<&'i [u8]>) -> Result<Event<'i>, Unreadable> {
    match reader.read_event().map_err(|_error| Unreadable::Markup)? {
        Event::DocType(_) => Err(Unreadable::Markup),
        Event::Decl(declaration) => match declaration.encoding() {
            Some(Ok(name)) if !is_utf8(&name) => Err(Unreadable::Encoding),
            Some(Err(_)) => Err(Unreadable::Markup),
            _ => Ok(Event::Decl(declaration)),
        },
        event => Ok(event),
    }
}

fn is_utf8(name: &str) -> bool {
    name.eq_ignore_ascii_case("utf-8") || name.eq_ignore_ascii_case("us-ascii")
}

/// The name of an element in this namespace; `None` if it is in another.
pub(super) fn name_in<'s>(reader: &NsReader<&[u8]>, start: &'s BytesStart<'_>, namespace: &str) -> Option<&'s str> {
    let (bound, _) = reader.resolver().resolve_element(start.name());
    let local = start.name().decompose().0.into_inner();
    (bound == ResolveResult::Bound(Namespace(namespace))).then_some(local)
}

/// The value of an attribute, without its escapes.
pub(super) fn value_of(attribute: &Attribute<'_>) -> Option<String> {
    attribute.normalized_value(XmlVersion::Implicit1_0).ok().map(Into::into)
}

/// The text that an event adds to the content of its element; `None` for a reference that no document defines.
pub(super) fn content_of(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Text(text) => Some(text.xml10_content().into_owned()),
        Event::CData(text) => Some(text.xml10_content().into_owned()),
        Event::GeneralRef(reference) => {
            if reference.is_char_ref() {
                return reference.resolve_char_ref().ok().flatten().filter(|c| is_character(*c)).map(String::from);
            }
            resolve_xml_entity(&reference.xml10_content()).map(str::to_owned)
        }
        _ => Some(String::new()),
    }
}

/// Escapes a text for the content of an element, or for an attribute between double quotes.
pub(super) fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|character| is_character(*character)).collect();
    partial_escape(text).replace('"', "&quot;")
}
