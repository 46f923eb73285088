//! Lists of objects to delete (`DeleteObjects`): each is judged as if it were deleted alone, and all go or none.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::s3::{self, S3rver, boto3_of, proxy_before};
use crate::support::{
    backend::{Answer, Backend, Validators},
    clients,
    leases::{IDS, acquire, release},
    proxy::Proxy,
    raw::{get, put, send},
    response::Response,
};

const BUCKET: &str = "/bucket?delete";

/// A list of these objects, each a name and what stands beside it.
fn list(objects: &[(&str, &str)]) -> String {
    let objects = objects.iter().map(|(key, beside)| format!("<Object><Key>{key}</Key>{beside}</Object>"));
    format!("<Delete>{}<Quiet>true</Quiet></Delete>", objects.collect::<String>())
}

async fn delete(addr: SocketAddr, objects: &[(&str, &str)]) -> Response {
    send(addr, "POST", BUCKET, &[("Content-Type", "application/xml")], list(objects)).await
}

fn tag(tag: &str) -> String {
    format!("<ETag>{tag}</ETag>")
}

/// Returns the objects in an answer that are still there: the name and the code of each.
#[track_caller]
fn kept(answer: &Response) -> Vec<(&str, &str)> {
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/xml")), "{answer:?}");
    let errors = answer.text().split("<Error>").skip(1);
    let between = |text, name: &str| -> &str {
        let (_, rest) = str::split_once(text, &format!("<{name}>")).expect("its beginning");
        rest.split_once("</").expect("its end").0
    };
    errors.map(|error| (between(error, "Key"), between(error, "Code"))).collect()
}

/// The answer of a server that has deleted all but these.
fn all_but(errors: &str) -> Answer {
    let result = format!("<DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{errors}</DeleteResult>");
    Answer::status(200).header("Content-Type", "application/xml").body(result)
}

/// A backend with two objects that answers each list, and a proxy in front of it that speaks S3.
async fn scene(lines: &str) -> (Backend, Proxy, [String; 2]) {
    let backend = Backend::with(Validators::Tags).await;
    backend.put("/bucket/a", "one");
    backend.put("/bucket/b", "two");
    backend.always("POST", BUCKET, |_| all_but(""));
    let proxy = Proxy::to(backend.addr()).route(s3::ROUTE).route(lines).start().await;
    let tags = [get(proxy.addr(), "/bucket/a").await.etag(), get(proxy.addr(), "/bucket/b").await.etag()];
    (backend, proxy, tags)
}

/// Rule 4: an object that must stay keeps all of its list.
#[tokio::test]
async fn a_list_goes_as_it_came_or_not_at_all() {
    let (backend, proxy, [a, b]) = scene("").await;
    let addr = proxy.addr();
    let bare = b.trim_matches('"').to_owned();
    let stale = delete(addr, &[("a", &tag("\"stale\"")), ("b", &tag(&bare)), ("none", "")]).await;
    let aborted = "OperationAborted";
    assert_eq!(kept(&stale), [("a", "PreconditionFailed"), ("b", aborted), ("none", aborted)]);
    assert!(stale.text().contains("such as \"a\""), "{stale:?}");
    // For an operator the 200 is a refusal.
    assert!(stale.header("proxy-status").is_some_and(|told| told.contains("precondition-failed")), "{stale:?}");
    proxy.logged(&["status=200 verdict=\"precondition-failed\""]).await;
    let absent = delete(addr, &[("b", &tag(&bare)), ("none", &tag(&a))]).await;
    assert_eq!(kept(&absent), [("b", aborted), ("none", "NoSuchKey")]);
    assert_eq!(backend.count("POST", "*"), 0);
    let objects = [("b", &*tag(&bare)), ("none", ""), ("a", &tag(&a))];
    assert_eq!(kept(&delete(addr, &objects).await), []);
    assert_eq!(backend.seen("POST", BUCKET)[0].body, list(&objects).as_bytes());
}

/// Rule 2: once the answer tells that an object is gone, no tag of it is good.
#[tokio::test]
async fn each_object_is_settled_by_what_the_answer_says_of_it() {
    let (backend, proxy, [a, b]) = scene("other_writers = false\non_write = \"probe\"").await;
    let addr = proxy.addr();
    for (target, tag, body) in [("/bucket/a", &a, "one"), ("/bucket/b", &b, "two")] {
        // From now on the record has the tag.
        assert_eq!(put(addr, target, &[("If-Match", tag)], body).await.status, 204);
    }
    let [a, b] = [get(addr, "/bucket/a").await.etag(), get(addr, "/bucket/b").await.etag()];
    let denied = "<Error><Key>b</Key><Code>AccessDenied</Code><Message>No.</Message></Error>";
    backend.once("POST", BUCKET, all_but(denied));
    assert_eq!(kept(&delete(addr, &[("a", ""), ("b", "")]).await), [("b", "AccessDenied")]);
    let probes = backend.count("HEAD", "/bucket/b");
    assert_eq!(put(addr, "/bucket/b", &[("If-Match", &b)], "three").await.status, 204);
    assert_eq!(backend.count("HEAD", "/bucket/b"), probes, "what was known of it still is");
    assert_eq!(put(addr, "/bucket/a", &[("If-Match", &a)], "three").await.status, 412, "its state is gone");
}

/// Rule 10: a list goes around no lease, and around nothing that the route of an object demands.
#[tokio::test]
async fn an_object_is_judged_by_its_own_route() {
    let strict = "policy = \"pessimistic\"\nrequire_methods = [\"DELETE\"]\n[[routes]]\nname = \"strict\"\n\
                  path = \"/bucket/strict/{*rest}\"\nupstream = \"backend\"\npolicy = \"optimistic\"\netag = \"upstream\"\n\
                  dialect = \"s3\"\nrequire = \"existing\"\nprobe_auth = \"none\"\n[[routes]]\nname = \"open\"\n\
                  path = \"/bucket/open/{*rest}\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"";
    let (backend, proxy, _) = scene(strict).await;
    let addr = proxy.addr();
    backend.put("/bucket/strict/c", "three");
    let grant = acquire(addr, "/bucket/a", "60").await;
    for (key, code) in [
        ("a", "PreconditionFailed"),
        ("strict/c", "PreconditionRequired"),
        ("open/d", "NotImplemented"),
        ("e\\f", "InvalidURI"),
    ] {
        assert_eq!(kept(&delete(addr, &[(key, ""), ("b", "")]).await), [(key, code), ("b", "OperationAborted")]);
    }
    let fields = [("Content-Type", "application/xml"), ("Lease-Id", IDS[0])];
    assert_eq!(kept(&send(addr, "POST", BUCKET, &fields, list(&[("a", "")])).await).len(), 1);
    assert_eq!(backend.count("POST", "*"), 0);
    let own = [("Content-Type", "application/xml"), ("Lease-Id", grant.id.as_str())];
    assert_eq!(kept(&send(addr, "POST", BUCKET, &own, list(&[("a", "")])).await), []);
    assert_eq!(backend.seen("POST", BUCKET)[0].headers.get("lease-id"), None);
    let again = acquire(addr, "/bucket/a", "60").await;
    release(addr, "/bucket/a", &again.id).await;
    assert_eq!(kept(&delete(addr, &[("strict/none", ""), ("a", "")]).await), [], "there is nothing to lose");
}

/// Rule 1: nothing else is written to an object of a list that is in flight, and no two lists wait for each other.
#[tokio::test]
async fn the_claims_of_a_list_exclude_each_other_write() {
    let (backend, proxy, _) = scene("claim = { max_wait = \"20s\" }").await;
    let addr = proxy.addr();
    let held = backend.hold("POST", BUCKET);
    let first = tokio::spawn(async move { delete(addr, &[("a", ""), ("b", "")]).await });
    let held = held.arrived().await;
    let mut second = backend.hold("POST", BUCKET);
    let other = tokio::spawn(async move { delete(addr, &[("b", ""), ("c", ""), ("a", "")]).await });
    let writer = tokio::spawn(async move { put(addr, "/bucket/a", &[], "three").await });
    // An object beside the lists is free.
    assert_eq!(put(addr, "/bucket/d", &[], "four").await.status, 201);
    assert!(second.try_arrived().is_none() && backend.count("PUT", "/bucket/a") == 0);
    held.answer(all_but("")).await;
    assert_eq!(kept(&first.await.expect("no panic")), []);
    second.arrived().await.answer(all_but("")).await;
    assert_eq!(kept(&other.await.expect("no panic")), []);
    assert_eq!(writer.await.expect("no panic").status, 204);
}

/// Rule 3: a list without an answer is a doubt on each of its objects.
#[tokio::test]
async fn a_lost_answer_leaves_each_object_in_doubt() {
    let (backend, proxy, _) = scene("").await;
    let addr = proxy.addr();
    backend.once("POST", BUCKET, Answer::close());
    assert_eq!(delete(addr, &[("a", ""), ("b", "")]).await.status, 502);
    for target in ["/bucket/a", "/bucket/b"] {
        let refused = put(addr, target, &[], "three").await;
        assert_eq!(refused.status, 409, "{refused:?}");
    }
    assert_eq!(put(addr, "/bucket/c", &[], "four").await.status, 201);
}

/// Rule 13: a list has at most a thousand objects. So many are one write.
#[tokio::test]
async fn a_thousand_objects_are_one_write() {
    let (backend, proxy, _) = scene("").await;
    let keys: Vec<String> = (0..=1000).map(|number| format!("object-{number}")).collect();
    let objects: Vec<_> = keys.iter().map(|key| (key.as_str(), "")).collect();
    let refused = delete(proxy.addr(), &objects).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.text().contains("<Code>MalformedXML</Code>"), "{refused:?}");
    assert_eq!(backend.count("POST", "*"), 0);
    assert_eq!(kept(&delete(proxy.addr(), &objects[1..]).await), []);
    assert_eq!(backend.count("POST", "*"), 1);
    assert_eq!(backend.count("HEAD", "*"), 0, "no object has a condition");
}

/// A client that deletes by lists, in front of a server that heeds no condition in them.
#[tokio::test]
async fn boto3_deletes_lists() {
    let server = S3rver::start().await;
    let proxy = proxy_before(server.addr).await;
    let expected: Value = json!({
        "with a stale tag": { "a": "PreconditionFailed", "b": "OperationAborted" },
        "still there": ["a", "b"],
        "with the tags": {},
        "left": [],
        "a whole bucket": 30,
        "empty": [],
    });
    assert_eq!(boto3_of(clients::python(), proxy.addr(), "lists").await, expected);
}
