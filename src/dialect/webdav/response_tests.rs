//! Responses as `WsgiDAV`, Apache, nginx and Go write them.

use super::*;

const ROOT: &str = "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\" xmlns:ns0=\"DAV:\">";

fn root() -> &'static [u8] {
    ROOT.split_once("?>").expect("a declaration").1.as_bytes()
}

fn read(element: &str) -> Option<MultistatusResponse> {
    MultistatusResponse::read(root(), element.as_bytes()).expect("well-formed")
}

fn with(element: &str, question: Question, etag: Option<&str>) -> String {
    let facts = ResourceFacts { locks: Vec::new(), can_be_locked: true, etag: etag.map(str::to_owned) };
    read(element).expect("a response").with(question, &facts)
}

fn named(getetag: bool) -> Question {
    Question { getetag, is_by_name: true, ..Question::default() }
}

fn response(properties: &str) -> String {
    format!("<D:response><D:href>/a</D:href>{properties}</D:response>")
}

fn list(properties: &str, status: &str) -> String {
    format!("<D:propstat><D:prop>{properties}</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>")
}

fn own(properties: &str, status: &str) -> String {
    list(properties, status).replace("<D:propstat>", "<D:propstat xmlns:D=\"DAV:\">")
}

#[test]
fn a_tag_of_the_backend_gives_way_to_that_of_the_proxy() {
    let odd = "<x:a xmlns:x=\"u:1\" y='1'>&#233;<![CDATA[<]]></x:a>";
    let told = response(&list(&format!("{odd}<D:getetag>\"a\"</D:getetag>"), "200 OK"));
    let expected = response(&[list(odd, "200 OK"), own("<D:getetag>&quot;a-2&quot;</D:getetag>", "200 OK")].concat());
    assert_eq!(with(&told, named(true), Some("\"a-2\"")), expected);
    let expected = response(&[list(odd, "200 OK"), own("<D:getetag/>", "404 Not Found")].concat());
    assert_eq!(with(&told, named(true), None), expected);
    assert_eq!(with(&told, named(false), Some("\"a-2\"")), response(&list(odd, "200 OK")));
}

#[test]
fn what_the_backend_tells_of_locks_never_arrives() {
    let locks =
        "<D:lockdiscovery><D:activelock><D:owner><D:getetag>x</D:getetag></D:owner></D:activelock></D:lockdiscovery>";
    for (name, expected) in [
        (locks, ""),
        ("<ns0:supportedlock/>", ""),
        ("<lockdiscovery xmlns=\"DAV:\"/>", ""),
        ("<lockdiscovery/>", "<lockdiscovery/>"),
        ("<D:x><D:lockdiscovery/></D:x>", "<D:x><D:lockdiscovery/></D:x>"),
    ] {
        let told = response(&list(&format!("<D:a/>{name}"), "200 OK"));
        assert_eq!(with(&told, named(false), None), response(&list(&format!("<D:a/>{expected}"), "200 OK")), "{name}");
    }
    assert_eq!(read(&response(&list(locks, "200 OK"))).expect("a response").etag(), None);
}

#[test]
fn a_list_without_properties_goes() {
    let told =
        response(&[list("<D:a/>", "200 OK"), list("<D:getetag/>\n<D:lockdiscovery/>", "404 Not Found")].concat());
    assert_eq!(with(&told, named(false), None), response(&list("<D:a/>", "200 OK")));
    let alone = response(&list("<D:getetag>a</D:getetag>", "200 OK"));
    assert_eq!(with(&alone, named(true), None), response(&own("<D:getetag/>", "404 Not Found")));
    assert_eq!(with(&alone, Question::ALL, None).matches("<D:propstat").count(), 1);
    assert_eq!(with(&alone, named(false), None), response(&own("", "200 OK")), "a response has one list at least");
    let empty = response(&list("", "200 OK"));
    assert_eq!(with(&empty, named(false), None), empty);
}

/// `WsgiDAV` answers so if it knows none of the properties that were asked for.
#[test]
fn a_response_without_lists_gets_one() {
    let question = Question { getetag: true, ..named(false) };
    assert_eq!(with(&response(""), question, None), response(&own("<D:getetag/>", "404 Not Found")));
    assert_eq!(with(&response(""), named(false), None), response(&own("", "200 OK")));
}

#[test]
fn lists_are_added_before_what_follows_them() {
    let told = response(&format!("{}<D:responsedescription>d</D:responsedescription>", list("<D:a/>", "200 OK")));
    let question = Question { supportedlock: true, ..named(false) };
    let added = with(&told, question, None);
    let (before, after) = added.split_once("<D:responsedescription>").expect("it stays");
    assert!(before.contains("<D:lockscope><D:shared/></D:lockscope>") && !after.contains("propstat"), "{added}");
}

#[test]
fn names_are_told_as_names() {
    let told = response(&list("<D:a/><D:getetag/>", "200 OK"));
    let names = Question { is_of_names: true, ..Question::ALL };
    let expected = list("<D:a/>", "200 OK") + &own("<D:lockdiscovery/><D:supportedlock/><D:getetag/>", "200 OK");
    assert_eq!(with(&told, names, Some("\"a\"")), response(&expected));
    let expected = list("<D:a/>", "200 OK") + &own("<D:lockdiscovery/><D:supportedlock/>", "200 OK");
    assert_eq!(with(&told, names, None), response(&expected));
}

#[test]
fn what_tells_of_no_properties_stays() {
    let status = response("<D:status>HTTP/1.1 403 Forbidden</D:status>");
    assert_eq!(with(&status, Question::ALL, Some("\"a\"")), status);
    assert_eq!(read("<D:responsedescription>x</D:responsedescription>"), None);
    assert_eq!(read("<response><D:href>/a</D:href></response>"), None);
    assert_eq!(
        read("<D:response><D:href>/a</D:href><D:href>/b</D:href><D:status>HTTP/1.1 200 OK</D:status></D:response>"),
        None
    );
}

#[test]
fn a_reference_and_a_tag_are_read_without_escapes() {
    let told = "<ns0:response>\n <ns0:href> /a&amp;<![CDATA[b]]>&#99; </ns0:href><ns0:propstat><ns0:prop>\
                <ns0:getetag>W/&quot;1&quot;</ns0:getetag></ns0:prop></ns0:propstat></ns0:response>";
    let read = read(told).expect("a response");
    assert_eq!((read.href(), read.etag()), ("/a&bc", Some("W/\"1\"")));
}

#[test]
fn what_cannot_be_read_fails() {
    for element in [
        "<D:response>",
        "<D:response></D:respons>",
        "<x:response/><",
        "<D:response>&a;</D:response>",
        "<D:response>\u{1}</D:response>",
    ] {
        assert_eq!(
            MultistatusResponse::read(root(), element.as_bytes()).is_err(),
            element != "<x:response/><",
            "{element}"
        );
    }
    assert!(MultistatusResponse::read(root(), b"<D:response>\xff</D:response>").is_err());
}

#[test]
fn a_change_of_properties_is_done_if_all_is() {
    let answer = |lists: &str| format!("{ROOT}{}</D:multistatus>", response(lists));
    for (answer, is_done) in [
        (answer(&list("<D:a/>", "200 OK")), true),
        (answer(&[list("<D:a/>", "200 OK"), list("<D:b/>", "200 OK")].concat()), true),
        (answer(&[list("<D:a/>", "424 Failed Dependency"), list("<D:b/>", "403 Forbidden")].concat()), false),
        (answer(&[list("<D:a/>", "200 OK"), list("<D:b/>", "409 Conflict")].concat()), false),
        (answer("<D:status>HTTP/1.1 202 Accepted</D:status>"), false),
        (answer("<D:status>HTTP/1.1 20 OK</D:status>"), false),
        (answer("<status>HTTP/1.1 200 OK</status>"), false),
        (answer(""), false),
        (answer(&list("<D:a/>", "200 OK")).replace("</D:multistatus>", ""), false),
        (String::new(), false),
    ] {
        assert_eq!(all_succeeded(answer.as_bytes()), is_done, "{answer}");
    }
}
