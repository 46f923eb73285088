//! The proxy sends what it has judged (DESIGN, section 3, rule 14): requests with random fields, compared byte by byte
//! with those that the backend gets. Each gets 400, and the backend sees no byte of it. Or the backend sees exactly the
//! fields that the table lets through, unchanged, and those that the proxy adds.

use std::collections::BTreeMap;

use ifmatch::core::http::fields::{FieldWriter, Remover, TABLE, of};

use crate::support::{
    backend::{Backend, Request},
    proxy::Proxy,
    random::Random,
    raw::Connection,
};

const REQUESTS: usize = 600;

/// Two routes to one backend: `/open` judges nothing, `/kept` does.
const ROUTES: &str = "
[[routes]]
name = \"open\"
path = \"/open/{*rest}\"
upstream = \"backend\"
policy = \"last-writer-wins\"

[[routes]]
name = \"kept\"
path = \"/kept/{*rest}\"
upstream = \"backend\"
policy = \"optimistic\"
etag = \"version\"
other_writers = false
";

/// Names without a meaning.
const OWN: [&str; 8] = ["X-Own", "x_own", "X-Other", "Accept", "Content-Type", "x-amz-meta-if_match", "If", "X.Y"];

/// Fields that have a test of their own for what is in them; here a value by chance would be refused for that.
const ELSEWHERE: [&str; 8] =
    ["host", "content-length", "transfer-encoding", "expect", "upgrade", "connection", "http2-settings", "destination"];

/// Members of `Connection`, right and wrong.
const OPTIONS: [&str; 22] = [
    "close",
    "keep-alive",
    "Keep-Alive",
    "",
    " ",
    "\t",
    "X-Own",
    "x-own ",
    "\tX-OTHER",
    "x_own",
    "Accept",
    "te",
    "trailer",
    "X-Absent",
    "If-Match",
    "x-forwarded-for",
    "Fencing-Token",
    "\"X-Own\"",
    "X-Own;q=1",
    "two words",
    ":path",
    "\u{e9}",
];

/// They name another path, and the upstream of both routes is guarded.
const PATHS: [&str; 5] = ["x-original-url", "x-rewrite-url", "script-name", "x-script-name", "path-info"];

struct Sent {
    method: &'static str,
    target: String,
    fields: Vec<(String, String)>,
    body: &'static str,
}

impl Sent {
    fn by_chance(random: &mut Random, number: usize) -> Self {
        let route = ["open", "kept"][random.below(2)];
        let (method, body) = [("GET", ""), ("POST", "x"), ("POST", "")][random.below(3)];
        let mut fields =
            vec![("Host".to_owned(), "test".to_owned()), ("Content-Length".to_owned(), body.len().to_string())];
        for _ in 0..random.below(7) {
            fields.push((name(random), value(random)));
        }
        for _ in 0..[0, 0, 1, 1, 2][random.below(5)] {
            let most = if random.is_one_of(5) { 14 } else { 4 };
            let members: Vec<&str> = (0..random.below(most)).map(|_| option(random)).collect();
            fields.insert(random.below(fields.len() + 1), (spelled(random, "Connection"), members.join(",")));
        }
        // Several lines of it are joined on their way, which another test looks at.
        let mut cookies = 0;
        fields.retain(|(name, _)| !name.eq_ignore_ascii_case("cookie") || std::mem::replace(&mut cookies, 1) == 0);
        Self { method, target: format!("/{route}/{number}"), fields, body }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.fields {
            text.extend([name, ":", value, "\r\n"]);
        }
        text.push_str("\r\n");
        text.push_str(self.body);
        text.chars().map(|character| u8::try_from(character).expect("Latin-1")).collect()
    }

    fn options(&self) -> Vec<&str> {
        let lines = self.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
        let options = lines.flat_map(|(_, value)| value.split(',')).map(|option| option.trim_matches([' ', '\t']));
        options.filter(|option| !option.is_empty()).collect()
    }

    /// True if the table has it refused.
    fn is_refused(&self) -> bool {
        let options = self.options();
        let is_token = |octet: char| octet.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(octet);
        let is_kept =
            |option: &str| of(&option.to_ascii_lowercase()).is_some_and(|field| field.remover != Remover::Hop);
        let second = |name: &str| {
            let hyphened = name.to_ascii_lowercase().replace(['_', '.', '~'], "-");
            let meant = of(&hyphened).is_some_and(|field| field.is_judged || field.writer != FieldWriter::Client);
            hyphened != name.to_ascii_lowercase() && meant
        };
        options.len() > 9
            || options.iter().any(|option| !option.chars().all(is_token) || is_kept(option))
            || self.fields.iter().any(|(name, _)| second(name) || PATHS.contains(&&*name.to_ascii_lowercase()))
    }

    /// The fields that must arrive: the values of each in their order, under the name as it was spelled.
    fn expected(&self) -> Fields {
        let options: Vec<String> = self.options().into_iter().map(str::to_ascii_lowercase).collect();
        let is_guarded = self.target.starts_with("/kept");
        let stays = |name: &str| {
            let name = name.to_ascii_lowercase();
            let field = of(&name);
            let remover = field.map_or(Remover::Nobody, |field| field.remover);
            remover != Remover::Hop
                && field.is_none_or(|field| field.writer != FieldWriter::Proxy)
                && !(is_guarded && matches!(remover, Remover::Guard | Remover::Verdict))
                && !options.contains(&name)
        };
        let mut fields: Vec<_> = self.fields.iter().filter(|(name, _)| stays(name)).cloned().collect();
        fields.push(("Via".to_owned(), "1.1 ifmatch".to_owned()));
        if is_guarded && self.method == "GET" {
            fields.retain(|(name, _)| name != "Content-Length");
        }
        group(&fields, is_guarded)
    }
}

/// Per name in lower case, and there in order: each line with its name as it was spelled.
type Fields = BTreeMap<String, Vec<(String, String)>>;

/// The guard decides itself which conditions its upstream may see.
fn group(fields: &[(String, String)], is_guarded: bool) -> Fields {
    let mut groups = Fields::new();
    for (name, value) in fields {
        let lower = name.to_ascii_lowercase();
        if !(is_guarded && of(&lower).is_some_and(|field| field.remover == Remover::Verdict)) {
            let value = value.trim_matches([' ', '\t']).to_owned();
            groups.entry(lower).or_default().push((name.clone(), value));
        }
    }
    groups
}

fn arrived(request: &Request) -> Fields {
    group(&request.headers.0, request.target.starts_with("/kept"))
}

fn name(random: &mut Random) -> String {
    let name = if random.is_one_of(40) {
        OWN[random.below(OWN.len())].to_owned()
    } else {
        let field = TABLE[random.below(TABLE.len())].name;
        if ELSEWHERE.contains(&field) { "X-Own".to_owned() } else { field.replace('*', "tra") }
    };
    let name = spelled(random, &name);
    match random.below(20) {
        0 => name.replacen('-', "_", 1),
        1 => name.replace('-', "_"),
        2 => name.replacen('-', ".", 1),
        _ => name,
    }
}

/// In any case.
fn spelled(random: &mut Random, name: &str) -> String {
    match random.below(3) {
        0 => name.to_ascii_lowercase(),
        1 => name.to_ascii_uppercase(),
        _ => name.to_owned(),
    }
}

fn value(random: &mut Random) -> String {
    ["", " ", " 1", "\t a, b ,c \t", "\"x\"", " caf\u{e9}", " ,", "  if-match"][random.below(8)].to_owned()
}

fn option(random: &mut Random) -> &'static str {
    // Most of them right: else hardly a request would get through.
    if random.is_one_of(80) { OPTIONS[random.below(14)] } else { OPTIONS[random.below(OPTIONS.len())] }
}

/// Rule 14: random requests arrive as the table of fields says, byte by byte.
#[tokio::test]
async fn the_backend_gets_what_was_judged() {
    let backend = Backend::start().await;
    let file = Proxy::to(backend.addr()).configuration();
    let (tables, _) = file.split_once("[[routes]]").expect("a route");
    let proxy = Proxy::start(&format!("{tables}{ROUTES}")).await;
    let mut random = Random::new("fields");
    let (mut refused, mut passed) = (0, 0);
    for number in 0..REQUESTS {
        let sent = Sent::by_chance(&mut random, number);
        let mut connection = Connection::open(proxy.addr()).await;
        connection.expect_response_to(sent.method);
        connection.send_bytes(sent.bytes()).await;
        let response = connection.read_response().await;
        let seen = backend.seen("*", &sent.target);
        let shown = || format!("{}\n{response:?}\n{seen:?}", String::from_utf8_lossy(&sent.bytes()));
        if sent.is_refused() {
            assert_eq!((response.status, seen.len()), (400, 0), "{}", shown());
            refused += 1;
        } else if sent.target.starts_with("/open") {
            assert_eq!(seen.len(), 1, "{}", shown());
        }
        // The requests of the proxy itself are no part of it.
        for request in seen.iter().filter(|request| request.method == sent.method) {
            assert_eq!(arrived(request), sent.expected(), "{}", shown());
            passed += 1;
        }
    }
    assert!(refused > REQUESTS / 10 && passed > REQUESTS / 4, "{refused} refused, {passed} passed");
}
