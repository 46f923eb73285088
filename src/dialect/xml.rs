//! XML documents, the form of the errors and lists that storage services send and their clients expect.

use std::{borrow::Cow, fmt::Write as _};

use quick_xml::escape::partial_escape;

use super::markup;

/// The media type of the documents.
pub const CONTENT_TYPE: &str = "application/xml";

/// A document that is being written.
#[derive(Debug)]
pub struct Writer(String);

impl Writer {
    /// Begins a document with this root.
    pub fn begin(root: &str) -> Self {
        Self::begin_with(root, &[])
    }

    /// Begins a document with this root, which has these attributes.
    pub fn begin_with(root: &str, attributes: &[(&str, &str)]) -> Self {
        let mut document = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><{root}");
        for (name, value) in attributes {
            // Writing to a string cannot fail.
            let _ = write!(document, " {name}=\"{}\"", escaped(value).replace('"', "&quot;"));
        }
        document.push('>');
        Self(document)
    }

    /// Writes an element that contains only text.
    pub fn text(&mut self, name: &str, text: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "<{name}>{}</{name}>", escaped(text));
    }

    /// Writes an element that contains only this text, each character of which a reader gets back (XML 1.0 section 2.11).
    pub fn exact(&mut self, name: &str, text: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "<{name}>{}</{name}>", markup::escaped(text));
    }

    /// Writes an element that contains what `content` writes.
    pub fn element(&mut self, name: &str, content: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<{name}>");
        content(self);
        let _ = write!(self.0, "</{name}>");
    }

    /// Ends the document, and returns it.
    pub fn end(mut self, root: &str) -> String {
        let _ = write!(self.0, "</{root}>");
        self.0
    }
}

/// Returns an `<Error>` document with these elements, each a name and its text.
pub fn error(elements: &[(&str, &str)]) -> String {
    let mut document = Writer::begin("Error");
    for (name, text) in elements {
        document.text(name, text);
    }
    document.end("Error")
}

/// Escapes a text as the content of an element (XML 1.0 section 2.4). Characters that no XML document may contain are
/// left out.
fn escaped(text: &str) -> Cow<'static, str> {
    let text = text.replace(['\t', '\r'], " ");
    partial_escape(text.replace(|character: char| character.is_control() && character != '\n', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_holds_its_elements_in_order() {
        let document = error(&[("Code", "ServerBusy"), ("Message", "later")]);
        let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
                        <Error><Code>ServerBusy</Code><Message>later</Message></Error>";
        assert_eq!(document, expected);
    }

    /// XML 1.0 sections 2.2 and 2.4.
    #[test]
    fn a_text_cannot_end_its_element() {
        let document = error(&[("Message", "</Message>&\u{0}\r\n]]>")]);
        assert!(document.ends_with("<Message>&lt;/Message&gt;&amp; \n]]&gt;</Message></Error>"), "{document}");
    }
}
