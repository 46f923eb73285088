//! The body that puts or updates a message: `<QueueMessage><MessageText>…</MessageText></QueueMessage>`.

use quick_xml::events::Event;

use super::refusals::{body_too_large, malformed_document};
use crate::{
    core::refusal::Refusal,
    dialect::markup::{content_of, next, reader, text_of},
};

/// The longest text of a message, in bytes of UTF-8.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The longest body. A character may be written as an escape of six.
pub const BODY_BYTES_MAX: usize = TEXT_BYTES_MAX * 6 + 1024;

/// Reads the text of a message. `None` if there is no body.
///
/// # Errors
///
/// The body is no message, or its text is too long.
pub fn read_message(body: &[u8]) -> Result<Option<String>, Refusal> {
    if body.is_empty() {
        return Ok(None);
    }
    let text = message_text(body).ok_or_else(malformed_document)?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(body_too_large());
    }
    Ok(Some(text))
}

/// Returns the text in a document; `None` if it is none of a message.
fn message_text(body: &[u8]) -> Option<String> {
    let mut reader = reader(text_of(body).ok()?);
    let (mut depth, mut found) = (0_usize, None::<String>);
    loop {
        let event = next(&mut reader).ok()?;
        match &event {
            Event::Start(start) => {
                let expected = ["QueueMessage", "MessageText"].get(depth)?;
                if start.local_name().into_inner() != *expected || found.is_some() {
                    return None;
                }
                depth += 1;
                if depth == 2 {
                    found = Some(String::new());
                }
            }
            Event::Empty(start) => {
                if depth != 1 || start.local_name().into_inner() != "MessageText" || found.is_some() {
                    return None;
                }
                found = Some(String::new());
            }
            Event::End(_) => depth = depth.checked_sub(1)?,
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {
                let content = content_of(&event)?;
                match (&mut found, depth) {
                    (Some(text), 2) => text.push_str(&content),
                    // Between the elements is only blank space.
                    _ if content.trim().is_empty() => {}
                    _ => return None,
                }
            }
            Event::Eof => return found.filter(|_| depth == 0),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dialect::xml;

    fn read(body: &str) -> Result<Option<String>, &'static str> {
        read_message(body.as_bytes()).map_err(|refusal| refusal.service.map_or("RequestBodyTooLarge", |name| name.code))
    }

    fn message(text: &str) -> String {
        format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
    }

    #[test]
    fn a_message_is_read_as_it_is() {
        for (written, text) in [
            ("", ""),
            (" a\n b ", " a\n b "),
            ("&lt;&amp;&gt;&#13;&#x9;&quot;", "<&>\r\t\""),
            ("<![CDATA[<b>&amp;]]>", "<b>&amp;"),
            ("ä<!-- b -->c", "äc"),
        ] {
            assert_eq!(read(&message(written)), Ok(Some(text.to_owned())), "{written}");
        }
        let declared = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n{}\n", message("a"));
        assert_eq!(read(&declared), Ok(Some("a".to_owned())));
        assert_eq!(read("<QueueMessage><MessageText/></QueueMessage>"), Ok(Some(String::new())));
        assert_eq!(read(""), Ok(None));
    }

    #[test]
    fn nothing_else_is_a_message() {
        for body in [
            "a",
            "<QueueMessage/>",
            "<QueueMessage></QueueMessage>",
            "<MessageText>a</MessageText>",
            "<QueueMessage>a</QueueMessage>",
            "<QueueMessage><MessageText>a</MessageText>b</QueueMessage>",
            "<QueueMessage><MessageText>a</MessageText><MessageText>b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText><b/></MessageText></QueueMessage>",
            "<QueueMessage><MessageText>a</QueueMessage></MessageText>",
            "<QueueMessage><MessageText>a</MessageText>",
            "<QueueMessage><Other>a</Other></QueueMessage>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><QueueMessage><MessageText>&b;</MessageText></QueueMessage>",
            "<QueueMessage><MessageText>&b;</MessageText></QueueMessage>",
            "<QueueMessage><MessageText>a</MessageText></QueueMessage><QueueMessage/>",
            "<?xml version=\"1.0\" encoding=\"utf-16\"?><QueueMessage><MessageText/></QueueMessage>",
        ] {
            assert_eq!(read(body), Err("InvalidXmlDocument"), "{body}");
        }
        assert_eq!(
            read_message(b"\xff\xfe<\0").map_err(|refusal| refusal.service.map(|name| name.code)),
            Err(Some("InvalidXmlDocument"))
        );
    }

    /// Rule 13: a message has a limit.
    #[test]
    fn a_long_text_is_refused() {
        assert!(read(&message(&"ä".repeat(TEXT_BYTES_MAX / 2))).is_ok());
        assert_eq!(read(&message(&"a".repeat(TEXT_BYTES_MAX + 1))), Err("RequestBodyTooLarge"));
    }

    proptest! {
        #[test]
        fn whatever_is_shown_is_read_again(text in "[ -~\t\n\rä€😀]{0,40}") {
            let mut document = xml::Writer::begin("QueueMessage");
            document.exact("MessageText", &text);
            prop_assert_eq!(read(&document.end("QueueMessage")), Ok(Some(text)));
        }

        #[test]
        fn any_body_is_read_or_refused(body: Vec<u8>) {
            let _ = read_message(&body);
        }

        #[test]
        fn any_markup_is_read_or_refused(parts in proptest::collection::vec(proptest::sample::select(vec![
            "<QueueMessage>", "</QueueMessage>", "<MessageText>", "</MessageText>", "<MessageText/>", "a", "&amp;", "&", "<", "]]>",
            "<![CDATA[", "<!--", "-->", "<?xml?>", "\u{0}",
        ]), 0..8)) {
            let _ = read_message(parts.concat().as_bytes());
        }
    }
}
