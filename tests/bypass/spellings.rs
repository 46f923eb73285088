//! Other spellings of a path, of names and of methods, which some server reads as the plain ones.

use crate::support::random::Random;

pub fn one<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len())]
}

/// A method in some case.
pub fn method(random: &mut Random, method: &str) -> String {
    match random.below(10) {
        0 => method.to_lowercase(),
        1 => in_some_case(random, method),
        _ => method.to_owned(),
    }
}

fn in_some_case(random: &mut Random, text: &str) -> String {
    text.chars().map(|each| if random.is_one_of(30) { toggled(each) } else { each }).collect()
}

fn toggled(letter: char) -> char {
    if letter.is_ascii_uppercase() { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() }
}

/// A path with up to two changes.
pub fn path(random: &mut Random, plain: &str) -> String {
    let mut path = plain.to_owned();
    for _ in 0..random.below(3) {
        path = changed(random, &path);
    }
    path
}

fn changed(random: &mut Random, path: &str) -> String {
    let inner = random.below(path.len().max(1));
    let slash = path.rfind('/').unwrap_or_default();
    let (before, after) = path.split_at(slash);
    match random.below(16) {
        0 | 1 => in_some_case(random, path),
        2 | 3 => encoded(random, path),
        4 => format!("{before}/{after}"),
        5 => format!("{before}/.{after}"),
        6 => format!("{before}/other/..{after}"),
        7 => format!("{path}/"),
        8 => format!("{path}{}", one(random, &[".json", ".xml", ".", "%20", "%00", "::$DATA", "~", ".JSON"])),
        9 => format!("{path}{}", one(random, &[";v=1", ";", "%3b", "?", "#", "%3f", "%23"])),
        10 => format!("{before}%2f{}", after.trim_start_matches('/')),
        11 => format!("{before}\\{}", after.trim_start_matches('/')),
        12 => format!("{before}/%2e%2e{path}"),
        13 => format!("/{path}"),
        14 => format!("{path}{}", one(random, &["/.", "/..", "//", "/%2e", "/x/.."])),
        _ if path.is_char_boundary(inner) => {
            format!("{}%{:02X}{}", &path[..inner], path.as_bytes()[inner], &path[inner + 1..])
        }
        _ => path.to_owned(),
    }
}

/// Some octets as percent-encodings.
pub fn encoded(random: &mut Random, text: &str) -> String {
    let octet = |each: u8, upper| if upper { format!("%{each:02X}") } else { format!("%{each:02x}") };
    let each = |each: u8| match random.below(4) {
        0 if each.is_ascii_alphanumeric() => octet(each, random.is_one_of(50)),
        _ => char::from(each).to_string(),
    };
    text.bytes().map(each).collect()
}

/// A name in a query as some server reads it.
pub fn parameter(random: &mut Random, name: &str) -> String {
    let with = |separator: &str| name.replace('_', separator);
    match random.below(16) {
        0 => with("."),
        1 => with("+"),
        2 => with("%20"),
        3 => with("["),
        4 => with("%5b"),
        5 => with("%5F"),
        6 => with("%2E"),
        7 | 8 => in_some_case(random, name),
        9 | 10 => encoded(random, name),
        11 => format!("{name}[]"),
        12 => format!("{}{name}", one(random, &["+", "%20", "%00", "&", ";"])),
        13 => format!("{name}{}", one(random, &["%00", "[x]", "[0]", "%5B%5D", "+"])),
        _ => name.to_owned(),
    }
}
