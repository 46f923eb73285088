//! The guided walk: real exchanges with the proxy, each shown as the curl command that does the same.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use super::super::print;

/// How long an exchange over the loopback interface may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The document that the walk is about.
const PATH: &str = "/notes/1";
/// The fields of an answer that are shown.
const SHOWN: [&str; 1] = ["etag"];

/// One step: what it shows, the request, and the status that it must end with.
struct DemoStep<'a> {
    says: &'a str,
    method: &'a str,
    condition: Option<(&'a str, &'a str)>,
    body: Option<&'a str>,
    status: &'a str,
}

/// An answer, as text.
struct DemoAnswer {
    head: String,
    body: String,
}

/// Goes through all steps. The error is the first step that did not end as it must.
pub(super) fn walk(proxy: SocketAddr) -> io::Result<()> {
    let none = "*";
    let step = |says, method, condition, body, status| DemoStep { says, method, condition, body, status };
    take(
        proxy,
        &step("Create a note. It must not exist yet:", "PUT", Some(("If-None-Match", none)), Some("milk"), "201"),
    )?;
    take(
        proxy,
        &step("Create it once more. Now it does exist:", "PUT", Some(("If-None-Match", none)), Some("eggs"), "412"),
    )?;
    let read = take(proxy, &step("Ann and Bob read it. The tag is ifmatch's:", "GET", None, None, "200"))?;
    let tag = read.field("etag").ok_or_else(|| io::Error::other("the note that was read has no ETag"))?;
    let condition = Some(("If-Match", tag));
    take(proxy, &step("Ann writes, with the tag that she read:", "PUT", condition, Some("milk, bread"), "204"))?;
    take(proxy, &step("Bob writes, with the same tag. It is stale:", "PUT", condition, Some("milk, tea"), "412"))?;
    take(proxy, &step("Bob writes without any tag:", "PUT", None, Some("milk, tea"), "428"))?;
    take(proxy, &step("Bob reads again. Ann's bread is not lost:", "GET", None, None, "200"))?;
    Ok(())
}

fn take(proxy: SocketAddr, step: &DemoStep<'_>) -> io::Result<DemoAnswer> {
    print(format_args!("\n# {}", step.says));
    print(format_args!("$ {}", command(proxy, step)));
    let answer = ask(proxy, step)?;
    for line in answer.head.lines().filter(|line| is_shown(line)) {
        print(line);
    }
    if !answer.body.is_empty() {
        print(&answer.body);
    }
    match answer.head.split(' ').nth(1) {
        Some(status) if status == step.status => Ok(answer),
        _ => Err(io::Error::other(format!("this step should have ended with {}", step.status))),
    }
}

fn command(proxy: SocketAddr, step: &DemoStep<'_>) -> String {
    let method = if step.method == "GET" { String::new() } else { format!(" -X {}", step.method) };
    let condition = step.condition.map_or_else(String::new, |(name, value)| format!(" -H '{name}: {value}'"));
    let body = step.body.map_or_else(String::new, |body| format!(" -d '{body}'"));
    format!("curl -i{method} http://{proxy}{PATH}{condition}{body}")
}

fn ask(proxy: SocketAddr, step: &DemoStep<'_>) -> io::Result<DemoAnswer> {
    let mut stream = TcpStream::connect(proxy)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let condition = step.condition.map_or_else(String::new, |(name, value)| format!("{name}: {value}\r\n"));
    let body = step.body.unwrap_or_default();
    let length = step.body.map_or_else(String::new, |body| format!("Content-Length: {}\r\n", body.len()));
    let method = step.method;
    stream.write_all(
        format!("{method} {PATH} HTTP/1.1\r\nHost: {proxy}\r\nConnection: close\r\n{condition}{length}\r\n{body}")
            .as_bytes(),
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("the answer has no whole head"))?;
    Ok(DemoAnswer { head: head.to_owned(), body: body.to_owned() })
}

/// True if a line of a head is its status or a field worth showing.
fn is_shown(line: &str) -> bool {
    line.starts_with("HTTP/")
        || line.split_once(':').is_some_and(|(name, _)| SHOWN.iter().any(|shown| name.eq_ignore_ascii_case(shown)))
}

impl DemoAnswer {
    fn field(&self, wanted: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
    }
}
