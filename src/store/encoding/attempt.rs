//! The first attempt at a write that came with an idempotency key, as text within its record.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{DamagedRecord, bytes, damaged, latin, moment, since};
use crate::core::{
    records::first_attempt::{AttemptSender, Fingerprint, FirstAttempt, KeptAnswer, SentWrite},
    time::StoreTime,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenAttempt {
    /// The hashes in base64: of the sent write, of the owner of the key, of the credentials.
    sent: [String; 3],
    until_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<WrittenAnswer>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAnswer {
    status: u16,
    fields: Vec<(String, String)>,
    /// The body in base64, because it may be of any kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl WrittenAttempt {
    pub(super) fn of(attempt: &FirstAttempt, base: StoreTime) -> Self {
        let SentWrite { fingerprint, sender } = &attempt.sent;
        let hashes: [&[u8]; 3] = [&fingerprint.0, &sender.owner, &sender.credentials];
        Self {
            sent: hashes.map(|hash| STANDARD_NO_PAD.encode(hash)),
            until_ms: since(base, attempt.until),
            answer: attempt.answer.as_ref().map(WrittenAnswer::of),
        }
    }

    pub(super) fn read(self, base: StoreTime) -> Result<FirstAttempt, DamagedRecord> {
        let [fingerprint, owner, credentials] = &self.sent;
        let sender = AttemptSender { owner: hash(owner)?, credentials: hash(credentials)? };
        Ok(FirstAttempt {
            sent: SentWrite { fingerprint: Fingerprint(hash(fingerprint)?), sender },
            until: moment(base, self.until_ms),
            answer: self.answer.map(WrittenAnswer::read).transpose()?,
        })
    }
}

fn hash<const BYTES: usize>(text: &str) -> Result<[u8; BYTES], DamagedRecord> {
    let octets = STANDARD_NO_PAD.decode(text).ok();
    octets.and_then(|octets| octets.try_into().ok()).ok_or_else(|| damaged("the hash of a write"))
}

impl WrittenAnswer {
    fn of(answer: &KeptAnswer) -> Self {
        Self {
            status: answer.status,
            fields: answer.fields.iter().map(|(name, value)| (name.clone(), latin(value))).collect(),
            body: answer.body.as_ref().map(|body| STANDARD_NO_PAD.encode(body)),
        }
    }

    fn read(self) -> Result<KeptAnswer, DamagedRecord> {
        let body = self.body.map(|body| STANDARD_NO_PAD.decode(body)).transpose();
        Ok(KeptAnswer {
            status: self.status,
            fields: self.fields.into_iter().map(|(name, value)| (name, bytes(&value))).collect(),
            body: body.map_err(|_error| damaged("the body of an answer"))?.map(Into::into),
        })
    }
}
