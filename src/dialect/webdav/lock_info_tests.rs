//! Documents of real clients, and those that are refused.

use proptest::prelude::*;

use super::*;

fn lock(scope: &str, owner: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\" ?>\n<D:lockinfo xmlns:D='DAV:'>\n<D:lockscope><D:{scope}/></D:lockscope>\
         <D:locktype><D:write></D:write></D:locktype>{owner}</D:lockinfo>\n"
    )
}

fn owner_of(document: &str) -> Result<Option<String>, LockInfoFault> {
    WantedLock::parse(document.as_bytes()).map(|info| info.owner.map(Into::into))
}

#[test]
fn both_scopes_are_read_by_their_namespace() {
    for (document, mode) in [
        (lock("exclusive", ""), LeaseMode::Exclusive),
        (lock("shared", ""), LeaseMode::SHARED),
        (lock("shared", "").replace("D:", "").replace("xmlns:D", "xmlns"), LeaseMode::SHARED),
        (format!("\u{feff}{}", lock("exclusive", "")), LeaseMode::Exclusive),
        (lock("exclusive", "<D:more><x/></D:more><!-- a note -->"), LeaseMode::Exclusive),
        (lock("exclusive", "").replace("utf-8", "US-ASCII"), LeaseMode::Exclusive),
    ] {
        assert_eq!(WantedLock::parse(document.as_bytes()).map(|info| info.mode), Ok(mode), "{document}");
    }
}

#[test]
fn an_owner_stands_by_itself() {
    const OWN: &str = "<D0:owner xmlns:D0=\"DAV:\" xmlns:D=\"DAV:\"";
    for (owner, expected) in [
        ("<D:owner>litmus test suite</D:owner>", Some(format!("{OWN}>litmus test suite</D0:owner>"))),
        ("<D:owner/>", Some(format!("{OWN}></D0:owner>"))),
        (
            "<D:owner><D:href>mailto:a@b</D:href></D:owner>",
            Some(format!("{OWN}><D:href>mailto:a@b</D:href></D0:owner>")),
        ),
        (
            "<D:owner xmlns:x='u:\"1\"'> <x:a y='&quot;'/>&amp;&#33;<![CDATA[<]]></D:owner>",
            Some(format!("{OWN} xmlns:x=\"u:&quot;1&quot;\"> <x:a y='&quot;'/>&amp;&#33;<![CDATA[<]]></D0:owner>")),
        ),
        ("<D:owner xmlns='u:1'><a/></D:owner>", Some(format!("{OWN} xmlns=\"u:1\"><a/></D0:owner>"))),
        ("<owner>not of the protocol</owner>", None),
    ] {
        assert_eq!(owner_of(&lock("exclusive", owner)), Ok(expected), "{owner}");
    }
}

/// The element keeps its namespace under any prefix of the client.
#[test]
fn no_prefix_of_a_client_hides_that_of_the_protocol() {
    let document = "<lockinfo xmlns=\"DAV:\" xmlns:D0=\"u:1\"><lockscope><shared/></lockscope><locktype><write/></locktype>\
                    <owner><D0:a/></owner></lockinfo>";
    let expected = "<D1:owner xmlns:D1=\"DAV:\" xmlns=\"DAV:\" xmlns:D0=\"u:1\"><D0:a/></D1:owner>";
    assert_eq!(owner_of(document), Ok(Some(expected.to_owned())));
}

#[test]
fn what_asks_for_no_lock_is_refused() {
    use LockInfoFault::{Encoding, Malformed, TooLarge, Unsupported};
    let plain = lock("exclusive", "");
    let utf16: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let long = |bytes: usize| lock("exclusive", &format!("<D:owner>{}</D:owner>", "a".repeat(bytes)));
    assert!(WantedLock::parse(long(OWNER_BYTES_MAX).as_bytes()).is_ok());
    for (document, expected) in [
        (utf16, Encoding),
        (plain.replace("utf-8", "iso-8859-1").into_bytes(), Encoding),
        (plain.replace("?>", "?><!DOCTYPE a [<!ENTITY b \"c\">]>").into_bytes(), Malformed),
        (Vec::new(), Malformed),
        (b" ".to_vec(), Malformed),
        (b"lockinfo".to_vec(), Malformed),
        (b"<lockinfo/>".to_vec(), Unsupported),
        (lock("exclusive", "").replace("DAV:", "dav:").into_bytes(), Unsupported),
        (lock("none", "").into_bytes(), Unsupported),
        (lock("exclusive/><D:shared", "").into_bytes(), Unsupported),
        (plain.replace("D:write", "D:read").into_bytes(), Unsupported),
        (plain.replace("<D:locktype><D:write></D:write></D:locktype>", "").into_bytes(), Unsupported),
        (lock("exclusive", "<D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner>&nothing;</D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner><x:a/></D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner><a x:b=''/></D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner><a b='<'/></D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner><a b='' b=''/></D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner><a b=''c=''/></D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner>]]></D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner><?a b?></D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner><!-- a -- b --></D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner>\u{1}</D:owner>").into_bytes(), Malformed),
        (lock("exclusive", "<D:owner>&#1;</D:owner>").into_bytes(), Malformed),
        (format!("{plain}<a/>").into_bytes(), Malformed),
        (format!("{plain}a").into_bytes(), Malformed),
        (lock("exclusive", &format!("<D:owner>{}", "<a>".repeat(NESTING_MAX + 1))).into_bytes(), Malformed),
        (long(OWNER_BYTES_MAX + 1).into_bytes(), TooLarge),
        (vec![b' '; LOCK_INFO_BYTES_MAX + 1], TooLarge),
    ] {
        assert_eq!(WantedLock::parse(&document), Err(expected), "{}", String::from_utf8_lossy(&document));
    }
}

proptest! {
    /// The kept owner is an element that a reader can read alone.
    #[test]
    fn no_owner_breaks_the_document_that_shows_it(content in "(<[/a:b]{1,4}( [xmlns:b]{1,6}='[u&<]{0,2}')?/?>|&[a-z#1]{0,3};|[a-b>\\]\"'!-]){0,8}") {
        let document = lock("shared", &format!("<D:owner xmlns:b='u'>{content}</D:owner>"));
        if let Ok(Some(owner)) = owner_of(&document) {
            let mut reader = reader(&owner);
            let mut depth = 0_i32;
            loop {
                match next(&mut reader).expect("well-formed") {
                    Event::Start(start) => { depth += 1; prop_assert_eq!(check_names(&reader, &start), Ok(())); }
                    Event::Empty(start) => prop_assert_eq!(check_names(&reader, &start), Ok(())),
                    Event::End(_) => depth -= 1,
                    Event::Eof => break,
                    other => prop_assert!(depth > 0 && content_of(&other).is_some()),
                }
            }
            prop_assert_eq!(depth, 0);
        }
    }

    #[test]
    fn no_document_makes_the_reader_panic(document in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _read = WantedLock::parse(&document);
    }
}
