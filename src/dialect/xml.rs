//! Errors as XML documents, the form that storage services send and their clients expect.

use std::fmt::Write as _;

/// The media type of the documents.
pub const CONTENT_TYPE: &str = "application/xml";

/// Returns an `<Error>` document with these elements, each a name and its text.
pub fn error(elements: &[(&str, &str)]) -> String {
    let mut document = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>");
    for (name, text) in elements {
        // Writing to a string cannot fail.
        let _ = write!(document, "<{name}>{}</{name}>", escaped(text));
    }
    document.push_str("</Error>");
    document
}

/// Escapes a text as the content of an element (XML 1.0 section 2.4). Characters that no XML document may contain are
/// left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\t' | '\r' => escaped.push(' '),
            control if control.is_control() && control != '\n' => {}
            other => escaped.push(other),
        }
    }
    escaped
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
