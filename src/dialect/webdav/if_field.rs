//! The reader of the `If` field (RFC 4918 section 10.4).

use crate::core::{lease::LeaseId, tags::entity_tag::EntityTag};

/// The longest field that is read, in bytes. A client names the locks on a few resources.
const BYTES_MAX: usize = 16 * 1024;
/// The largest number of parts of all lists together.
const PARTS_MAX: usize = 256;

/// The conditions of one request. The whole is true if one list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct If {
    groups: Vec<Group>,
}

/// The lists about one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The reference to the resource; `None` for the target of the request.
    pub resource: Option<Box<str>>,
    /// The lists, at least one.
    pub lists: Vec<IfList>,
}

/// A list of parts, which are true together or not.
pub type IfList = Vec<IfPart>;

/// One condition on the state of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IfPart {
    /// True if the state must be another one.
    pub is_negated: bool,
    /// The state.
    pub state: State,
}

/// A state of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The resource is in the scope of the lock with this token.
    Locked(StateToken),
    /// The resource has this tag.
    Tagged(EntityTag),
}

/// A URI that names a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateToken {
    /// The token of a lock that this proxy may have granted.
    Lock(LeaseId),
    /// Any other URI, such as `DAV:no-lock`. No state has it.
    Unknown,
}

/// The reason why bytes are no `If` field. No message repeats the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedIf {
    /// It is too long, or has too many parts.
    #[error("If has at most {BYTES_MAX} bytes and {PARTS_MAX} parts")]
    TooLong,
    /// Something stands where it cannot.
    #[error("If is a list of conditions: (<token> [\"tag\"]), each after its <resource> or none of them")]
    Grammar,
}

impl StateToken {
    /// Reads a URI. Both forms in which a token may hold a UUID are equal (RFC 4918 section 6.5).
    pub fn of_uri(uri: &str) -> Self {
        let of_scheme = |scheme: &str| {
            let (start, rest) = uri.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        };
        let uuid = of_scheme("opaquelocktoken:").or_else(|| of_scheme("urn:uuid:"));
        // Other spellings of a UUID are no tokens.
        let uuid = uuid.filter(|uuid| uuid.len() == 36);
        uuid.and_then(|uuid| LeaseId::parse(uuid.as_bytes()).ok()).map_or(Self::Unknown, Self::Lock)
    }
}

impl If {
    /// Reads the value of the field.
    ///
    /// # Errors
    ///
    /// The value is not one that section 10.4.2 describes.
    pub fn parse(value: &[u8]) -> Result<Self, MalformedIf> {
        if value.len() > BYTES_MAX {
            return Err(MalformedIf::TooLong);
        }
        let mut scanner = Scanner { rest: value, parts: 0 };
        let mut groups: Vec<Group> = Vec::new();
        loop {
            scanner.skip_space();
            match scanner.rest.first() {
                None if groups.is_empty() => return Err(MalformedIf::Grammar),
                None => return Ok(Self { groups }),
                // Lists with and without a resource are never mixed.
                Some(b'<') if groups.first().is_none_or(|first| first.resource.is_some()) => {
                    groups.push(Group { resource: Some(scanner.uri()?.into()), lists: scanner.lists()? });
                }
                Some(b'(') if groups.is_empty() => groups.push(Group { resource: None, lists: scanner.lists()? }),
                Some(_) => return Err(MalformedIf::Grammar),
            }
        }
    }

    /// The lists, by resource.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The tokens that the request submits: each one counts at any place, in a false list and under `Not` too (section
    /// 10.4.1).
    pub fn submitted(&self) -> impl Iterator<Item = LeaseId> {
        let parts = self.groups.iter().flat_map(|group| &group.lists).flatten();
        parts.filter_map(|part| match part.state {
            State::Locked(StateToken::Lock(id)) => Some(id),
            State::Locked(StateToken::Unknown) | State::Tagged(_) => None,
        })
    }
}

struct Scanner<'a> {
    rest: &'a [u8],
    parts: usize,
}

impl<'a> Scanner<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self, octet: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == octet => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Reads up to this octet, and past it.
    fn up_to(&mut self, octet: u8) -> Result<&'a [u8], MalformedIf> {
        let end = memchr::memchr(octet, self.rest).ok_or(MalformedIf::Grammar)?;
        let (taken, rest) = self.rest.split_at_checked(end).ok_or(MalformedIf::Grammar)?;
        self.rest = rest.get(1..).unwrap_or_default();
        Ok(taken)
    }

    /// Reads `<URI>`.
    fn uri(&mut self) -> Result<&'a str, MalformedIf> {
        if !self.take(b'<') {
            return Err(MalformedIf::Grammar);
        }
        let uri = self.up_to(b'>')?;
        // A URI has no other octets (RFC 3986 section 2).
        let is_uri = !uri.is_empty() && uri.iter().all(|octet| octet.is_ascii_graphic() && !b"<\"".contains(octet));
        is_uri.then(|| str::from_utf8(uri).ok()).flatten().ok_or(MalformedIf::Grammar)
    }

    /// Reads the lists up to the next resource.
    fn lists(&mut self) -> Result<Vec<IfList>, MalformedIf> {
        let mut lists = Vec::new();
        loop {
            self.skip_space();
            if !self.take(b'(') {
                break;
            }
            lists.push(self.list()?);
        }
        if lists.is_empty() { Err(MalformedIf::Grammar) } else { Ok(lists) }
    }

    fn list(&mut self) -> Result<IfList, MalformedIf> {
        let mut list = Vec::new();
        loop {
            self.skip_space();
            if self.take(b')') {
                return if list.is_empty() { Err(MalformedIf::Grammar) } else { Ok(list) };
            }
            self.parts += 1;
            if self.parts > PARTS_MAX {
                return Err(MalformedIf::TooLong);
            }
            list.push(self.part()?);
        }
    }

    fn part(&mut self) -> Result<IfPart, MalformedIf> {
        let is_negated = match self.rest.split_at_checked(3) {
            Some((word, rest)) if word.eq_ignore_ascii_case(b"not") => {
                self.rest = rest;
                self.skip_space();
                true
            }
            _ => false,
        };
        let state = match self.rest.first() {
            Some(b'<') => State::Locked(StateToken::of_uri(self.uri()?)),
            Some(b'[') => State::Tagged(self.tag()?),
            _ => return Err(MalformedIf::Grammar),
        };
        Ok(IfPart { is_negated, state })
    }

    /// Reads `["tag"]`. Brackets, parentheses and commas may stand between the quotes.
    fn tag(&mut self) -> Result<EntityTag, MalformedIf> {
        self.rest = self.rest.get(1..).unwrap_or_default();
        self.skip_space();
        let begun = self.rest;
        let mark = self.up_to(b'"')?;
        let opaque = self.up_to(b'"')?;
        let tag = begun.get(..mark.len() + opaque.len() + 2).and_then(|tag| EntityTag::parse(tag).ok());
        self.skip_space();
        if self.take(b']') { tag.ok_or(MalformedIf::Grammar) } else { Err(MalformedIf::Grammar) }
    }
}

#[cfg(test)]
#[path = "if_field_tests.rs"]
mod tests;
