//! The checksums of a body. It is checked by those that its request names, before anything is claimed or sent.

use crate::{
    body::Body,
    core::tags::checksum::{Checksum, ChecksumKind, RunningChecksum},
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

/// Returns the checksum of this kind of a body.
pub(crate) async fn of(body: &Body, kind: ChecksumKind) -> Result<Checksum, Halt> {
    let mut running = kind.begin();
    body.each_chunk(|chunk| running.add(chunk)).await.map_err(|error| refusals::of_spool(&error))?;
    Ok(running.end())
}
