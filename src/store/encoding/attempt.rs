//! The first attempt at a write that came with an idempotency key, as text within its record.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{DamagedRecord, bytes, damaged, latin, moment, since};
use crate::core::{
    first_attempt::{Fingerprint, FirstAttempt, RememberedSuccess, Success},
    time::StoreTime,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenAttempt {
    fingerprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<WrittenSuccess>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSuccess {
    until_ms: i64,
    status: u16,
    fields: Vec<(String, String)>,
    /// The body in base64, because it may be of any kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl WrittenAttempt {
    pub(super) fn of(attempt: &FirstAttempt, base: StoreTime) -> Self {
        Self {
            fingerprint: blake3::Hash::from_bytes(attempt.fingerprint.0).to_hex().to_string(),
            success: attempt.success.as_ref().map(|remembered| WrittenSuccess::of(remembered, base)),
        }
    }

    pub(super) fn read(self, base: StoreTime) -> Result<FirstAttempt, DamagedRecord> {
        let fingerprint = blake3::Hash::from_hex(&self.fingerprint).map_err(|_error| damaged("the hash of a write"))?;
        Ok(FirstAttempt {
            fingerprint: Fingerprint(*fingerprint.as_bytes()),
            success: self.success.map(|success| success.read(base)).transpose()?,
        })
    }
}

impl WrittenSuccess {
    fn of(RememberedSuccess { answer, until }: &RememberedSuccess, base: StoreTime) -> Self {
        Self {
            until_ms: since(base, *until),
            status: answer.status,
            fields: answer.fields.iter().map(|(name, value)| (name.clone(), latin(value))).collect(),
            body: answer.body.as_ref().map(|body| STANDARD_NO_PAD.encode(body)),
        }
    }

    fn read(self, base: StoreTime) -> Result<RememberedSuccess, DamagedRecord> {
        let body = self.body.map(|body| STANDARD_NO_PAD.decode(body)).transpose();
        let answer = Success {
            status: self.status,
            fields: self.fields.into_iter().map(|(name, value)| (name, bytes(&value))).collect(),
            body: body.map_err(|_error| damaged("the body of an answer"))?.map(Into::into),
        };
        Ok(RememberedSuccess { answer, until: moment(base, self.until_ms) })
    }
}
