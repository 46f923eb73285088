//! The check of a body by the checksums that its request names, before anything is claimed or sent.

use crate::{
    body::Body,
    core::tags::checksum::{Checksum, RunningChecksum},
    guard::{Halt, refusals, request::Request},
};

/// Refuses a body that was damaged on its way.
pub(crate) async fn check(request: &Request, checksums: &[Checksum], body: &Body) -> Result<(), Halt> {
    if checksums.is_empty() {
        return Ok(());
    }
    let mut running: Vec<RunningChecksum> = checksums.iter().map(|checksum| checksum.begin()).collect();
    body.each_chunk(|chunk| running.iter_mut().for_each(|running| running.add(chunk)))
        .await
        .map_err(|error| refusals::of_spool(&error))?;
    let found: Vec<Checksum> = running.into_iter().map(RunningChecksum::end).collect();
    match checksums.iter().zip(found).find(|(expected, found)| *expected != found) {
        Some((expected, _)) => Err(request.grammar().checksum_mismatch(*expected).into()),
        None => Ok(()),
    }
}
