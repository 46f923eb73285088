//! Indexes as real servers write them, and as no server should.

use proptest::prelude::*;

use super::*;
use crate::core::{
    http::request_target::{KeptInNames, normalize},
    route::{HostPattern, MembersTemplate, PathPattern, RouteTable},
    tags::json::JsonPointer,
};

const DAV: &str = "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">\
    <D:response><D:href>/jobs/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype></D:prop>\
    <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\
    <D:response><D:href>/jobs/2</D:href></D:response>\
    <D:response><D:href>http://other.test:81/jobs/1%20%C3%A4</D:href></D:response>\
    <D:response><D:href>/jobs/folder</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype>\
    </D:prop></D:propstat></D:response>\
    <D:response><D:href>/jobs/../secret</D:href></D:response>\
    <D:response><D:href>/jobs/%2e%2e%2fsecret</D:href></D:response>\
    <D:response><D:href>/elsewhere/3</D:href></D:response>\
    </D:multistatus>";

const NGINX: &str = r#"[
{ "name":"folder", "type":"directory", "mtime":"Sat, 28 Nov 2026 05:00:00 GMT" },
{ "name":"2", "type":"file", "mtime":"Sat, 28 Nov 2026 05:00:00 GMT", "size":5 },
{ "name":"1 ä", "type":"file", "size":5 },
{ "name":"../secret", "type":"file", "size":5 },
{ "name":"a/b", "type":"file", "size":5 }
]"#;

const BUCKET: &str = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
    <Name>b</Name><Prefix>jobs/</Prefix><IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>\
    <Contents><Key>jobs/</Key></Contents><Contents><Key>jobs/2</Key><Size>1</Size></Contents>\
    <Contents><Key>jobs/1+%C3%A4</Key></Contents><Contents><Key>jobs/a/b</Key></Contents>\
    <Contents><Key>other/3</Key></Contents>\
    <CommonPrefixes><Prefix>jobs/folder/</Prefix></CommonPrefixes></ListBucketResult>";

fn folder(path: &str) -> MembersFolder {
    let collection = PathPattern::parse("/jobs").expect("a pattern");
    let template = MembersTemplate::parse("/jobs/{id}", &collection).expect("a template");
    let own = normalize(b"/jobs", KeptInNames::ALL).expect("a path");
    let table = RouteTable::new(vec![(HostPattern::Any, collection)]);
    let folder = template.folder(&table.find("h", &own).expect("it matches").captures).expect("a folder");
    folder.at(&normalize(path.as_bytes(), KeptInNames::ALL).expect("a path"))
}

fn pointer(text: &str) -> IndexForm {
    IndexForm::Json(JsonPointer::parse(text).expect("a pointer"))
}

fn names(form: &IndexForm, document: &str) -> Result<Vec<String>, MalformedIndex> {
    let at = if *form == IndexForm::S3 { "/b/jobs" } else { "/jobs" };
    Ok(read(form, document.as_bytes(), &folder(at), None)?.names.into_iter().collect())
}

#[test]
fn each_form_shows_the_files_of_the_folder_alone() {
    for (form, document) in [(IndexForm::WebDav, DAV), (IndexForm::NginxJson, NGINX), (IndexForm::S3, BUCKET)] {
        assert_eq!(names(&form, document).as_deref(), Ok(&["1 ä".to_owned(), "2".to_owned()][..]), "{form:?}");
    }
}

#[test]
fn a_json_document_has_its_names_in_one_place() {
    for (place, document, expected) in [
        ("/names", r#"{"names":["b","a",3,-1,null,true,1.5,{"x":1}]}"#, &["-1", "3", "a", "b"][..]),
        ("/*", r#"["b","a"]"#, &["a", "b"]),
        ("/jobs/*/id", r#"{"jobs":[{"id":"b","x":[1]},{"id":7},{"no":1},[]],"more":1}"#, &["7", "b"]),
        ("/jobs/*/id", r#"{"jobs":[]}"#, &[]),
        ("/jobs/*/id", r#"{"jobs":null}"#, &[]),
        ("/*", r#"["../x","a/b","","."]"#, &[]),
    ] {
        let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        if document.contains("null}") {
            assert_eq!(names(&pointer("/jobs/*"), document), Ok(expected), "{document}");
        } else {
            assert_eq!(names(&pointer(place), document), Ok(expected), "{place} of {document}");
        }
    }
}

/// A place or a form that is configured wrongly must not look like an empty collection.
#[test]
fn what_is_no_index_is_no_empty_one() {
    for (form, document) in [
        (pointer("/jobs/*/id"), r#"{"tasks":[]}"#),
        (pointer("/jobs"), r#"["a"]"#),
        (pointer("/jobs"), r#"{"jobs":["a"]"#),
        (pointer("/jobs"), r#"{"jobs":["a"]} x"#),
        (IndexForm::NginxJson, "{}"),
        (IndexForm::NginxJson, "<html>"),
        (IndexForm::NginxJson, r#"[{"name":"a"}]"#),
        (IndexForm::S3, "<html></html>"),
        (IndexForm::S3, "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
        (IndexForm::S3, "<!DOCTYPE a [<!ENTITY e \"x\">]><ListBucketResult></ListBucketResult>"),
        (IndexForm::S3, "<ListBucketResult><Contents><Key>&e;</Key></Contents></ListBucketResult>"),
        (IndexForm::S3, "<ListBucketResult>"),
        (IndexForm::WebDav, "<a></a>"),
        (IndexForm::WebDav, "<!DOCTYPE a><D:multistatus xmlns:D=\"DAV:\"></D:multistatus>"),
        (IndexForm::WebDav, "<D:multistatus xmlns:D=\"DAV:\">"),
    ] {
        assert_eq!(names(&form, document), Err(MalformedIndex), "{form:?} {document}");
    }
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(names(&pointer("/*"), &deep), Err(MalformedIndex));
    let deep = format!("<ListBucketResult>{}", "<a>".repeat(10_000));
    assert_eq!(names(&IndexForm::S3, &deep), Err(MalformedIndex));
}

#[test]
fn the_question_names_the_folder_of_the_members() {
    let target = |form, at, start: Option<PageStart>| {
        let question = question(&form, (&folder(at), b"/jobs?open=1"), start.as_ref());
        (question.method.to_string(), String::from_utf8(question.target).expect("ASCII"))
    };
    let get = |target: &str| ("GET".to_owned(), target.to_owned());
    assert_eq!(target(IndexForm::WebDav, "/jobs", None), ("PROPFIND".to_owned(), "/jobs/".to_owned()));
    assert_eq!(target(IndexForm::NginxJson, "/jobs", None), get("/jobs/"));
    assert_eq!(target(pointer("/*"), "/jobs", None), get("/jobs?open=1"));
    let list = "/b?list-type=2&delimiter=%2F&encoding-type=url&max-keys=1000&prefix=a%20b%2F";
    assert_eq!(target(IndexForm::S3, "/b/a%20b", None), get(list));
    let next = Some(PageStart::Continuation("1/x=".to_owned()));
    assert_eq!(target(IndexForm::S3, "/b/a%20b", next), get(&format!("{list}&continuation-token=1%2Fx%3D")));
    let bucket = "/b?list-type=2&delimiter=%2F&encoding-type=url&max-keys=1000&prefix=";
    assert_eq!(target(IndexForm::S3, "/b", None), get(bucket));
}

#[test]
fn a_bucket_tells_where_the_next_page_begins() {
    let truncated = BUCKET.replace(
        "<IsTruncated>false</IsTruncated>",
        "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>",
    );
    let page = read(&IndexForm::S3, truncated.as_bytes(), &folder("/b/jobs"), None).expect("a page");
    assert_eq!(page.next, Some(PageStart::Continuation("t".to_owned())));
}

proptest! {
    /// Rule 13: any document of the backend is read to an end, and leads nowhere else.
    #[test]
    fn any_document_is_read_to_an_end(document in "[<>/!a\\[\\]{}\",:0DOCTYPE&;.*-]{0,60}", nth in 0_usize..4) {
        let form = [IndexForm::WebDav, IndexForm::NginxJson, IndexForm::S3, pointer("/*")][nth].clone();
        for name in names(&form, &document).unwrap_or_default() {
            prop_assert!(folder("/jobs").member(&name).is_some());
        }
    }

    #[test]
    fn any_cut_of_an_index_is_no_index(cut in 1_usize..100, nth in 0_usize..3) {
        let (form, document) =
            [(IndexForm::WebDav, DAV), (IndexForm::NginxJson, NGINX), (IndexForm::S3, BUCKET)][nth].clone();
        let end = document.len() * cut / 100;
        let end = (0..=end).rev().find(|end| document.is_char_boundary(*end)).unwrap_or_default();
        prop_assert_eq!(names(&form, &document[..end]), Err(MalformedIndex));
    }
}
