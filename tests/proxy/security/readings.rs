//! Requests that some backend reads in another way than their plain spelling says (DESIGN, section 3, rule 18).

use std::path::Path;

use crate::support::{
    backend::{Backend, Validators},
    leases::{Grant, acquire, leasing},
    proxy::Proxy,
    raw::{put, send},
};

const DOC: &str = "/doc";

/// A leased document behind a route with these lines.
async fn leased(lines: &str) -> (Backend, Proxy, Grant) {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = leasing(&backend).route(lines).start().await;
    let grant = acquire(proxy.addr(), DOC, "30").await;
    (backend, proxy, grant)
}

/// How many requests of these methods have come.
fn count(backend: &Backend, methods: &[&str]) -> usize {
    methods.iter().map(|method| backend.count(method, "*")).sum()
}

/// Rule 18: a removal of many objects, and a form that names its object, are refused in each spelling that a server of S3
/// takes for them. The proxy is the one of the shipped file.
#[tokio::test]
async fn what_names_its_objects_in_its_body_is_refused_in_every_spelling() {
    let backend = Backend::with(Validators::Tags).await;
    backend.put("/bucket/object", "one");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/s3.toml");
    let text = std::fs::read_to_string(file).expect("the file");
    let text = text.replace("listen = [\"127.0.0.1:8080\"]", "{listen}");
    let text = text.replace("127.0.0.1:9000", &backend.addr().to_string());
    let keys = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let proxy = Proxy::start_with(&text, &keys).await;
    let addr = proxy.addr();
    for query in ["delete", "%64elete", "d%65lete", "DELETE", "a=1&delet%45=", "a;delete", "+delete", "delete%00"] {
        for method in ["POST", "post", "Post"] {
            let refused = send(addr, method, &format!("/bucket?{query}"), &[], "<Delete/>").await;
            // The one spelling that the proxy reads as a list, with no object in it.
            let status = if (method, query) == ("POST", "delete") { 400 } else { 501 };
            assert_eq!(refused.status, status, "{method} {query}: {refused:?}");
        }
    }
    let (json, form) = (("Content-Type", "application/json"), ("Content-Type", "multipart/form-data; boundary=x"));
    for (fields, status) in [
        (&[form][..], 501),
        (&[("Content-Type", " MULTIPART/Form-Data")], 501),
        (&[("Content-Type", "application/x-www-form-urlencoded")], 501),
        (&[json, form], 400),
        (&[("Content-Type", "application/json, multipart/form-data; boundary=x")], 400),
    ] {
        let refused = send(addr, "POST", "/bucket", fields, "key=object&file=two").await;
        assert_eq!(refused.status, status, "{fields:?}: {refused:?}");
    }
    assert_eq!(count(&backend, &["POST", "post", "Post"]), 0);
    assert_eq!(backend.content("/bucket/object").as_deref(), Some("one"));
}

/// Rule 18: some servers read a method in any letter case.
#[tokio::test]
async fn letter_case_leads_around_no_lease() {
    let (backend, proxy, grant) = leased("lease.guards = [\"read\"]\nrequire_methods = [\"PUT\"]").await;
    for method in ["GET", "get", "Get", "gEt"] {
        send(proxy.addr(), method, DOC, &[], "").await.refused(412, "lease-id-missing");
    }
    assert_eq!(count(&backend, &["get", "Get", "gEt"]), 0);
    send(proxy.addr(), "get", DOC, &[("Lease-Id", &grant.id)], "").await;
    assert_eq!(count(&backend, &["get"]), 1, "the holder's");

    let (backend, proxy, grant) = leased("lease.guards = [\"delete\"]\nrequire_methods = [\"PUT\"]").await;
    for method in ["DELETE", "delete", "Delete"] {
        send(proxy.addr(), method, DOC, &[], "").await.refused(412, "lease-id-missing");
    }
    assert_eq!(count(&backend, &["DELETE", "delete", "Delete"]), 0);
    send(proxy.addr(), "delete", DOC, &[("Lease-Id", &grant.id)], "").await;
    assert_eq!(count(&backend, &["delete"]), 1, "the holder's");
}

/// Rule 18: a backend may honour a method in a field, or ignore it.
#[tokio::test]
async fn a_method_beside_the_own_one_leads_around_no_lease() {
    let judging =
        |guards: &str| format!("lease.guards = [\"{guards}\"]\nmethod_override = \"judge\"\nrequire = \"never\"");
    for (guards, method, named) in [
        ("delete", "PUT", "DELETE"),
        ("delete", "POST", "delete"),
        ("read", "POST", "GET"),
        ("read", "PUT", "get"),
        ("write", "GET", "PUT"),
    ] {
        let (backend, proxy, grant) = leased(&judging(guards)).await;
        for carrier in ["X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override"] {
            send(proxy.addr(), method, DOC, &[(carrier, named)], "").await.refused(412, "lease-id-missing");
        }
        for query in ["_method", "%5Fmethod", "_METHOD", ".method"] {
            let target = format!("{DOC}?{query}={named}");
            send(proxy.addr(), method, &target, &[], "").await.refused(412, "lease-id-missing");
        }
        assert_eq!(count(&backend, &["PUT", "POST", "DELETE"]), 0, "{method} {named}");
        let fields = [("X-HTTP-Method", named), ("Lease-Id", &*grant.id)];
        let holder = send(proxy.addr(), method, DOC, &fields, "").await;
        assert!(holder.status < 400, "{method} {named}: {holder:?}");
    }
    let (backend, proxy, _) = leased(&judging("delete")).await;
    let patched = send(proxy.addr(), "PUT", DOC, &[("X-HTTP-Method", "PATCH")], "two").await;
    assert_eq!((patched.status, backend.count("PUT", DOC)), (204, 1), "no reading removes it");
}

/// Rule 18: frameworks take the method of a POST from its form.
#[tokio::test]
async fn a_method_in_a_form_leads_around_no_lease() {
    const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
    let (backend, proxy, grant) = leased("lease.guards = [\"delete\"]\nmethod_override = \"judge\"").await;
    let addr = proxy.addr();
    for body in ["_method=delete", "a=1&%5Fmethod=DELETE"] {
        send(addr, "POST", DOC, &[FORM], body).await.refused(412, "lease-id-missing");
    }
    let parts = "--x\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--x--\r\n";
    let multipart = ("Content-Type", "multipart/form-data; boundary=x");
    send(addr, "POST", DOC, &[multipart], parts).await.refused(400, "method-override");
    send(addr, "POST", DOC, &[FORM], "_method=MOVE").await.refused(400, "method-override");
    assert_eq!(backend.count("POST", DOC), 0);
    assert_eq!(send(addr, "POST", DOC, &[FORM], "a=1&b=_method").await.status, 204);
    let fields = [FORM, ("Lease-Id", &*grant.id)];
    assert_eq!(send(addr, "POST", DOC, &fields, "_method=DELETE").await.status, 204, "the holder's");
    assert_eq!(backend.content(DOC).as_deref(), Some("onea=1&b=_method_method=DELETE"), "the form is sent on");

    let (backend, proxy, _) = leased("").await;
    send(proxy.addr(), "POST", DOC, &[FORM], "_method=PUT").await.refused(400, "method-override");
    assert_eq!(backend.count("POST", DOC), 0);
}

/// Rule 18: Laravel, Phoenix and Parse Server take it from JSON, and ASP.NET from a parameter with the name of the field.
#[tokio::test]
async fn a_method_in_json_or_in_another_parameter_leads_around_no_lease() {
    const JSON: (&str, &str) = ("Content-Type", "application/json");
    let (backend, proxy, grant) = leased("lease.guards = [\"delete\"]\nmethod_override = \"judge\"").await;
    let addr = proxy.addr();
    let text = ("Content-Type", "text/plain");
    for fields in [&[JSON][..], &[text], &[]] {
        let body = r#"{"a": {"b": "}"}, "_method": "delete"}"#;
        send(addr, "POST", DOC, fields, body).await.refused(412, "lease-id-missing");
    }
    send(addr, "POST", DOC, &[JSON], r#"{"_method": ["DELETE"]}"#).await.refused(400, "method-override");
    let target = format!("{DOC}?X-HTTP-Method-Override=DELETE");
    send(addr, "POST", &target, &[], "").await.refused(412, "lease-id-missing");
    assert_eq!(backend.count("POST", "*"), 0);
    let held = [JSON, ("Lease-Id", &*grant.id)];
    assert_eq!(send(addr, "POST", DOC, &held, r#"{"_method": "DELETE"}"#).await.status, 204, "the holder's");
    assert_eq!(send(addr, "POST", DOC, &[JSON], r#"{"a": "_method"}"#).await.status, 204);

    let (backend, proxy, _) = leased("").await;
    let addr = proxy.addr();
    for (fields, body) in [
        (&[JSON][..], "{\"_method\":\"PUT\"}"),
        (&[("Content-Type", "application/x-www-form-urlencoded; charset=utf-16")], "a=1"),
        (&[("Content-Type", "application/x-www-form-urlencoded"), ("Content-Encoding", "gzip")], "a=1"),
        (
            &[("Content-Type", "multipart/form-data; boundary=x")],
            "--x\r\nContent-Disposition: form-data;\r\n name=\"_method\"\r\n\r\nDELETE\r\n--x--\r\n",
        ),
    ] {
        send(addr, "POST", DOC, fields, body).await.refused(400, "method-override");
    }
    assert_eq!(backend.count("POST", DOC), 0);
}

/// Rule 18: a field names another path to IIS, Symfony, Flask and others.
#[tokio::test]
async fn no_field_names_another_path() {
    let backend = Backend::start().await;
    backend.put(DOC, "one");
    let proxy = Proxy::to(backend.addr()).route("require = \"never\"").start().await;
    for name in ["X-Original-URL", "X-Rewrite-URL", "Script-Name", "X-Script-Name", "Path-Info"] {
        put(proxy.addr(), "/other", &[(name, DOC)], "two").await.refused(400, "ambiguous-target");
        send(proxy.addr(), "GET", "/other", &[(name, DOC)], "").await.refused(400, "ambiguous-target");
        let spelled = name.replace('-', "_");
        put(proxy.addr(), "/other", &[(&spelled, DOC)], "two").await.refused(400, "malformed-request");
    }
    assert_eq!(backend.requests().len(), 0);
    put(proxy.addr(), "/other", &[("X-Forwarded-Prefix", DOC), ("X-Forwarded-Uri", DOC)], "two").await;
    let sent = &backend.seen("PUT", "/other")[0];
    assert_eq!((sent.header("x-forwarded-prefix"), sent.header("x-forwarded-uri")), (None, None));
    let trusting = Proxy::to(backend.addr()).route("require = \"never\"").server("trusted_proxies = [\"127.0.0.1\"]");
    let proxy = trusting.start().await;
    put(proxy.addr(), "/third", &[("X-Forwarded-Prefix", "/api")], "two").await;
    assert_eq!(backend.seen("PUT", "/third")[0].header("x-forwarded-prefix"), Some("/api"));
}
