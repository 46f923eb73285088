//! The git-lfs dialect: the meaning of documents, and the answer to each refusal.

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::{refusals::refuse, *};
use crate::{
    core::{
        cause::{LeaseInTheWay, Reason},
        lease::{Denied, HolderLabel},
        records::record::Availability,
        refusal::{Code, Refusal},
        tags::checksum::Checksum,
    },
    dialect::{Grammar as _, Incoming, Intent},
    testing::guard,
};

const OID: &str = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";

fn told(refusal: &Refusal) -> (u16, Value) {
    let headers = HeaderMap::new();
    let request = Incoming { method: &Method::POST, other_methods: &[], target: b"/game/locks", headers: &headers };
    let document = GitLfs.refusal(request, refusal);
    assert_eq!(document.content_type, MEDIA_TYPE);
    (document.status.as_u16(), serde_json::from_str(&document.body).expect("JSON"))
}

fn lock() -> Lock {
    let path = LockPath::parse("art/hero.psd").expect("a path");
    Lock::new(LockName::of("0a"), &path, "ann", "2026-01-01T00:00:00Z".to_owned())
}

/// Rule 3: an obstacle that passes is no lock of another client.
#[test]
fn only_the_lock_of_another_client_is_a_conflict() {
    let holder = HolderLabel::parse(b"ann").ok();
    let held = || Denied::Held { remaining: None, holder: holder.clone(), is_breaking: false };
    for (refusal, status) in [
        (refuse(&held()), 409),
        (refuse(&held()).because(Reason::LeaseAwaited), 503),
        (refuse(&Denied::Busy(Availability::Free)), 503),
        (Refusal::new(Code::WriteInFlight, "later"), 503),
        (refuse(&Denied::IdMismatch), 404),
        (refuse(&Denied::NotPresent), 404),
        (not_owner(Some("ann")), 403),
        (no_force(), 403),
        (too_large(), 413),
        (Refusal::new(Code::StoreUnavailable, "later"), 503),
    ] {
        let (told, document) = told(&refusal);
        assert_eq!((told, &document["status"]), (status, &status.into()), "{refusal:?}");
        assert_eq!(document["message"], document["detail"], "clients show the message");
    }
}

#[test]
fn a_conflict_tells_the_lock_and_its_owner() {
    let denied = Denied::Held { remaining: None, holder: HolderLabel::parse(b"ann").ok(), is_breaking: false };
    let mut refusal = refuse(&denied);
    let note = Some(lock().to_note().expect("a short note"));
    refusal.cause_mut().lease = Some(LeaseInTheWay { holder: None, remaining: None, note });
    let (_, document) = told(&refusal);
    assert_eq!(document["lock"], serde_json::to_value(lock()).expect("JSON"));
    assert!(document["message"].as_str().is_some_and(|text| text.starts_with("ann has locked the path")));
    refusal.code = Code::WriteInFlight;
    assert_eq!(told(&refusal).1["lock"], Value::Null);
}

#[test]
fn an_object_is_written_as_its_name_says() {
    let headers = HeaderMap::new();
    let target = format!("/game/objects/4d/7a/{OID}");
    let read = |method: &Method| {
        let request = Incoming { method, other_methods: &[], target: target.as_bytes(), headers: &headers };
        let call = GitLfs.read(request, &guard(), false).expect("an operation");
        (call.intent, call.operation, call.checksums)
    };
    let expected = Checksum::Sha256(ObjectId::parse(OID).expect("a name").sha256());
    assert_eq!(read(&Method::PUT), (Intent::Write, Some("Upload"), vec![expected]));
    assert_eq!(read(&Method::GET), (Intent::Read, Some("Download"), vec![]));
}

#[test]
fn a_batch_tells_what_the_server_has() {
    let parse = |body: &Value| BatchRequest::parse(body.to_string().as_bytes()).map_err(|refusal| told(&refusal).0);
    let of = |operation: &str| json!({ "operation": operation, "objects": [{ "oid": OID, "size": 3 }] });
    let (upload, download) = (parse(&of("upload")).expect("a batch"), parse(&of("download")).expect("a batch"));
    let told = |request: &BatchRequest, found: FoundObject| {
        let answer = batch_answer(request, &[Some((found, "http://x/o".to_owned()))]);
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!((&answer["transfer"], &answer["hash_algo"]), (&"basic".into(), &"sha256".into()));
        let object = &answer["objects"][0];
        let [error, href] = [&object["error"]["code"], &object["actions"]].map(Clone::clone);
        let href = ["upload", "download"].map(|action| href[action]["href"].as_str().map(str::to_owned));
        (error.as_u64(), href[0].is_some(), href[1].is_some())
    };
    for (found, when_upload, when_download) in [
        (FoundObject::Absent, (None, true, false), (Some(404), false, false)),
        (FoundObject::Present(Some(3)), (None, false, false), (None, false, true)),
        (FoundObject::Present(Some(2)), (None, true, false), (Some(404), false, false)),
        (FoundObject::Present(None), (None, true, false), (None, false, true)),
    ] {
        assert_eq!((told(&upload, found), told(&download, found)), (when_upload, when_download), "{found:?}");
    }
    let many = vec![json!({ "oid": OID, "size": 3 }); 1_001];
    for (body, status) in [
        (json!({ "operation": "verify", "objects": [] }), 422),
        (json!({ "operation": "upload" }), 422),
        (json!({ "operation": "upload", "objects": [{ "oid": OID, "size": -1 }] }), 422),
        (json!({ "operation": "upload", "objects": [], "hash_algo": "sha512" }), 409),
        (json!({ "operation": "upload", "objects": many }), 413),
        (json!([]), 422),
    ] {
        assert_eq!(parse(&body), Err(status), "{body:.80}");
    }
}

#[test]
fn documents_about_locks_are_read_as_far_as_they_go() {
    let code = |refusal: Refusal| told(&refusal).0;
    let path = LockPath::parse("a/b").expect("a path");
    let ref_of = r#"{"path":"a/b","ref":{"name":"refs/heads/main"}}"#;
    assert_eq!(PathToLock::parse(ref_of.as_bytes()).map_err(code), Ok(PathToLock { path }));
    for body in ["", "{}", r#"{"path":""}"#, r#"{"path":"/a"}"#, r#"{"path":7}"#] {
        assert_eq!(PathToLock::parse(body.as_bytes()).map_err(code), Err(422), "{body}");
    }
    for (body, expected) in [("", Ok(false)), ("{}", Ok(false)), (r#"{"force":true}"#, Ok(true)), ("x", Err(422))] {
        let forced = UnlockRequest::parse(body.as_bytes()).map(|request| request.is_forced);
        assert_eq!(forced.map_err(code), expected, "{body}");
    }
    let page = |limit| PageWanted::of(None, limit).expect("a page");
    for (body, expected) in [
        ("", Ok(page(None))),
        (r#"{"limit":0,"cursor":""}"#, Ok(page(None))),
        (r#"{"limit":7,"ref":{"name":"a"}}"#, Ok(page(Some(7)))),
        (r#"{"cursor":"1"}"#, Err(400)),
        ("[", Err(422)),
    ] {
        assert_eq!(VerifyRequest::parse(body.as_bytes()).map(|request| request.page).map_err(code), expected, "{body}");
    }
}
