//! A message: what happens to it from its put to its end.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::core::digits::hexadecimal_text;

/// The last moment that an HTTP date can tell, in seconds.
const LAST_SECOND: u64 = 253_402_300_799;

/// A moment, in milliseconds since 1970. The proxies of one queue have clocks that agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// The moment of a clock.
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Returns the moment after this time.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The time until a later moment.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(later.0.saturating_sub(self.0))
    }

    /// The moment as a date, of whole seconds that have passed.
    pub fn to_date(self) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs((self.0 / 1_000).min(LAST_SECOND)))
    }
}

/// The right to delete or update a message: a secret that each take and each update replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PopReceipt([u8; 16]);

impl PopReceipt {
    /// The receipt with these unpredictable bytes.
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// Reads the receipt that a client presents. `None` if it is none of any message.
    pub fn parse(text: &str) -> Option<Self> {
        BASE64_URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// Returns the text that its client gets.
    pub fn reveal(self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns the hash that the document keeps.
    pub fn hash(self) -> String {
        let hash = blake3::hash(&self.0);
        hexadecimal_text(&hash.as_bytes()[..16])
    }
}

/// It is a secret (rule 11).
impl std::fmt::Debug for PopReceipt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PopReceipt")
    }
}

/// The availability of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStanding {
    /// It can.
    Visible,
    /// It cannot, for this time.
    Hidden(Duration),
    /// It has reached its end.
    Expired,
}

/// A message of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    /// The id of its queue.
    pub queue: String,
    /// Its text.
    pub text: String,
    /// When it was put.
    pub inserted: Moment,
    /// When it ends, if it does.
    pub expires: Option<Moment>,
    /// From when on it is visible.
    pub visible: Moment,
    /// How often it was taken.
    pub taken: u64,
    /// The hash of the last receipt.
    pub receipt: String,
}

impl QueueMessage {
    /// Returns whether the message can be taken at this moment.
    pub fn standing(&self, now: Moment) -> MessageStanding {
        if self.expires.is_some_and(|end| end <= now) {
            return MessageStanding::Expired;
        }
        if self.visible <= now { MessageStanding::Visible } else { MessageStanding::Hidden(now.until(self.visible)) }
    }

    /// True if a receipt is the last one. It may be older than the time for which the message is hidden: as long as no
    /// other worker has taken the message, its last worker may finish.
    pub fn is_proved_by(&self, receipt: PopReceipt) -> bool {
        self.receipt == receipt.hash()
    }

    /// The message after a client has taken it for this time.
    #[must_use]
    pub fn taken(self, now: Moment, hidden: Duration, receipt: PopReceipt) -> Self {
        Self { visible: now.after(hidden), taken: self.taken.saturating_add(1), receipt: receipt.hash(), ..self }
    }

    /// The message after its client has changed its text, if it does, and the time for which it is hidden.
    #[must_use]
    pub fn updated(self, now: Moment, hidden: Duration, receipt: PopReceipt, text: Option<String>) -> Self {
        let text = text.unwrap_or(self.text);
        Self { visible: now.after(hidden), receipt: receipt.hash(), text, ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(inserted: u64, lasts: Option<u64>, hidden: u64) -> QueueMessage {
        QueueMessage {
            queue: "q".to_owned(),
            text: "a".to_owned(),
            inserted: Moment(inserted),
            expires: lasts.map(|lasts| Moment(inserted + lasts)),
            visible: Moment(inserted + hidden),
            taken: 0,
            receipt: PopReceipt::new([0; 16]).hash(),
        }
    }

    #[test]
    fn a_message_is_hidden_visible_and_over() {
        let message = message(1_000, Some(60_000), 5_000);
        assert_eq!(message.standing(Moment(1_000)), MessageStanding::Hidden(Duration::from_secs(5)));
        assert_eq!(message.standing(Moment(5_999)), MessageStanding::Hidden(Duration::from_millis(1)));
        assert_eq!(message.standing(Moment(6_000)), MessageStanding::Visible);
        assert_eq!(message.standing(Moment(60_999)), MessageStanding::Visible);
        assert_eq!(message.standing(Moment(61_000)), MessageStanding::Expired);
        assert_eq!(QueueMessage { expires: None, ..message }.standing(Moment(u64::MAX)), MessageStanding::Visible);
    }

    #[test]
    fn each_take_and_each_update_has_a_receipt_of_its_own() {
        let receipts = [1, 2, 3].map(|number| PopReceipt::new([number; 16]));
        let put = message(0, None, 0);
        let taken = put.taken(Moment(10), Duration::from_secs(30), receipts[0]);
        assert_eq!((taken.taken, taken.visible, &*taken.text), (1, Moment(30_010), "a"));
        let again = taken.clone().taken(Moment(40_000), Duration::from_secs(1), receipts[1]);
        assert!(again.is_proved_by(receipts[1]) && !again.is_proved_by(receipts[0]));
        let updated = again.updated(Moment(40_500), Duration::ZERO, receipts[2], Some("b".to_owned()));
        assert_eq!(
            (updated.taken, updated.standing(Moment(40_500)), &*updated.text),
            (2, MessageStanding::Visible, "b")
        );
        assert!(updated.is_proved_by(receipts[2]) && !updated.is_proved_by(receipts[1]));
        let kept = updated.updated(Moment(50_000), Duration::ZERO, receipts[0], None);
        assert_eq!(kept.text, "b");
    }

    /// Rule 11: a receipt is a secret, and its kept hash proves nothing.
    #[test]
    fn a_receipt_is_kept_as_a_hash() {
        let receipt = PopReceipt::new([9; 16]);
        assert_eq!(PopReceipt::parse(&receipt.reveal()), Some(receipt));
        assert_ne!(receipt.hash(), receipt.reveal());
        assert_eq!(PopReceipt::parse(&receipt.hash()), None);
        assert_eq!(format!("{receipt:?}"), "PopReceipt");
        for text in ["", "a", "AAAA", "CQkJCQkJCQkJCQkJCQkJCQ==", "AgAAAGQAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(PopReceipt::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_moment_is_told_in_seconds_that_have_passed() {
        assert_eq!(Moment(784_111_777_999).to_date(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(Moment(u64::MAX).to_date(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    proptest! {
        #[test]
        fn a_message_that_is_hidden_is_visible_after_that(now: u64, hidden in 0_u64..1 << 50, lasts in proptest::option::of(0_u64..1 << 50)) {
            let now = Moment(now >> 2);
            let message = message(now.0, lasts, hidden);
            if let MessageStanding::Hidden(wait) = message.standing(now) {
                prop_assert_ne!(message.standing(now.after(wait)), MessageStanding::Hidden(Duration::ZERO));
                prop_assert!(!matches!(message.standing(now.after(wait)), MessageStanding::Hidden(_)));
            }
        }
    }
}
