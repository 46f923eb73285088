//! The swaps that travel to PostgreSQL together.
//!
//! # Design
//!
//! *Why two statements for a swap?* Most swaps travel alone, and change a record that is there. A plain update does that
//! with half of the work. If it finds nothing to change, and for several swaps, there is the larger one.

use async_trait::async_trait;
use tokio_postgres::types::ToSql;

use super::{
    client::PostgresClient,
    rows::{SwapOutcome, signed},
    statements::Ask,
};
use crate::{
    core::{records::record::Revision, resource::KeyDigest, time::StoreTime},
    store::{StoreError, shared::batch::Carrier},
};

/// A swap of one record.
pub(super) struct Swap {
    pub(super) digest: KeyDigest,
    pub(super) key: String,
    pub(super) bucket: u16,
    pub(super) expected: Revision,
    pub(super) record: String,
    pub(super) idle_from: Option<StoreTime>,
    pub(super) may_create: bool,
}

#[async_trait]
impl Carrier for PostgresClient {
    type Swap = Swap;
    type Answer = SwapOutcome;

    async fn carry_out(&self, swaps: Vec<Swap>) -> Result<Vec<SwapOutcome>, StoreError> {
        let mut was_repeated = false;
        // No record has the revision zero, so that is an absent one.
        if let [swap] = swaps.as_slice()
            && swap.expected != Revision::default()
        {
            let (digest, idle_from) = (swap.digest.as_slice(), swap.idle_from.map(time));
            let values: [&(dyn ToSql + Sync); 6] =
                [&digest, &swap.key, &signed(swap.expected.0), &swap.record, &idle_from, &self.channel];
            let reply = self.ask(Ask::Update, &values).await?;
            if let Some(row) = reply.rows.first() {
                let outcome = SwapOutcome::read(row, reply.is_repeated).ok_or(StoreError::Unavailable)?;
                return Ok(vec![outcome]);
            }
            was_repeated = reply.is_repeated;
        }
        let digests: Vec<&[u8]> = swaps.iter().map(|swap| swap.digest.as_slice()).collect();
        let keys: Vec<&str> = swaps.iter().map(|swap| swap.key.as_str()).collect();
        let buckets: Vec<i32> = swaps.iter().map(|swap| i32::from(swap.bucket)).collect();
        let expected: Vec<i64> = swaps.iter().map(|swap| signed(swap.expected.0)).collect();
        let records: Vec<&str> = swaps.iter().map(|swap| swap.record.as_str()).collect();
        let idle: Vec<Option<i64>> = swaps.iter().map(|swap| swap.idle_from.map(time)).collect();
        let may_create: Vec<bool> = swaps.iter().map(|swap| swap.may_create).collect();
        let values: [&(dyn ToSql + Sync); 8] =
            [&digests, &keys, &buckets, &expected, &records, &idle, &may_create, &self.channel];
        let reply = self.ask(Ask::Swap, &values).await?;
        let outcome = |row| SwapOutcome::read(row, reply.is_repeated || was_repeated);
        reply.rows.iter().map(outcome).collect::<Option<_>>().ok_or(StoreError::Unavailable)
    }
}

/// A time as the tables hold it.
fn time(time: StoreTime) -> i64 {
    signed(time.milliseconds())
}
