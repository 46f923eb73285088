//! A DELETE that waits for the holders of a lease, as text within its record.

use serde::{Deserialize, Serialize};

use super::{DamagedRecord, bytes, hex, latin, name};
use crate::core::{lease::TargetName, pending_delete::PendingDelete};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPendingDelete {
    host: String,
    target: String,
    name: String,
}

impl WrittenPendingDelete {
    pub(super) fn of(delete: &PendingDelete) -> Self {
        Self { host: latin(&delete.host), target: latin(&delete.target), name: hex(delete.name.0) }
    }

    pub(super) fn read(self) -> Result<PendingDelete, DamagedRecord> {
        let [host, target] = [&self.host, &self.target].map(|text| bytes(text).into());
        Ok(PendingDelete { host, target, name: TargetName(name(&self.name)?) })
    }
}
