use super::*;

fn parse(document: &str) -> Result<RemovalList, Refusal> {
    RemovalList::parse(document.as_bytes(), &TagSource::Upstream)
}

fn list(objects: &str) -> Result<RemovalList, Refusal> {
    parse(&format!("<Delete xmlns=\"{NAMESPACE}\">{objects}</Delete>"))
}

fn named(key: &str) -> Removal {
    Removal { key: key.into(), ..Removal::default() }
}

#[test]
fn a_list_names_objects_with_versions_and_tags() {
    let read = parse(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Delete>\n <Quiet>true</Quiet><Object><Key>a&amp;b &#x20ac;/c</Key>\
         <VersionId>1</VersionId></Object>\n<Object><ETag>\"d\"</ETag><Key><![CDATA[<e>]]></Key></Object></Delete>",
    )
    .unwrap();
    let first = Removal { version: Some("1".into()), ..named("a&b \u{20ac}/c") };
    let second = Removal { tag: Some(HeaderValue::from_static("\"d\"")), ..named("<e>") };
    assert_eq!(read, RemovalList { removals: vec![first, second], is_quiet: true });
    assert!(!list("<Object><Key>a</Key></Object><Quiet>false</Quiet>").unwrap().is_quiet);
}

/// Rule 18: an object that one reader finds in a list, and another does not, would be removed without a verdict.
#[test]
fn a_list_with_several_readings_is_refused() {
    let one = "<Object><Key>a</Key></Object>";
    for objects in [
        "",
        "<Object/>",
        "<Object><Key/></Object>",
        "<Object><Key> a</Key></Object>",
        "<Object><Key>a\n</Key></Object>",
        "<Object><Key>a</Key><Key>b</Key></Object>",
        "<Object><Key>a</Key><ETag>1</ETag><ETag>2</ETag></Object>",
        "<Object><Key>a</Key><key>b</key></Object>",
        "<Object><Key>a<b/></Key></Object>",
        "<Object>b<Key>a</Key></Object>",
        "<Object><Key>a<!-- b --></Key></Object>",
        "<Object><Key>a<?b?></Key></Object>",
        "<Object><Key>&b;</Key></Object>",
        "<object><Key>a</Key></object>",
        "<Object><Key>a</Key><Other>b</Other></Object>",
        "<Object><Key>a</Key><ETag>\u{1f4a5}\n</ETag></Object>",
        "<Object xmlns=\"other\"><Key>a</Key></Object>",
        "<Object xmlns:o=\"other\"><o:Key>a</o:Key></Object>",
        "<Object id=\"b\"><Key>a</Key></Object>",
        "<Object><Key>a</Key></Object><Quiet>TRUE</Quiet>",
        "<Object><Key>a</Key></Object><Quiet>true</Quiet><Quiet>false</Quiet>",
        "<Object><Key>a</Key></Object>b",
    ] {
        assert_eq!(list(objects).unwrap_err().code, Code::MalformedRequest, "{objects}");
    }
    for document in [
        "",
        "<Other><Object><Key>a</Key></Object></Other>",
        "<Delete><Object><Key>a</Key></Object></Delete><Delete/>",
        "<!DOCTYPE d [<!ENTITY b \"c\">]><Delete><Object><Key>a</Key></Object></Delete>",
        "<?xml version=\"1.0\" encoding=\"latin1\"?><Delete><Object><Key>a</Key></Object></Delete>",
    ] {
        assert!(parse(document).is_err(), "{document}");
    }
    assert!(list(&one.repeat(REMOVALS_MAX)).is_ok());
    assert!(list(&one.repeat(REMOVALS_MAX + 1)).is_err());
}

#[test]
fn a_condition_that_the_proxy_cannot_judge_is_left_to_a_server_that_judges() {
    for element in ["<Size>1</Size>", "<LastModifiedTime>Sun, 06 Nov 1994 08:49:37 GMT</LastModifiedTime>"] {
        let document = format!("<Delete><Object><Key>a</Key>{element}</Object></Delete>");
        assert_eq!(parse(&document).unwrap_err().code, Code::NotSupported);
        assert!(RemovalList::parse(document.as_bytes(), &TagSource::Delegate).is_ok());
    }
}

/// Rule 18: what some servers take for a list, and others do not, is none.
#[test]
fn a_list_is_asked_for_in_one_spelling() {
    let none = HeaderMap::new();
    let is = |target: &str, headers: &HeaderMap| {
        is_list(Incoming { method: &Method::POST, other_methods: &[], target: target.as_bytes(), headers })
    };
    for target in ["/b?delete", "/b/?delete=", "/b?x-id=DeleteObjects&delete&X-Amz-Signature=0"] {
        assert!(is(target, &none), "{target}");
    }
    for target in
        ["/b", "/b?Delete", "/b?%64elete", "/b?delete&delete", "/b?delete&uploads", "/b?delete=1", "/b?delete[]"]
    {
        assert!(!is(target, &none), "{target}");
    }
    for (name, value, is_one) in [
        ("content-type", "application/xml; charset=UTF-8", true),
        ("content-type", "application/xml; charset=utf-16", false),
        ("content-encoding", "gzip", false),
    ] {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static(value))]);
        assert_eq!(is("/b?delete", &headers), is_one, "{value}");
    }
    let also_put = [Method::PUT];
    let two = Incoming { method: &Method::POST, other_methods: &also_put, target: b"/b?delete", headers: &none };
    assert!(!is_list(two));
}

#[test]
fn each_object_has_the_target_of_its_own_removal() {
    let removal = Removal { version: Some("1+/".into()), ..named("a b/\u{e9};c") };
    assert_eq!(named("a").target(b"/b/?delete"), b"/b/a");
    let target = removal.target(b"/b?delete&X-Amz-Signature=0&x-id=DeleteObjects");
    assert_eq!(str::from_utf8(&target).unwrap(), "/b/a%20b/%C3%A9%3Bc?X-Amz-Signature=0&versionId=1%2B%2F");
    for (target, bucket) in [("/b?delete", Some("/b")), ("/b/", Some("/b")), ("/", None), ("/b/c", None), ("//", None)]
    {
        assert_eq!(bucket_of(target.as_bytes()), bucket.map(str::as_bytes), "{target}");
    }
}

#[test]
fn an_answer_tells_what_became_of_each_object() {
    let told = |is_quiet: bool, removals: &[Removal], elements: &str| {
        let list = RemovalList { removals: removals.to_vec(), is_quiet };
        let result = format!("<DeleteResult xmlns=\"{NAMESPACE}\">{elements}</DeleteResult>");
        outcomes(&list, StatusCode::OK, Some(result.as_bytes()))
    };
    let (a, version) = (named("a"), Removal { version: Some("1".into()), ..named("a") });
    let one = |is_quiet, elements: &str| told(is_quiet, std::slice::from_ref(&a), elements)[0];
    assert_eq!(one(false, "<Deleted><Key>a</Key></Deleted>"), Outcome::Applied);
    assert_eq!(one(false, "<Deleted><Key>a</Key><DeleteMarker>true</DeleteMarker></Deleted>"), Outcome::Applied);
    assert_eq!((one(false, ""), one(true, "")), (Outcome::Unclear, Outcome::Applied));
    for (code, outcome) in [
        ("AccessDenied", Outcome::NotApplied),
        ("PreconditionFailed", Outcome::NotAppliedAsKnown),
        ("NoSuchVersion", Outcome::NotAppliedAsKnown),
        ("InternalError", Outcome::Unclear),
    ] {
        for is_quiet in [false, true] {
            let error = format!("<Error><Key>a</Key><Code>{code}</Code></Error>");
            assert_eq!(one(is_quiet, &error), outcome, "{code}");
        }
    }
    // The result for one state shows nothing about another.
    let of_version = "<Error><Key>a</Key><VersionId>1</VersionId><Code>AccessDenied</Code></Error>";
    assert_eq!(told(true, &[a.clone(), version], of_version), [Outcome::Unclear, Outcome::NotApplied]);
    let both = "<Deleted><Key>a</Key></Deleted><Error><Key>a</Key><Code>AccessDenied</Code></Error>";
    assert_eq!(one(false, both), Outcome::Unclear);

    let of = |status: u16, body: Option<&str>| {
        let list = RemovalList { removals: vec![named("a")], is_quiet: true };
        outcomes(&list, StatusCode::from_u16(status).unwrap(), body.map(str::as_bytes))[0]
    };
    let result = "<DeleteResult/>";
    assert_eq!(of(200, Some(result)), Outcome::Applied);
    for (status, body, outcome) in [
        (200, None, Outcome::Unclear),
        (200, Some("<Error><Code>InternalError</Code></Error>"), Outcome::Unclear),
        (200, Some("<DeleteResult>"), Outcome::Unclear),
        (403, Some(result), Outcome::NotApplied),
        (404, Some(result), Outcome::NotAppliedAsKnown),
        (500, Some(result), Outcome::Unclear),
        (504, None, Outcome::Doubt),
    ] {
        assert_eq!(of(status, body), outcome, "{status} {body:?}");
    }
}

#[test]
fn an_answer_of_the_proxy_has_the_reason_of_each_object() {
    let removal = Removal { version: Some("1".into()), ..named("<a>") };
    let reason = NotRemoved { code: "PreconditionFailed", message: "it has changed".into() };
    let body = none_removed(&[(&removal, reason)]).body.unwrap();
    let error = "<Error><Key>&lt;a&gt;</Key><VersionId>1</VersionId><Code>PreconditionFailed</Code>\
                 <Message>it has changed</Message></Error></DeleteResult>";
    assert!(body.ends_with(error), "{body}");
}
