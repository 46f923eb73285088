//! The door and the readings of a method, of the fields that name a path, and of a content type.

use super::*;

/// DESIGN, section 4: what happens to each method on a guarded route.
#[test]
fn a_method_is_judged_passed_or_refused() {
    for (method, fields, expected) in [
        ("GET", &[][..], Guarded(DOCS, "backend:/docs/1", "GET")),
        ("HEAD", &[], Guarded(DOCS, "backend:/docs/1", "HEAD")),
        ("PROPFIND", &[], Guarded(DOCS, "backend:/docs/1", "PROPFIND")),
        ("POST", &[], Guarded(DOCS, "backend:/docs/1", "POST")),
        ("DELETE", &[], Guarded(DOCS, "backend:/docs/1", "DELETE")),
        ("BREW", &[], Guarded(DOCS, "backend:/docs/1", "BREW")),
        ("get", &[], Guarded(DOCS, "backend:/docs/1", "get")),
        ("OPTIONS", &[], PassedWithoutUpgrade(DOCS)),
        ("TRACE", &[], Refused(Code::MethodNotAllowed)),
        ("CONNECT", &[], Refused(Code::MethodNotAllowed)),
        ("COPY", &["destination: /docs/2"], Guarded(DOCS, "backend:/docs/1", "COPY")),
        ("MOVE", &["destination: /docs/2"], Guarded(DOCS, "backend:/docs/1", "MOVE")),
        ("MOVE", &[], Refused(Code::MalformedRequest)),
        ("PUT", &["destination: /docs/2"], Refused(Code::NotSupported)),
        ("GET", &["x-http-method: GET"], Refused(Code::MethodOverride)),
        ("POST", &["x-method-override: PUT"], Refused(Code::MethodOverride)),
    ] {
        assert_eq!(outcome(method, "/docs/1", fields), expected, "{method} {fields:?}");
    }
}

/// Rule 18: a path that only a field names could be that of another resource.
#[test]
fn a_field_names_no_other_path_of_a_guarded_upstream() {
    for field in ["x-original-url", "x-rewrite-url", "script-name", "x-script-name", "path-info"] {
        let fields = [&*format!("{field}: /docs/1")];
        for (target, expected) in [
            ("/docs/2", Refused(Code::AmbiguousTarget)),
            ("/beside/2", Refused(Code::AmbiguousTarget)),
            ("/open/2", Passed(OPEN)),
            ("/watch/2", Observed(WATCH, "backend:/watch/2", "PUT")),
        ] {
            assert_eq!(outcome("PUT", target, &fields), expected, "{field} {target}");
        }
        assert_eq!(outcome("GET", "/docs/2", &fields), Refused(Code::AmbiguousTarget), "{field}");
        let spelled = [&*format!("{}: /docs/1", field.replace('-', "_"))];
        assert_eq!(outcome("PUT", "/docs/2", &spelled), Refused(Code::MalformedRequest), "{field}");
        let nominated = [fields[0], &*format!("connection: {field}")];
        assert_eq!(outcome("PUT", "/docs/2", &nominated), Refused(Code::MalformedRequest), "{field}");
    }
}

/// Rule 18: content of two types has two readings.
#[test]
fn content_has_one_type() {
    let (json, form) = ("content-type: application/json", "content-type: multipart/form-data");
    let both = ["content-type: application/json, multipart/form-data"];
    for (target, fields, expected) in [
        ("/docs/1", &[json][..], Guarded(DOCS, "backend:/docs/1", "POST")),
        ("/docs/1", &[json, form], Refused(Code::MalformedRequest)),
        ("/docs/1", &both, Refused(Code::MalformedRequest)),
        ("/beside/1", &[json, form], Passed(BESIDE)),
        ("/watch/1", &[json, form], ObservedRefusal(Code::MalformedRequest)),
    ] {
        assert_eq!(outcome("POST", target, fields), expected, "{target} {fields:?}");
    }
}

/// DESIGN, section 8: the answer to a preflight lists the proxy's own fields if a guard is enforced. Other OPTIONS
/// requests pass.
#[test]
fn a_preflight_goes_to_the_guard() {
    let preflight = ["origin: https://a.test", "access-control-request-method: PUT"];
    for (method, target, fields, expected) in [
        ("OPTIONS", "/docs/1", &preflight[..], Guarded(DOCS, "backend:/docs/1", "OPTIONS")),
        ("OPTIONS", "/docs/1", &preflight[..1], PassedWithoutUpgrade(DOCS)),
        ("OPTIONS", "/docs/1", &preflight[1..], PassedWithoutUpgrade(DOCS)),
        ("OPTIONS", "/watch/1", &preflight, PassedWithoutUpgrade(WATCH)),
        ("OPTIONS", "/open/1", &preflight, Passed(OPEN)),
        ("PUT", "/docs/1", &preflight, Guarded(DOCS, "backend:/docs/1", "PUT")),
    ] {
        assert_eq!(outcome(method, target, fields), expected, "{method} {target} {fields:?}");
    }
}

/// DESIGN, section 4: on a route that judges the method in a field, the stricter of the two counts.
#[test]
fn a_method_in_a_field_can_only_make_a_request_stricter() {
    let judged = |method| Guarded(JUDGE, "backend:/judge/1", method);
    for (method, fields, expected) in [
        ("GET", &["x-http-method: PUT"][..], judged("PUT")),
        ("POST", &["x-http-method-override: patch"], judged("PATCH")),
        ("POST", &["x-method-override: GET"], judged("POST")),
        ("PUT", &["x-http-method: GET"], judged("PUT")),
        ("PUT", &["x-http-method: POST"], judged("PUT")),
        ("PUT", &["x-http-method: BREW"], judged("PUT")),
        ("BREW", &["x-http-method: PUT"], judged("PUT")),
        ("OPTIONS", &["x-http-method: DELETE"], judged("DELETE")),
        ("DELETE", &["x-http-method: OPTIONS"], judged("DELETE")),
        ("GET", &["x-http-method: PUT", "x-method-override: PUT"], judged("PUT")),
        ("GET", &["x-http-method: PUT", "x-method-override: GET"], Refused(Code::MethodOverride)),
        ("GET", &["x-http-method: GET", "x-http-method: PUT"], Refused(Code::MethodOverride)),
        ("GET", &["x-http-method: GET, PUT"], Refused(Code::MethodOverride)),
        ("GET", &["x-http-method: "], Refused(Code::MethodOverride)),
        ("GET", &["x-http-method: TRACE"], Refused(Code::MethodNotAllowed)),
        ("TRACE", &["x-http-method: GET"], Refused(Code::MethodNotAllowed)),
        ("GET", &["x-http-method: MOVE"], Refused(Code::NotSupported)),
    ] {
        assert_eq!(outcome(method, "/judge/1", fields), expected, "{method} {fields:?}");
    }
}

/// The query names a method as a header field does.
#[test]
fn a_method_in_the_query_is_refused_or_judged() {
    let judged = |method| Guarded(JUDGE, "backend:/judge/1", method);
    for (method, query, expected) in [
        ("POST", "_method=PUT", judged("PUT")),
        ("POST", "_method=put&a=1", judged("PUT")),
        ("GET", "a=1&%5Fmethod=%64elete", judged("DELETE")),
        ("POST", ".method=PUT", judged("PUT")),
        ("PUT", "_method=GET", judged("PUT")),
        ("POST", "_method=PUT&_method=PUT", judged("PUT")),
        ("POST", "_method=PUT;_method=DELETE", Refused(Code::MethodOverride)),
        ("POST", "_method", Refused(Code::MethodOverride)),
        ("POST", "_method=P UT", Refused(Code::MethodOverride)),
        ("GET", "_method=TRACE", Refused(Code::MethodNotAllowed)),
        ("POST", "method=PUT&a_method=PUT&_methods=PUT&a=_method", judged("POST")),
    ] {
        assert_eq!(outcome(method, &format!("/judge/1?{query}"), &[]), expected, "{method} {query}");
        let is_named = expected != judged("POST");
        let by_default =
            if is_named { Refused(Code::MethodOverride) } else { Guarded(DOCS, "backend:/docs/1", "POST") };
        assert_eq!(outcome(method, &format!("/docs/1?{query}"), &[]), by_default, "{method} {query}");
    }
    let two = outcome("POST", "/judge/1?_method=PUT", &["x-http-method: DELETE"]);
    assert_eq!(two, Refused(Code::MethodOverride), "the two name different methods");
}
