//! The documents about locks (RFC 4918 sections 14 to 16).

use std::{fmt::Write as _, time::Duration};

use super::{NAMESPACE, markup::escaped};
use crate::core::lease::{LeaseId, LeaseMode};

/// A lock, as a document shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLock {
    /// The mode: if it is shared, others may hold shared locks too.
    pub mode: LeaseMode,
    /// True if the client asked for a lock of all below the resource.
    pub is_deep: bool,
    /// The element of the owner.
    pub owner: Option<Box<str>>,
    /// The time that is left; `None` if the lock has no end.
    pub remaining: Option<Duration>,
    /// The token, as a URI.
    pub token: String,
    /// The reference to the locked resource.
    pub root: String,
}

/// The URI of a lock's token.
pub fn token_uri(id: LeaseId) -> String {
    format!("opaquelocktoken:{}", id.reveal())
}

/// Returns the element with all locks of a resource. It declares its own prefixes.
pub fn active_locks(locks: &[ShownLock]) -> String {
    let mut element = format!("<D:lockdiscovery xmlns:D=\"{NAMESPACE}\">");
    for lock in locks {
        let scope = lock.mode.word();
        let depth = if lock.is_deep { "infinity" } else { "0" };
        let owner = lock.owner.as_deref().unwrap_or_default();
        // Rounded down: a holder that counts on less time than it has is safe.
        let timeout = match lock.remaining {
            Some(remaining) => format!("Second-{}", remaining.as_secs()),
            None => "Infinite".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = write!(
            element,
            "<D:activelock><D:locktype><D:write/></D:locktype><D:lockscope><D:{scope}/></D:lockscope>\
             <D:depth>{depth}</D:depth>{owner}<D:timeout>{timeout}</D:timeout>\
             <D:locktoken><D:href>{}</D:href></D:locktoken><D:lockroot><D:href>{}</D:href></D:lockroot></D:activelock>",
            escaped(&lock.token),
            escaped(&lock.root),
        );
    }
    element.push_str("</D:lockdiscovery>");
    element
}

/// Returns the element with the kinds of locks that can be taken. It declares its own prefixes.
pub(super) fn supported_locks(can_be_locked: bool) -> String {
    let entry = |scope| {
        format!("<D:lockentry><D:lockscope><D:{scope}/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>")
    };
    let entries = if can_be_locked { [entry("exclusive"), entry("shared")].concat() } else { String::new() };
    format!("<D:supportedlock xmlns:D=\"{NAMESPACE}\">{entries}</D:supportedlock>")
}

/// Returns the document that answers a LOCK.
pub fn lock_answer(lock: &ShownLock) -> String {
    let locks = active_locks(std::slice::from_ref(lock));
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:prop xmlns:D=\"{NAMESPACE}\">{locks}</D:prop>\n")
}

/// Returns the document that tells why a collection is not locked: another lock on a resource below it (RFC 4918 section
/// 9.10.9).
pub fn not_locked(collection: &str, locked: &str) -> String {
    let (collection, locked) = (escaped(collection), escaped(locked));
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"{NAMESPACE}\"><D:response>\
         <D:href>{locked}</D:href><D:status>HTTP/1.1 423 Locked</D:status><D:error><D:no-conflicting-lock>\
         <D:href>{locked}</D:href></D:no-conflicting-lock></D:error></D:response><D:response><D:href>{collection}</D:href>\
         <D:status>HTTP/1.1 424 Failed Dependency</D:status></D:response></D:multistatus>\n"
    )
}

/// Returns the document of an error: the condition that is violated, perhaps with the resource whose lock is in the
/// way. It also has the name and the detail of the refusal, for a human reader.
pub(super) fn error_of(condition: Option<(&str, Option<&str>)>, (code, detail): (&str, &str)) -> String {
    let condition = match condition {
        Some((name, Some(resource))) => format!("<D:{name}><D:href>{}</D:href></D:{name}>", escaped(resource)),
        Some((name, None)) => format!("<D:{name}/>"),
        None => String::new(),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:error xmlns:D=\"{NAMESPACE}\">{condition}\
         <i:refusal xmlns:i=\"urn:x-ifmatch\"><i:code>{code}</i:code><i:detail>{}</i:detail></i:refusal></D:error>\n",
        escaped(detail),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_told_in_full() {
        let lock = ShownLock {
            mode: LeaseMode::Exclusive,
            is_deep: false,
            owner: Some("<D0:owner xmlns:D0=\"DAV:\">me</D0:owner>".into()),
            remaining: Some(Duration::from_millis(1_799_900)),
            token: "opaquelocktoken:1".to_owned(),
            root: "/a&b".to_owned(),
        };
        let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:prop xmlns:D=\"DAV:\">\
            <D:lockdiscovery xmlns:D=\"DAV:\"><D:activelock><D:locktype><D:write/></D:locktype>\
            <D:lockscope><D:exclusive/></D:lockscope><D:depth>0</D:depth>\
            <D0:owner xmlns:D0=\"DAV:\">me</D0:owner><D:timeout>Second-1799</D:timeout>\
            <D:locktoken><D:href>opaquelocktoken:1</D:href></D:locktoken>\
            <D:lockroot><D:href>/a&amp;b</D:href></D:lockroot></D:activelock></D:lockdiscovery></D:prop>\n";
        assert_eq!(lock_answer(&lock), expected);
        let endless = ShownLock { mode: LeaseMode::SHARED, is_deep: true, owner: None, remaining: None, ..lock };
        let told = active_locks(&[endless]);
        for part in ["<D:shared/>", "<D:depth>infinity</D:depth><D:timeout>Infinite</D:timeout>"] {
            assert!(told.contains(part), "{told}");
        }
        assert_eq!(active_locks(&[]), "<D:lockdiscovery xmlns:D=\"DAV:\"></D:lockdiscovery>");
    }

    #[test]
    fn an_error_names_its_condition() {
        let begin = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:error xmlns:D=\"DAV:\">";
        let end = "<i:refusal xmlns:i=\"urn:x-ifmatch\"><i:code>c</i:code><i:detail>1 &lt; 2</i:detail></i:refusal></D:error>\n";
        for (condition, expected) in [
            (Some(("a-b", Some("/a<b"))), "<D:a-b><D:href>/a&lt;b</D:href></D:a-b>"),
            (Some(("a-b", None)), "<D:a-b/>"),
            (None, ""),
        ] {
            assert_eq!(error_of(condition, ("c", "1 < 2")), [begin, expected, end].concat());
        }
    }
}
