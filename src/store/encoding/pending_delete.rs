//! A DELETE that waits for the holders of a lease, as text within its record.

use serde::{Deserialize, Serialize};

use super::{DamagedRecord, bytes, hex, latin, name};
use crate::core::{
    lease::TargetName,
    records::pending_delete::{Condition, PendingDelete},
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPendingDelete {
    host: String,
    target: String,
    name: String,
    /// Names and values of fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<(String, String)>,
}

impl WrittenPendingDelete {
    pub(super) fn of(delete: &PendingDelete) -> Self {
        let condition = |(name, value): &Condition| (name.to_string(), latin(value));
        let conditions = delete.conditions.iter().map(condition).collect();
        Self { host: latin(&delete.host), target: latin(&delete.target), name: hex(delete.name.0), conditions }
    }

    pub(super) fn read(self) -> Result<PendingDelete, DamagedRecord> {
        let [host, target] = [&self.host, &self.target].map(|text| bytes(text).into());
        let condition = |(name, value): (String, String)| (name.into(), bytes(&value).into());
        let conditions = self.conditions.into_iter().map(condition).collect();
        Ok(PendingDelete { host, target, name: TargetName(name(&self.name)?), conditions })
    }
}
