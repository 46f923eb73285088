//! The document that asks for a lock (RFC 4918 section 14.11).
//!
//! # Design
//!
//! *Why are names checked in the owner?* It is kept as it was written, and shown in documents of this proxy. Each prefix
//! in it is declared anew there. One that nothing declares would break them.

use std::fmt::Write as _;

use quick_xml::{
    NsReader,
    events::{BytesStart, Event},
    name::{PrefixDeclaration, ResolveResult},
};

use super::{
    NAMESPACE,
    markup::{NESTING_MAX, Unreadable, content_of, escaped, name_in, next, reader, text_of, value_of},
};
use crate::core::lease::LeaseMode;

/// The longest document that is read, in bytes.
pub const LOCK_INFO_BYTES_MAX: usize = 64 * 1024;
/// The longest description of an owner that is kept with the lock, in bytes.
pub const OWNER_BYTES_MAX: usize = 1024;

/// The lock that a client wants, and the owner that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedLock {
    /// The mode: if it is shared, others may hold shared locks too.
    pub mode: LeaseMode,
    /// The element that describes the owner. It is complete: it declares all prefixes that it uses.
    pub owner: Option<Box<str>>,
}

/// The reason why a document asks for no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockInfoFault {
    /// It has another encoding than UTF-8.
    #[error("send the lockinfo in UTF-8")]
    Encoding,
    /// It is longer than the limit.
    #[error("a lockinfo has at most {LOCK_INFO_BYTES_MAX} bytes, and its owner {OWNER_BYTES_MAX}")]
    TooLarge,
    /// It cannot be read as XML.
    #[error("the lockinfo is no XML without a document type")]
    Malformed,
    /// It asks for something else than an exclusive or a shared write lock.
    #[error("a lockinfo asks for one scope, exclusive or shared, and for the type write")]
    Unsupported,
}

impl From<Unreadable> for LockInfoFault {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Encoding => Self::Encoding,
            Unreadable::Markup => Self::Malformed,
        }
    }
}

impl WantedLock {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// The document asks for no lock that can be granted, or cannot be read.
    pub fn parse(document: &[u8]) -> Result<Self, LockInfoFault> {
        if document.len() > LOCK_INFO_BYTES_MAX {
            return Err(LockInfoFault::TooLarge);
        }
        let text = text_of(document)?;
        let mut found = Found::default();
        let mut reader = reader(text);
        let mut path: Vec<Option<&'static str>> = Vec::new();
        let mut is_over = false;
        loop {
            let event = next(&mut reader)?;
            let (start, is_empty) = match event {
                Event::Eof if is_over => return found.lock_info(),
                Event::Eof => return Err(LockInfoFault::Malformed),
                Event::End(_) => {
                    path.pop();
                    is_over = path.is_empty();
                    continue;
                }
                Event::Start(start) => (start, false),
                Event::Empty(start) => (start, true),
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) if path.is_empty() && !is_blank(&event) => {
                    return Err(LockInfoFault::Malformed);
                }
                Event::GeneralRef(_) if content_of(&event).is_none() => return Err(LockInfoFault::Malformed),
                _ => continue,
            };
            if is_over || path.len() >= NESTING_MAX {
                return Err(LockInfoFault::Malformed);
            }
            check_names(&reader, &start)?;
            let name = name_in(&reader, &start, NAMESPACE).and_then(known);
            match (&path[..], name) {
                ([], Some("lockinfo")) | ([_], _) => {}
                ([_, Some("lockscope")], Some("exclusive")) => found.scope(LeaseMode::Exclusive)?,
                ([_, Some("lockscope")], Some("shared")) => found.scope(LeaseMode::SHARED)?,
                ([_, Some("locktype")], Some("write")) => found.is_write = true,
                ([] | [_, Some("lockscope" | "locktype")], _) => return Err(LockInfoFault::Unsupported),
                _ => {}
            }
            if path.len() == 1 && name == Some("owner") {
                let content = if is_empty { "" } else { inner(&mut reader, text)? };
                found.owner = Some(owner(&reader, &start, content)?);
                continue;
            }
            if is_empty {
                is_over = path.is_empty();
            } else {
                path.push(name);
            }
        }
    }
}

fn known(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 7] = ["lockinfo", "lockscope", "exclusive", "shared", "locktype", "write", "owner"];
    NAMES.into_iter().find(|known| *known == name)
}

#[derive(Default)]
struct Found {
    mode: Option<LeaseMode>,
    is_write: bool,
    owner: Option<Box<str>>,
}

impl Found {
    fn scope(&mut self, mode: LeaseMode) -> Result<(), LockInfoFault> {
        if self.mode.replace(mode).is_some() { Err(LockInfoFault::Unsupported) } else { Ok(()) }
    }

    fn lock_info(self) -> Result<WantedLock, LockInfoFault> {
        let mode = self.mode.filter(|_| self.is_write).ok_or(LockInfoFault::Unsupported)?;
        Ok(WantedLock { mode, owner: self.owner })
    }
}

fn is_blank(event: &Event<'_>) -> bool {
    matches!(event, Event::Text(text) if text.xml10_content().trim_ascii().is_empty())
}

/// Checks the names of an element and its attributes, and their values.
fn check_names(reader: &NsReader<&[u8]>, start: &BytesStart<'_>) -> Result<(), LockInfoFault> {
    let is_unknown = |namespace: ResolveResult<'_>| matches!(namespace, ResolveResult::Unknown(_));
    let is_fine = is_name(start.name().0)
        && !is_unknown(reader.resolver().resolve_element(start.name()).0)
        && are_apart(start.attributes_raw())
        && start.attributes().all(|attribute| {
            attribute.is_ok_and(|attribute| {
                is_name(attribute.key.0)
                    && !attribute.value.contains('<')
                    && value_of(&attribute).is_some()
                    && (attribute.key.as_namespace_binding().is_some()
                        || !is_unknown(reader.resolver().resolve_attribute(attribute.key).0))
            })
        });
    if is_fine { Ok(()) } else { Err(LockInfoFault::Malformed) }
}

/// True if a space stands before each attribute.
fn are_apart(attributes: &str) -> bool {
    let mut quote = None;
    let mut is_after_value = false;
    for character in attributes.chars() {
        match quote {
            None if is_after_value && !character.is_ascii_whitespace() => return false,
            None => {
                quote = Some(character).filter(|character| matches!(character, '"' | '\''));
                is_after_value = false;
            }
            Some(open) if open == character => (quote, is_after_value) = (None, true),
            Some(_) => {}
        }
    }
    true
}

/// True if a text can be the name of an element or an attribute, with one prefix at most (Namespaces in XML, section 4).
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let mut characters = part.chars();
        let is_first = |first: char| first.is_alphabetic() || first == '_';
        let is_next = |next: char| next.is_alphanumeric() || "-._\u{b7}".contains(next);
        characters.next().is_some_and(is_first) && characters.all(is_next)
    };
    match name.split_once(':') {
        Some((prefix, local)) => is_part(prefix) && is_part(local),
        None => is_part(name),
    }
}

/// Reads to the end of the element that has just begun, and returns its content as it was written.
fn inner<'i>(reader: &mut NsReader<&'i [u8]>, text: &'i str) -> Result<&'i str, LockInfoFault> {
    let (begin, mut depth) = (place(reader)?, 0_usize);
    loop {
        let before = place(reader)?;
        let event = next(reader)?;
        match &event {
            Event::Start(start) => {
                check_names(reader, start)?;
                depth += 1;
                if depth > NESTING_MAX {
                    return Err(LockInfoFault::Malformed);
                }
            }
            Event::Empty(start) => check_names(reader, start)?,
            Event::End(_) if depth == 0 => {
                let content = text.get(begin..before).ok_or(LockInfoFault::Malformed)?;
                return if content.len() > OWNER_BYTES_MAX { Err(LockInfoFault::TooLarge) } else { Ok(content) };
            }
            Event::End(_) => depth -= 1,
            Event::PI(_) | Event::Decl(_) | Event::Eof => return Err(LockInfoFault::Malformed),
            Event::Text(text) if text.contains("]]>") => return Err(LockInfoFault::Malformed),
            other if content_of(other).is_none() => return Err(LockInfoFault::Malformed),
            _ => {}
        }
    }
}

fn place(reader: &NsReader<&[u8]>) -> Result<usize, LockInfoFault> {
    usize::try_from(reader.buffer_position()).map_err(|_error| LockInfoFault::Malformed)
}

/// Writes the element of an owner, so that it declares its own prefixes.
fn owner(reader: &NsReader<&[u8]>, start: &BytesStart<'_>, content: &str) -> Result<Box<str>, LockInfoFault> {
    // The element that has begun is in scope while its content is read, and no more after its end.
    let mut scope: Vec<(String, String)> = Vec::new();
    let mut declare = |prefix: &str, namespace: String| {
        scope.retain(|(other, _)| other != prefix);
        scope.push((prefix.to_owned(), namespace));
    };
    for (prefix, namespace) in reader.resolver().bindings() {
        declare(word(prefix), namespace.into_inner().to_owned());
    }
    for attribute in start.attributes().filter_map(Result::ok) {
        if let Some(prefix) = attribute.key.as_namespace_binding() {
            declare(word(prefix), value_of(&attribute).ok_or(LockInfoFault::Malformed)?);
        }
    }
    // There are fewer prefixes than bytes that declare them.
    let own = (0..=LOCK_INFO_BYTES_MAX)
        .map(|number| format!("D{number}"))
        .find(|name| scope.iter().all(|(other, _)| other != name));
    let own = own.unwrap_or_default();
    let mut element = format!("<{own}:owner xmlns:{own}=\"{NAMESPACE}\"");
    for (prefix, namespace) in scope {
        let colon = if prefix.is_empty() { "" } else { ":" };
        // Writing to a string cannot fail.
        let _ = write!(element, " xmlns{colon}{prefix}=\"{}\"", escaped(&namespace));
    }
    let _ = write!(element, ">{content}</{own}:owner>");
    if element.len() > 2 * OWNER_BYTES_MAX { Err(LockInfoFault::TooLarge) } else { Ok(element.into()) }
}

fn word(prefix: PrefixDeclaration<'_>) -> &str {
    match prefix {
        PrefixDeclaration::Default => "",
        PrefixDeclaration::Named(name) => name,
    }
}

#[cfg(test)]
#[path = "lock_info_tests.rs"]
mod tests;
