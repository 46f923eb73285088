//! Bodies that name a document or an object, as some reader of forms, JSON or XML reads them.

use crate::{
    requests::Kind,
    spellings::{self, one},
    support::random::Random,
};

/// The content that a thief would write.
const STOLEN: &str = "stolen";

const TYPES: [&str; 12] = [
    "application/json",
    "application/json; charset=utf-8",
    "application/vnd.documents+json",
    "APPLICATION/JSON",
    "application/x-www-form-urlencoded",
    "application/x-www-form-urlencoded; charset=utf-8",
    "Application/X-WWW-Form-URLencoded",
    "multipart/form-data; boundary=b",
    "multipart/form-data;boundary=\"b\"",
    "text/plain",
    "application/xml",
    "application/json, application/x-www-form-urlencoded",
];

/// The lines of `Content-Type`, and the body.
pub fn body(random: &mut Random, kind: Kind, name: &str) -> (String, String) {
    let (mut own, body) = match (kind, random.below(5)) {
        (Kind::Files, _) | (_, 0) => ("text/plain", STOLEN.to_owned()),
        (Kind::Documents, 1 | 2) => ("application/json", object(random, name)),
        (Kind::Documents, 3) => ("application/x-www-form-urlencoded", form(random, name)),
        (Kind::Objects, 1 | 2) => ("application/xml", deletion(random, name)),
        (_, _) => ("multipart/form-data; boundary=b", parts(random, kind, name)),
    };
    if random.is_one_of(25) {
        own = one(random, &TYPES);
    }
    let first = format!("Content-Type: {own}\r\n");
    let lines = match random.below(12) {
        0 => String::new(),
        1 => first + &format!("Content-Type: {}\r\n", one(random, &TYPES)),
        2 => format!("Content-Type: {}\r\n", one(random, &TYPES)) + &first,
        _ => first,
    };
    (lines, body)
}

/// The member `sku`, in a spelling that some reader takes for it.
fn member(random: &mut Random) -> &'static str {
    one(
        random,
        &["sku", "sku", "sku", "SKU", "Sku", "\u{17f}ku", "s\u{212a}u", "\\u0073ku", "s\\u212au", "sku ", "s\\u0000ku"],
    )
}

fn value(random: &mut Random, name: &str) -> String {
    match random.below(6) {
        0 => format!("\"{}\"", name.to_uppercase()),
        1 => format!("\"{}\"", name.replace('k', "\\u006b")),
        2 => format!("[\"{name}\"]"),
        _ => format!("\"{name}\""),
    }
}

fn object(random: &mut Random, name: &str) -> String {
    let named = format!("\"{}\":{}", member(random), value(random, name));
    let written = format!("\"v\":\"{STOLEN}\"");
    match random.below(8) {
        0 => format!("{{\"a\":\"&sku={name}&v={STOLEN}&b=\"}}"),
        1 => format!("{{\"sku\":\"other\",{named},{written}}}"),
        2 => format!("{{{named},\"sku\":\"other\",{written}}}"),
        3 => format!("\u{feff}{{{named},{written}}}"),
        4 => format!("{{{named},{written}}} {{}}"),
        5 => format!("{{{named},{written},}}"),
        _ => format!("{{{named},{written}}}"),
    }
}

fn form(random: &mut Random, name: &str) -> String {
    let (sku, name) = (spellings::encoded(random, "sku"), spellings::encoded(random, name));
    match random.below(4) {
        0 => format!("sku=other&{sku}={name}&v={STOLEN}"),
        1 => format!("v={STOLEN};{sku}={name}"),
        2 => format!("_method=DELETE&{sku}={name}&v={STOLEN}"),
        _ => format!("{sku}={name}&v={STOLEN}"),
    }
}

fn parts(random: &mut Random, kind: Kind, name: &str) -> String {
    let key = if matches!(kind, Kind::Objects) { "key" } else { "sku" };
    let (end, quoted) = (one(random, &["\r\n", "\n"]), one(random, &["\"", ""]));
    let part = |name: &str, value: &str| {
        format!("--b{end}Content-Disposition: form-data; name={quoted}{name}{quoted}{end}{end}{value}{end}")
    };
    let file = format!(
        "--b{end}Content-Disposition: form-data; name=\"file\"; filename=\"f\"{end}{end}{STOLEN}{end}--b--{end}"
    );
    format!("{}{}{file}", part(key, name), part("v", STOLEN))
}

fn deletion(random: &mut Random, name: &str) -> String {
    let space = one(random, &["", " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""]);
    format!("<Delete{space}><Object><Key>{name}</Key></Object><Quiet>true</Quiet></Delete>")
}
