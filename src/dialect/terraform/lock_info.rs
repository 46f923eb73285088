//! The document by which a client describes its lock.

use serde_json::{Map, Value};

use crate::core::{
    lease::{HolderLabel, LeaseId, LeaseNote},
    tags::parts_hash::half,
};

/// The member that names the lock.
const ID: &str = "ID";
/// The members that tell people who holds a lock, and for what.
const WHO: &str = "Who";
const OPERATION: &str = "Operation";

/// The description of a lock. It has an ID, and keeps all other members as they came.
#[derive(Clone, Debug, PartialEq)]
pub struct LockInfo {
    members: Map<String, Value>,
    note: LeaseNote,
    lease_id: LeaseId,
}

/// The reason why a body describes no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedLockInfo {
    /// It is longer than the note of a lease may be.
    #[error("the description of a lock has at most 4,096 bytes")]
    TooLong,
    /// It is another text.
    #[error("the description of a lock is a JSON object with the member ID, a text that is not empty")]
    NoId,
}

impl LockInfo {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// The body describes no lock.
    pub fn parse(body: &[u8]) -> Result<Self, MalformedLockInfo> {
        let text = str::from_utf8(body).map_err(|_where| MalformedLockInfo::NoId)?.trim();
        let note = LeaseNote::new(text).map_err(|_too_long| MalformedLockInfo::TooLong)?;
        Self::of_note(&note).ok_or(MalformedLockInfo::NoId)
    }

    /// Reads the note of a lease; `None` if that describes no lock.
    pub fn of_note(note: &LeaseNote) -> Option<Self> {
        let members: Map<String, Value> = serde_json::from_str(note.as_str()).ok()?;
        let id = members.get(ID)?.as_str().filter(|id| !id.is_empty())?;
        Some(Self { lease_id: lease_id(id), note: note.clone(), members })
    }

    /// The id of the lease that stands for the lock.
    pub const fn lease_id(&self) -> LeaseId {
        self.lease_id
    }

    /// Returns the note that the lease keeps: the description as received.
    pub const fn note(&self) -> &LeaseNote {
        &self.note
    }

    /// All members.
    pub const fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// Returns the label of the holder: who it is, and what it does.
    pub fn holder(&self) -> Option<HolderLabel> {
        let text = |name| self.members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let label = match (text(WHO)?, text(OPERATION)) {
            (who, Some(operation)) => format!("{who} ({operation})"),
            (who, None) => who.to_owned(),
        };
        HolderLabel::parse(label.as_bytes()).ok()
    }
}

/// Returns the id of the lease that stands for the lock of this ID.
pub(super) fn lease_id(id: &str) -> LeaseId {
    LeaseId::from_random(half(&blake3::hash(id.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = r#"{"ID":"6f0b","Operation":"OperationTypeApply","Info":"","Who":"ann@host","Version":"1.11.4","Created":"2026-01-01T00:00:00Z","Path":""}"#;

    #[test]
    fn a_description_is_kept_as_it_came() {
        let info = LockInfo::parse(format!(" {INFO}\n").as_bytes()).expect("a description");
        assert_eq!(info.note().as_str(), INFO);
        assert_eq!(info.lease_id(), lease_id("6f0b"));
        assert_eq!(info.holder().as_ref().map(HolderLabel::as_str), Some("ann@host (OperationTypeApply)"));
        assert_eq!(LockInfo::of_note(info.note()), Some(info));
    }

    #[test]
    fn what_names_no_lock_describes_none() {
        for body in [
            &b""[..],
            b"{}",
            b"[]",
            b"null",
            br#"{"ID":7}"#,
            br#"{"ID":""}"#,
            br#"{"id":"a"}"#,
            b"\xff",
            b"{\"ID\":\"a\"",
        ] {
            assert_eq!(LockInfo::parse(body), Err(MalformedLockInfo::NoId), "{body:?}");
        }
        let long = format!(r#"{{"ID":"a","Info":"{}"}}"#, "x".repeat(4096));
        assert_eq!(LockInfo::parse(long.as_bytes()), Err(MalformedLockInfo::TooLong));
    }

    #[test]
    fn the_holder_is_told_as_far_as_the_description_goes() {
        let holder = |text: &str| {
            let info = LockInfo::parse(text.as_bytes()).expect("a description");
            info.holder().map(|label| label.as_str().to_owned())
        };
        assert_eq!(holder(r#"{"ID":"a","Who":"ann"}"#).as_deref(), Some("ann"));
        assert_eq!(holder(r#"{"ID":"a","Who":"ann","Operation":""}"#).as_deref(), Some("ann"));
        assert_eq!(holder(r#"{"ID":"a","Operation":"plan"}"#), None);
        assert_eq!(holder(r#"{"ID":"a","Who":"a\u0007nn"}"#), None, "a control character");
    }

    /// Rule 11: ids of leases are hard to guess, for any ID of the lock.
    #[test]
    fn each_id_is_another_lease() {
        let ids = ["a", "A", "0f8fad5b-d9cb-469f-a165-70867728950e", "0F8FAD5B-D9CB-469F-A165-70867728950E"];
        for (place, id) in ids.iter().enumerate() {
            assert!(lease_id(id).is_random());
            for other in &ids[..place] {
                assert_ne!(lease_id(id), lease_id(other), "{id} {other}");
            }
        }
    }
}
