//! `ifmatch explain` says what the proxy does: generated requests on generated configurations, first explained and then
//! sent. `IFMATCH_SEED` repeats a run.

use std::{env, process::Command};

use fastrand::Rng;

use crate::support::{backend::Backend, proxy::Proxy, raw::send, response::Response};

/// The number of configurations in a run, and of requests to each.
const CONFIGURATIONS: usize = 12;
const REQUESTS: usize = 25;

/// Refusals that the request and the configuration alone decide. `explain` must foretell each of them.
const FORETOLD: [&str; 12] = [
    "ambiguous-target",
    "destination-elsewhere",
    "destination-is-source",
    "idempotency-key-missing",
    "lease-id-missing",
    "malformed-lease-header",
    "malformed-precondition",
    "malformed-request",
    "method-not-allowed",
    "method-override",
    "no-route",
    "not-supported",
];

fn route(random: &mut Rng) -> String {
    let pessimistic = random.bool();
    let mut lines = vec![if pessimistic { "policy = \"pessimistic\"" } else { "policy = \"optimistic\"" }.to_owned()];
    let sources = ["\"content\"", "\"version\"\nother_writers = false", "\"upstream\"", "\"delegate\""];
    lines.push(format!("etag = {}", random.choice(sources).expect("one")));
    lines.push(format!("require = \"{}\"", random.choice(["never", "existing", "always"]).expect("one")));
    lines.push(format!("idempotency = \"{}\"", random.choice(["off", "accept", "required"]).expect("one")));
    let some = [
        "allow_any = true",
        "require_methods = [\"PUT\", \"POST\"]",
        "append_methods = []",
        "safe_methods = [\"REPORT\"]",
        "method_override = \"judge\"",
        "path_params = \"keep\"",
    ];
    lines.extend(some.iter().filter(|_| random.bool()).map(|&line| line.to_owned()));
    if pessimistic {
        let guards = random.choice(["[\"write\"]", "[\"read\", \"write\"]", "[\"delete\"]"]).expect("one");
        lines.push(format!("[routes.lease]\nguards = {guards}\nrequired = {}\nauth = \"none\"", random.bool()));
    } else if random.u8(..4) == 0 {
        lines.push("observe = true".to_owned());
    }
    lines.join("\n") + "\n"
}

struct Sent {
    method: &'static str,
    target: &'static str,
    fields: Vec<(&'static str, String)>,
}

fn request(random: &mut Rng) -> Sent {
    let methods =
        ["GET", "HEAD", "PUT", "PUT", "PATCH", "DELETE", "POST", "REPORT", "OPTIONS", "TRACE", "COPY", "MOVE"];
    let targets = ["/doc/1", "/doc/1", "/doc/none", "/doc/a;b", "/doc/%2e%2e/x", "/doc//1", "/doc/1?a=b", "/nowhere"];
    // A key that another request has used is refused, which explain cannot know.
    let key = format!("\"{}\"", random.u64(..));
    let fields = [
        ("If-Match", "*"),
        ("If-Match", "\"a\""),
        ("If-Match", "a"),
        ("If-None-Match", "*"),
        ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("Lease-Id", "b7a3f6f6-6a4e-4d5e-8a52-0d4f2f7f9d11"),
        ("Lease-Id", "secret"),
        ("Idempotency-Key", &key),
        ("Idempotency-Key", "no string"),
        ("X-HTTP-Method", "DELETE"),
        ("Overwrite", "F"),
    ];
    let destinations = ["/doc/2", "/doc/2", "/doc/1", "http://other.test/doc/2", "/doc/2?a", "/nowhere"];
    let count = random.usize(..4);
    let mut fields = random.choose_multiple(fields, count);
    fields.sort_unstable();
    fields.dedup_by_key(|(name, _)| *name);
    let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    let (method, target) = (random.choice(methods).expect("one"), random.choice(targets).expect("one"));
    if matches!(method, "COPY" | "MOVE") && random.u8(..6) > 0 {
        fields.push(("Destination", random.choice(destinations).expect("one").to_owned()));
    }
    Sent { method, target, fields }
}

/// Returns what `explain` says of the outcome.
fn foretold(proxy: &Proxy, sent: &Sent) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
    command.arg("explain").arg(proxy.file()).arg(sent.method).arg(format!("http://{}{}", proxy.addr(), sent.target));
    for (name, value) in &sent.fields {
        command.arg("-H").arg(format!("{name}: {value}"));
    }
    let output = command.output().expect("the program starts");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome = text.lines().find_map(|line| line.strip_prefix("outcome")).map(str::trim);
    outcome.unwrap_or_else(|| panic!("no outcome in {text}")).to_owned()
}

/// Returns the code of a refusal by the proxy.
fn refusal(response: &Response) -> Option<String> {
    let (_, code) = response.header("proxy-status")?.split_once("details=\"")?;
    Some(code.trim_end_matches('"').to_owned())
}

#[track_caller]
fn compare(said: &str, response: &Response, context: &str) {
    let code = refusal(response);
    let (number, rest) = said.split_once(' ').unwrap_or((said, ""));
    if let Ok(status) = number.parse::<u16>() {
        let expected = rest.split(':').next().map(str::to_owned);
        assert_eq!((response.status, code), (status, expected), "{context}");
    } else if said.contains("passes") {
        assert_eq!(code, None, "{context}");
    } else {
        let is_foretold = |code: &String| FORETOLD.contains(&code.as_str());
        assert_eq!(code.filter(is_foretold), None, "{context}");
    }
}

#[tokio::test]
async fn what_explain_foretells_is_what_the_proxy_does() {
    let seed = env::var("IFMATCH_SEED").ok().map_or_else(|| fastrand::u64(..), |text| text.parse().expect("a number"));
    println!("IFMATCH_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let backend = Backend::start().await;
    for _ in 0..CONFIGURATIONS {
        let lines = route(&mut random);
        let server = backend.addr();
        let configuration = format!(
            "[server]\n{{listen}}\nspool_dir = \"{{spool}}\"\nthreads = 1\n[upstreams.one]\nservers = [\"{server}\"]\n\
             [[routes]]\nname = \"documents\"\npath = \"/doc/{{id}}\"\nupstream = \"one\"\n{lines}"
        );
        let proxy = Proxy::start(&configuration).await;
        for _ in 0..REQUESTS {
            backend.put("/doc/1", "one");
            let sent = request(&mut random);
            let said = foretold(&proxy, &sent);
            let fields: Vec<_> = sent.fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let response = send(proxy.addr(), sent.method, sent.target, &fields, "x").await;
            let Sent { method, target, .. } = sent;
            compare(
                &said,
                &response,
                &format!("{method} {target} {fields:?} on\n{lines}said: {said}\ngot {response:?}"),
            );
        }
    }
}
