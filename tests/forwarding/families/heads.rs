//! Fields and targets that mean something to a proxy, or are odd.

use crate::{
    invariants::Rule,
    script::{Case, Framing},
};

pub fn cases() -> Vec<Case> {
    [requests(), cookies(), of_http_1(), answers()].concat()
}

/// Fields that both versions can carry.
fn requests() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        ("te-trailers", "TE", "trailers"),
        ("via", "Via", "1.0 fred, 1.1 p.example.net"),
        ("forwarded", "Forwarded", "for=192.0.2.43;proto=https"),
        ("x-forwarded-for", "X-Forwarded-For", "192.0.2.43"),
        ("x-forwarded-host", "X-Forwarded-Host", "other.test"),
        ("x-forwarded-proto", "X-Forwarded-Proto", "https"),
        ("x-real-ip", "X-Real-IP", "192.0.2.43"),
        ("max-forwards", "Max-Forwards", "0"),
        ("empty-value", "X-Empty", ""),
        ("latin", "X-Latin", "caf\u{e9}"),
        ("tab", "X-Tab", "a\tb"),
        ("underscore", "X_Under", "score"),
        ("traceparent", "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("accept-encoding", "Accept-Encoding", "gzip, br"),
        ("range", "Range", "bytes=0-1"),
        ("if-match", "If-Match", "\"a\""),
        ("lease-id", "Lease-Id", "x"),
        ("fencing-token", "Fencing-Token", "9"),
        ("priority", "Priority", "u=1, i"),
        ("expect-odd", "Expect", "the-impossible"),
        ("trailer", "Trailer", "X-Late"),
        ("proxy-authorization", "Proxy-Authorization", "Basic dTpw"),
        ("authorization", "Authorization", "Bearer abc"),
        ("early-data", "Early-Data", "1"),
    ]
    .into_iter()
    .map(|(name, field, value)| Case::new(format!("fields/{name}"), "GET").with(&[(field, value)]))
    .collect();
    let many: Vec<(String, String)> =
        (0..100).map(|number| (format!("X-Field-{number}"), number.to_string())).collect();
    let mut hundred = Case::new("fields/hundred", "GET");
    hundred.fields = many;
    cases.push(hundred);
    for size in [1_000, 8_000, 16_000, 30_000, 40_000] {
        cases.push(Case::new(format!("fields/long-{size}"), "GET").with(&[("X-Long", &"x".repeat(size))]));
    }
    cases.push(Case::new("fields/twice", "GET").with(&[("X-Twice", "1"), ("X-Other", "2"), ("X-Twice", "1")]));
    for method in ["OPTIONS", "TRACE", "HEAD", "PATCH", "PROPFIND", "BREW", "get", "QUERY", "LINK"] {
        cases.push(Case::new(format!("methods/{method}"), method));
        if !matches!(method, "HEAD" | "TRACE") {
            let name = format!("methods/{method}-with-body");
            cases.push(Case::new(name, method).body(Framing::Length(4), "body"));
        }
    }
    for (name, target) in [
        ("query", "/a?b=c&d"),
        ("empty-query", "/a?"),
        ("encoded", "/a%2Fb%20c"),
        ("lower-hex", "/%c3%a9"),
        ("broken-hex", "/%zz"),
        ("dots", "/a/../b/./c"),
        ("slashes", "//a//b"),
        ("semicolon", "/a;v=1"),
        ("root", "/"),
        ("bar", "/a|b"),
        ("tilde", "/~a!$&'()*+,;=:@"),
    ] {
        let mut case = Case::new(format!("targets/{name}"), "GET");
        target.clone_into(&mut case.target);
        cases.push(case);
    }
    cases
}

fn cookies() -> Vec<Case> {
    let case = |name: &str, method: &str, crumbs: &[&str]| {
        let pairs: Vec<(&str, &str)> = crumbs.iter().map(|crumb| ("cookie", *crumb)).collect();
        let mut case = Case::new(format!("cookies/{name}"), method).with(&pairs);
        if method != "GET" {
            case = case.body(Framing::Length(4), "body");
        }
        case
    };
    let mut cases = Vec::new();
    for method in ["GET", "PUT", "POST"] {
        let name = method.to_lowercase();
        cases.push(case(&format!("{name}-one"), method, &["a=1; b=2"]).rule(Rule::Cookie("a=1; b=2")));
        cases.push(case(&format!("{name}-two"), method, &["a=1", "b=2"]).rule(Rule::Cookie("a=1; b=2")));
        cases.push(
            case(&format!("{name}-three"), method, &["a=1", "b=2; c=3", "d=4"])
                .rule(Rule::Cookie("a=1; b=2; c=3; d=4")),
        );
    }
    cases
}

/// As bytes.
fn of_http_1() -> Vec<Case> {
    let head =
        |name: &str, line: &str, lines: &str| Case::raw(format!("heads/{name}"), format!("{line}\r\n{lines}\r\n"));
    let get = |name: &str, lines: &str| head(name, "GET / HTTP/1.1", &format!("Host: {{host}}\r\n{lines}"));
    vec![
        get("connection-names-a-field", "Connection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n"),
        get("connection-names-a-field-and-keep-alive", "Connection: keep-alive, x-hop\r\nX-Hop: 1\r\n"),
        get("connection-close", "Connection: close\r\n"),
        get("connection-twice", "Connection: close\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"),
        get("connection-names-host", "Connection: Host\r\n"),
        get("connection-names-cookie", "Connection: Cookie\r\nCookie: a=b\r\n"),
        get("connection-is-empty", "Connection: \r\n"),
        get("connection-is-no-token", "Connection: a b\r\n"),
        get("keep-alive", "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"),
        get("proxy-connection", "Proxy-Connection: keep-alive\r\n"),
        get("te-gzip", "TE: gzip, trailers\r\nConnection: TE\r\n"),
        get("upgrade-without-connection", "Upgrade: websocket\r\n"),
        get(
            "upgrade-h2c",
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        ),
        get("upgrade-unknown", "Connection: Upgrade\r\nUpgrade: foo/2\r\n"),
        get("two-hosts", "Host: {host}\r\n"),
        get("two-cookies", "Cookie: a=1\r\nCookie: b=2\r\n"),
        get("fold", "X-Fold: a\r\n b\r\n"),
        get("space-before-colon", "X-Space : a\r\n"),
        get("no-colon", "nonsense\r\n"),
        get("nul", "X-Nul: a\0b\r\n"),
        get("white-space-around", "X-White:   a  \t\r\n"),
        get("length-twice-equal", "Content-Length: 0\r\nContent-Length: 0\r\n"),
        get("length-twice-different", "Content-Length: 0\r\nContent-Length: 1\r\n"),
        get("length-list", "Content-Length: 0, 0\r\n"),
        get("length-plus", "Content-Length: +0\r\n"),
        get("length-of-zero", "Content-Length: 0\r\n"),
        get("line-feeds-alone", "X-Bare: a\nX-Next: b\r\n"),
        Case::raw("heads/line-feeds-everywhere", "GET / HTTP/1.1\nHost: {host}\n\n"),
        Case::raw("heads/crlf-before", "\r\nGET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        head("no-host", "GET / HTTP/1.1", ""),
        head("absolute", "GET http://{host}/a?b HTTP/1.1", "Host: {host}\r\n"),
        head("absolute-other-host", "GET http://{host}/a HTTP/1.1", "Host: other.test\r\n"),
        head("absolute-https", "GET https://{host}/a HTTP/1.1", "Host: {host}\r\n"),
        head("absolute-without-path", "GET http://{host} HTTP/1.1", "Host: {host}\r\n"),
        head("asterisk", "OPTIONS * HTTP/1.1", "Host: {host}\r\n"),
        head("asterisk-of-get", "GET * HTTP/1.1", "Host: {host}\r\n"),
        head("connect", "CONNECT {host}:80 HTTP/1.1", "Host: {host}:80\r\n"),
        head("connect-with-length", "CONNECT {host}:80 HTTP/1.1", "Host: {host}:80\r\nContent-Length: 0\r\n"),
        head("host-with-port", "GET / HTTP/1.1", "Host: {host}:8080\r\n"),
        head("host-in-capitals", "GET / HTTP/1.1", "HOST: {host}\r\n"),
        head("version-1-0", "GET / HTTP/1.0", "Host: {host}\r\n"),
        head("version-1-0-keep-alive", "GET / HTTP/1.0", "Host: {host}\r\nConnection: keep-alive\r\n"),
        head("version-1-2", "GET / HTTP/1.2", "Host: {host}\r\n"),
        head("version-2-0", "GET / HTTP/2.0", "Host: {host}\r\n"),
        head("version-missing", "GET /", "Host: {host}\r\n"),
        head("two-spaces", "GET  / HTTP/1.1", "Host: {host}\r\n"),
        head("fragment", "GET /a#b HTTP/1.1", "Host: {host}\r\n"),
        head("no-slash", "GET a HTTP/1.1", "Host: {host}\r\n"),
    ]
}

fn answers() -> Vec<Case> {
    let answer = |name: &str, lines: &str| {
        let bytes = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 2\r\n\r\nok");
        Case::new(format!("answers/{name}"), "GET").answer(bytes)
    };
    let hundred = (0..100).map(|number| format!("X-Field-{number}: {number}\r\n")).collect::<Vec<_>>().concat();
    vec![
        answer("fold", "X-Fold: a\r\n b\r\n"),
        answer("line-feed-alone", "X-Bare: a\nX-Next: b\r\n"),
        answer("space-before-colon", "X-Space : a\r\n"),
        answer("no-colon", "nonsense\r\n"),
        answer("nul", "X-Nul: a\0b\r\n"),
        answer("latin", "X-Latin: caf\u{e9}\r\n"),
        answer("empty-value", "X-Empty:\r\n"),
        answer("connection-names-a-field", "Connection: X-Hop\r\nX-Hop: 1\r\n"),
        answer("keep-alive", "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"),
        answer("proxy-connection", "Proxy-Connection: keep-alive\r\n"),
        answer("upgrade", "Connection: Upgrade\r\nUpgrade: h2c\r\n"),
        answer("upgrade-without-connection", "Upgrade: h2c\r\n"),
        answer("via", "Via: 1.1 inner\r\n"),
        answer("date", "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        answer("two-dates", "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n"),
        answer("set-cookies", "Set-Cookie: a=1\r\nX-Between: 1\r\nSet-Cookie: b=2\r\n"),
        answer("server", "Server: plain/1\r\n"),
        answer("proxy-status", "Proxy-Status: inner; error=dns_error\r\n"),
        answer("proxy-authenticate", "Proxy-Authenticate: Basic\r\n"),
        answer("lease-id", "Lease-Id: x\r\n"),
        answer("length-twice-equal", "Content-Length: 2\r\n"),
        answer("length-twice-different", "Content-Length: 3\r\n"),
        answer("te", "TE: trailers\r\n"),
        answer("hundred", &hundred),
        answer("long", &format!("X-Long: {}\r\n", "x".repeat(30_000))),
        answer("alt-svc", "Alt-Svc: h3=\":443\"\r\n"),
    ]
}
