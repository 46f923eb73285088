//! The lock of a path, as its lease keeps it and clients see it.

use percent_encoding::utf8_percent_encode;
use serde::{Deserialize, Serialize};

use crate::core::{
    digits::hexadecimal_text,
    http::request_target::RESERVED_IN_PATH,
    lease::{LeaseNote, TooLongNote},
    resource::{KeyDigest, ResourceKey},
};

/// The bytes of a resource's hash in the name of its lock. The others are random.
const HASHED: usize = 8;

/// The path of a file in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPath(String);

/// The name of a lock. It proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockName(String);

/// A lock, as clients know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    id: String,
    path: String,
    locked_at: String,
    owner: LockOwner,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LockOwner {
    name: String,
}

impl LockPath {
    /// Reads the path of a file. `None` if no file of a repository has it.
    pub fn parse(text: &str) -> Option<Self> {
        let is_name = |name: &str| !matches!(name, "" | "." | "..");
        (text.split('/').all(is_name) && !text.chars().any(char::is_control)).then(|| Self(text.to_owned()))
    }

    /// Returns the target that names the resource which is leased.
    pub fn target_in(&self, repository: &str) -> String {
        format!("{repository}/locks/{}", utf8_percent_encode(&self.0, RESERVED_IN_PATH))
    }
}

impl LockName {
    /// Names a lock of a resource by a number that was drawn at random.
    pub fn new(digest: KeyDigest, random: [u8; 16]) -> Self {
        let (hashed, random) = (digest.iter().take(HASHED), random.iter().skip(HASHED));
        Self(hexadecimal_text(&hashed.chain(random).copied().collect::<Vec<u8>>()))
    }

    /// Reads a name as clients send it. A text that names no lock finds none.
    pub fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// True if a lock of this name may be one of this resource.
    pub fn may_be_of(&self, key: &ResourceKey) -> bool {
        let hashed = hexadecimal_text(&key.digest()).get(..2 * HASHED).map(str::to_owned);
        hashed.is_some_and(|hashed| self.0.starts_with(&hashed))
    }
}

impl Lock {
    /// A lock of a path that its owner takes at this moment (RFC 3339).
    pub fn new(name: LockName, path: &LockPath, owner: &str, locked_at: String) -> Self {
        let owner = LockOwner { name: owner.to_owned() };
        Self { id: name.0, path: path.0.clone(), locked_at, owner }
    }

    /// Returns the note for its lease.
    ///
    /// # Errors
    ///
    /// The path and the name of the owner are too long.
    pub fn to_note(&self) -> Result<LeaseNote, TooLongNote> {
        // Texts always have a JSON form.
        LeaseNote::new(&serde_json::to_string(self).unwrap_or_default())
    }

    /// Reads the note of a lease. `None` if that is no lock.
    pub fn of_note(note: &LeaseNote) -> Option<Self> {
        serde_json::from_str(note.as_str()).ok()
    }

    /// True if it has this name.
    pub fn is_named(&self, name: &LockName) -> bool {
        self.id == name.0
    }

    /// Its path.
    pub fn path(&self) -> Option<LockPath> {
        LockPath::parse(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(path: &str) -> Lock {
        let path = LockPath::parse(path).expect("a path");
        Lock::new(LockName::new([0xab; 16], [0xcd; 16]), &path, "ann", "2026-01-01T00:00:00Z".to_owned())
    }

    #[test]
    fn a_lock_is_kept_as_clients_are_told_of_it() {
        let note = lock("art/hero.psd").to_note().expect("a short note");
        let expected = r#"{"id":"ababababababababcdcdcdcdcdcdcdcd","path":"art/hero.psd","locked_at":"2026-01-01T00:00:00Z","owner":{"name":"ann"}}"#;
        assert_eq!(note.as_str(), expected);
        assert_eq!(Lock::of_note(&note), Some(lock("art/hero.psd")));
        for text in ["", "{}", r#"{"id":"a"}"#] {
            assert_eq!(Lock::of_note(&LeaseNote::new(text).expect("short")), None, "{text}");
        }
        assert!(lock(&"a".repeat(4_096)).to_note().is_err());
    }

    /// Rule 10: no two paths are one resource.
    #[test]
    fn each_path_is_a_resource_of_its_own() {
        for (path, target) in [
            ("a", "/game/locks/a"),
            ("art/hero 1.psd", "/game/locks/art/hero%201.psd"),
            ("a%2Fb", "/game/locks/a%252Fb"),
            ("ä?#;", "/game/locks/%C3%A4%3F%23%3B"),
            ("verify", "/game/locks/verify"),
            ("...", "/game/locks/..."),
        ] {
            assert_eq!(LockPath::parse(path).map(|path| path.target_in("/game")).as_deref(), Some(target), "{path}");
        }
        for path in ["", "/a", "a/", "a//b", ".", "a/../b", "./a", "a\nb", "a\0"] {
            assert_eq!(LockPath::parse(path), None, "{path}");
        }
    }

    #[test]
    fn a_name_tells_which_resource_may_have_it() {
        let (key, other) = (ResourceKey::from_text("u:/a"), ResourceKey::from_text("u:/b"));
        let name = LockName::new(key.digest(), [7; 16]);
        assert!(name.may_be_of(&key) && !name.may_be_of(&other));
        assert_ne!(name, LockName::new(key.digest(), [8; 16]));
        for text in ["", "0", "\u{e4}"] {
            assert!(!LockName::of(text).may_be_of(&key), "{text}");
        }
    }
}
