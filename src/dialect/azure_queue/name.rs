//! The names of queues and messages.

use uuid::{Builder, Uuid, Variant, Version};

use super::refusals::bad_name;
use crate::core::refusal::Refusal;

/// The word between the name of a queue and its messages. No queue has it as its name: the path `/messages` behind
/// that of an account would have two meanings.
pub(super) const MESSAGES: &str = "messages";

/// Checks the name of a queue: 3 to 63 lowercase letters, digits and single hyphens, which neither begin nor end it.
///
/// # Errors
///
/// Azure would refuse the name.
pub(super) fn check(name: &str) -> Result<(), Refusal> {
    if !(3..=63).contains(&name.len()) {
        return Err(bad_name("OutOfRangeInput", "The name of a queue has 3 to 63 characters."));
    }
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit());
    if !name.split('-').all(is_word) {
        let detail = "The name of a queue has lowercase letters, digits and hyphens. Each hyphen stands between a letter or \
                      digit and another.";
        return Err(bad_name("InvalidResourceName", detail));
    }
    if name == MESSAGES {
        return Err(bad_name("InvalidResourceName", "This proxy has no queue named messages: choose another name."));
    }
    Ok(())
}

/// True if a queue can have this name.
pub fn is_queue_name(name: &str) -> bool {
    check(name).is_ok()
}

/// Returns the id of a message that is put this number of nanoseconds after 1970. Ids of later messages are greater: it
/// is a UUID of version 7, whose first random bits count fractions of a millisecond (RFC 9562 section 6.2, method 3).
pub fn message_id(nanoseconds: u128, random: [u8; 16]) -> String {
    const MILLISECOND: u128 = 1_000_000;
    let (milliseconds, rest) = (nanoseconds / MILLISECOND, nanoseconds % MILLISECOND);
    let fraction = rest * 4096 / MILLISECOND;
    let number = (milliseconds << 80) | (fraction << 64) | (u128::from_be_bytes(random) & u128::from(u64::MAX));
    let id = Builder::from_u128(number).with_version(Version::SortRand).with_variant(Variant::RFC4122).into_uuid();
    id.to_string()
}

/// True if a text has the form of the id of a message.
pub fn is_message_id(text: &str) -> bool {
    Uuid::try_parse(text).is_ok_and(|id| id.get_version() == Some(Version::SortRand) && id.to_string() == text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_queues_have_azures_form() {
        for name in ["abc", "a-b", "0-1-2", &"a".repeat(63)] {
            assert!(is_queue_name(name), "{name}");
        }
        for name in ["", "ab", "-ab", "ab-", "a--b", "aBc", "a_b", "a.json", "ab/c", "äbc", "messages", &"a".repeat(64)]
        {
            assert!(!is_queue_name(name), "{name}");
        }
    }

    proptest! {
        /// The order of the names is the order in which messages are taken.
        #[test]
        fn ids_sort_by_time(earlier in 0_u128..1 << 60, later in 1_u128..1 << 40, random: [[u8; 16]; 2]) {
            // 4096 steps of a millisecond have 245 ns at most.
            let (first, second) = (message_id(earlier, random[0]), message_id(earlier + later + 245, random[1]));
            prop_assert!(first < second, "{first} {second}");
            prop_assert!(is_message_id(&first) && is_message_id(&second));
        }

        #[test]
        fn no_other_text_is_an_id(text in "[0-9a-fA-F-]{0,40}") {
            prop_assert!(!is_message_id(&text) || text.as_bytes()[14] == b'7');
        }
    }

    #[test]
    fn an_id_has_one_spelling() {
        let id = message_id(1_700_000_000_000_000_000, [7; 16]);
        assert!(is_message_id(&id));
        assert!(!is_message_id(&id.to_uppercase()) && !is_message_id(&id.replace('-', "")));
        assert!(!is_message_id(&format!("{{{id}}}")));
    }
}
