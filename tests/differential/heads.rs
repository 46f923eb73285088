//! Random requests. Each ends at every place where some reader could take it to end, so that no server waits for more.

use crate::support::random::Random;

const METHODS: [&str; 8] = ["GET", "GET", "GET", "POST", "POST", "PUT", "DELETE", "PATCH"];

/// Parts of targets, the plain ones first.
const PIECES: [&str; 30] = [
    "a",
    "b/",
    "%41",
    "1",
    "?x=1",
    "&y=%20",
    "-_.~",
    "c",
    "/",
    "//",
    "/./",
    "/../",
    "%2e%2e/",
    "%2f",
    "%5c",
    ";v=1",
    "\\",
    "%",
    "%zz",
    "%00",
    "#f",
    " ",
    "\t",
    "\u{1}",
    "\u{7f}",
    "\u{c3}\u{a9}",
    "\"",
    "<>",
    "|^`{}",
    "*:@!$'(),",
];
const PLAIN_PIECES: usize = 9;

const NAMES: [&str; 26] = [
    "Accept",
    "X-Own",
    "X-Own",
    "x-own",
    "Cookie",
    "Content-Type",
    "User-Agent",
    "Authorization",
    "X-Forwarded-For",
    "Via",
    "Range",
    "Cache-Control",
    "X-Empty",
    "Proxy",
    "Keep-Alive",
    "TE",
    "Trailer",
    "Upgrade",
    "Proxy-Connection",
    "X_Own",
    "X.Own",
    "If_Match",
    "X-Forwarded_For",
    "Content_Length",
    "Fencing-Token",
    "X-Real-IP",
];

/// Parts of values, the plain ones first.
const VALUES: [&str; 26] = [
    "a",
    "text/plain",
    "1",
    ", b",
    "; q=0.5",
    "\"quoted, text\"",
    " ",
    "\t",
    "",
    ",",
    "caf\u{e9}",
    "\u{85}X-Own: 2",
    "\u{a0}",
    "\u{ff}",
    "=?utf-8?q?a?=",
    ":",
    "\\",
    "x\u{0}y",
    "\u{b}",
    "\u{c}",
    "\u{1c}",
    "\u{7f}",
    "\r",
    "\n",
    "\r\n ",
    "\u{1}",
];
const PLAIN_VALUES: usize = 16;

const COLONS: [&str; 7] = [": ", ": ", ":", ":\t", ":   ", " : ", "\t:"];
const OPTIONS: [&str; 10] =
    ["close", "keep-alive", "X-Own", "", "x-own, Accept", "If-Match", "\"a\"", "te", "Via", "upgrade"];
const HOSTS: [&str; 12] =
    ["test", "test", "test", "TEST:80", "test.", "[::1]:80", "", "test:x", "test:80:80", "a,b", "test ", "a/b"];

/// How a body of five octets is framed.
const FRAMINGS: [(&str, &str); 26] = [
    ("Content-Length: 5\r\n", "hello"),
    ("Content-Length: 5\r\n", "hello"),
    ("Content-Length: 5\r\n", "hello"),
    ("content-length:5\r\n", "hello"),
    ("Content-Length: 5, 5\r\n", "hello"),
    ("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
    ("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"),
    ("Content-Length: +5\r\n", "hello"),
    ("Content-Length: 0x5\r\n", "hello"),
    ("Content-Length: 05\r\n", "hello"),
    ("Content-Length: 0\r\n", ""),
    ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\n", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
    ("Transfer-Encoding: Chunked\r\n", "5;a=b\r\nhello\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\n", "5 ; a=\"b\"\r\nhello\r\n00\r\nT: x\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\n", "\r\n5\r\nhello\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\n", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\n", "5\nhello\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\n", "0x5\r\nhello\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked, chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ("Transfer-Encoding: identity\r\n", ""),
    ("Transfer-Encoding: gzip, chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\nContent-Length: 15\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ("Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", "hello"),
    ("Transfer-Encoding\u{b}: chunked\r\nContent-Length: 5\r\n", "hello"),
];

/// The bytes of a request whose target begins like this.
pub fn request(random: &mut Random, beginning: &str) -> Vec<u8> {
    let mut text = format!("{} {}", one(random, &METHODS), target(random, beginning));
    let version =
        if random.is_one_of(96) { "HTTP/1.1" } else { one(random, &["HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1"]) };
    text = [&text, " ", version, "\r\n"].concat();
    let host = if random.is_one_of(90) { "test" } else { one(random, &HOSTS) };
    let mut fields = vec![format!("Host: {host}\r\n")];
    let (framing, body) = if random.is_one_of(50) { ("", "") } else { *framing(random) };
    fields.push(framing.to_owned());
    for _ in 0..random.below(6) {
        fields.push(field(random));
    }
    if random.is_one_of(15) {
        fields.push(format!("Connection: {}\r\n", one(random, &OPTIONS)));
    }
    // One of them goes to another place.
    let at = random.below(fields.len());
    let moved = fields.swap_remove(at);
    fields.insert(random.below(fields.len() + 1), moved);
    text.push_str(&fields.concat());
    text.push_str("\r\n");
    text.push_str(body);
    if random.is_one_of(2) {
        text = text.replacen("\r\n", "\n", 1 + random.below(3));
    }
    text.chars().map(|character| u8::try_from(character).expect("Latin-1")).collect()
}

fn one<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len())]
}

fn framing(random: &mut Random) -> &'static (&'static str, &'static str) {
    let right = [0, 0, 3, 10, 11, 12, 13, 14];
    let at = if random.is_one_of(70) { right[random.below(right.len())] } else { random.below(FRAMINGS.len()) };
    &FRAMINGS[at]
}

fn target(random: &mut Random, beginning: &str) -> String {
    let mut target = beginning.to_owned();
    for _ in 0..random.below(5) {
        let count = if random.is_one_of(85) { PLAIN_PIECES } else { PIECES.len() };
        target.push_str(PIECES[random.below(count)]);
    }
    if random.is_one_of(3) { format!("http://test{target}") } else { target }
}

fn field(random: &mut Random) -> String {
    let mut name = one(random, &NAMES).to_owned();
    if random.is_one_of(2) {
        name.insert(random.below(name.len() + 1), ['\u{0}', ' ', '(', '\u{e9}', '\u{7f}', '\r'][random.below(6)]);
    }
    let colon = if random.is_one_of(95) { COLONS[random.below(5)] } else { COLONS[random.below(7)] };
    let mut value = String::new();
    for _ in 0..random.below(5) {
        let count = if random.is_one_of(96) { PLAIN_VALUES } else { VALUES.len() };
        value.push_str(VALUES[random.below(count)]);
    }
    if random.is_one_of(1) {
        value = "long".repeat(1000);
    }
    format!("{name}{colon}{value}\r\n")
}
