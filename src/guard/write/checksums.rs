//! The check of a body by the checksums that its request names, before anything is claimed or sent.

use crate::{
    body::{Body, ReceiveError},
    core::checksum::{Checksum, RunningChecksum},
    guard::{answer::Answer, refusals, request::Request},
};

/// Refuses a body that was damaged on its way.
pub(super) async fn check(request: &Request, checksums: &[Checksum], body: &Body) -> Result<(), Answer> {
    if checksums.is_empty() {
        return Ok(());
    }
    let mut running: Vec<RunningChecksum> = checksums.iter().map(|checksum| checksum.begin()).collect();
    let mut reader = body.reader();
    while let Some(chunk) = reader.next_chunk().await.map_err(|error| refusals::of_body(ReceiveError::Spool(error)))? {
        for running in &mut running {
            running.add(&chunk);
        }
    }
    let found: Vec<Checksum> = running.into_iter().map(RunningChecksum::end).collect();
    match checksums.iter().zip(found).find(|(expected, found)| *expected != found) {
        Some((expected, _)) => Err(request.grammar().checksum_mismatch(*expected).into()),
        None => Ok(()),
    }
}
