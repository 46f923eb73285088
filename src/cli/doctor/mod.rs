//! `ifmatch doctor`: tries whether the tag of a resource survives the way to the client and back.
//!
//! * [`ask`] sends requests with the [`client`], and collects the answers ([`received`]).
//! * [`tags`], [`conditions`], [`aliases`], [`collections`], [`freshness`] and [`writes`] judge the answers: plain data
//!   becomes [`finding`]s.
//!
//! # Design
//!
//! *Why are some checks not decided?* One cause makes one problem. If a cache gives all answers, they say nothing of what
//! is behind it. If the tag changes at each read, no condition with it can pass. So what follows from such a cause is
//! neither a problem of its own nor good.

mod aliases;
mod ask;
mod client;
mod collections;
mod conditions;
mod finding;
mod freshness;
mod received;
mod tags;
mod writes;

use std::{process::ExitCode, time::Duration};

use clap::Args;
use http::StatusCode;

use self::{
    client::{DoctorClient, DoctorFailure},
    finding::Finding,
    freshness::Reach,
    received::ReceivedAnswer,
    tags::PlainAnswers,
};
use super::{Exit, print, run::fail};

/// The content codings that gateways compress with.
const CODINGS: [&str; 2] = ["gzip", "br"];

/// The check that stands for all writes where none is tried.
const WRITES: &str = "writes";

/// The options of `ifmatch doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorOptions {
    /// The URL of a resource that exists, as its clients write it.
    url: String,
    /// Try writes as well: put back the bytes that were read. Use a resource without other writers.
    #[arg(long)]
    write: bool,
    /// A header field of each request, 'Name: value'; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    headers: Vec<String>,
    /// How long each answer may take.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    timeout: Duration,
}

pub(super) fn execute(options: &DoctorOptions) -> ExitCode {
    let client =
        client::fields(&options.headers).and_then(|fields| DoctorClient::new(&options.url, fields, options.timeout));
    let client = match client {
        Ok(client) => client,
        Err(failure) => return fail(&failure, Exit::Usage),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error, Exit::Runtime),
    };
    if options.write {
        print(format_args!("doctor puts the bytes that it reads back to {}, several times.\n", options.url));
    }
    match runtime.block_on(examine(&client, options.write)) {
        Ok(findings) => {
            finding::report(&findings).into_iter().for_each(print);
            if finding::has_problem(&findings) { Exit::Runtime.into() } else { ExitCode::SUCCESS }
        }
        Err(failure) => fail(&failure, Exit::Runtime),
    }
}

async fn examine(client: &DoctorClient, write: bool) -> Result<Vec<Finding>, DoctorFailure> {
    let read = ask::get(client, &[]).await?;
    if read.status != StatusCode::OK {
        return Ok(vec![unreadable(&read)]);
    }
    let plain = ask::plain(client, read).await?;
    let cache = freshness::cache(&plain);
    match freshness::reach(&plain) {
        Reach::Open => examine_behind(client, &plain, cache, write).await,
        Reach::PastCache => {
            let past = client.past_caches();
            let read = ask::get(&past, &[]).await?;
            examine_behind(&past, &ask::plain(&past, read).await?, cache, write).await
        }
        Reach::Cache => {
            let mut findings = tags::of_answer(&plain.read);
            findings.push(cache);
            findings.extend(write.then(kept));
            Ok(finding::hidden_by("cache", findings))
        }
    }
}

/// Examines the server behind all caches. `cache` has the findings about the caches.
async fn examine_behind(
    client: &DoctorClient,
    plain: &PlainAnswers,
    cache: Finding,
    write: bool,
) -> Result<Vec<Finding>, DoctorFailure> {
    let mut findings = tags::judge(plain);
    let is_stable = plain.has_stable_tag();
    if let Some(tag) = plain.again.tag() {
        let answers = ask::conditional(client, &tag, &plain.again.body).await?;
        findings.extend(conditions::judge(&plain.again, &answers, is_stable));
        for coding in CODINGS {
            findings.extend(tags::coded(&tag, &ask::coded(client, coding).await?, answers.judges(), is_stable));
        }
        if is_stable {
            let (anything, others) = ask::by_other_names(client, &tag).await?;
            findings.extend(aliases::judge(&plain.again, answers.judges(), &anything, &others));
        }
    }
    findings.push(collections::judge(&ask::options(client).await?));
    findings.push(cache);
    if is_stable {
        findings.push(freshness::date(plain));
    }
    if write {
        findings.extend(try_writes(client, plain).await?);
    }
    Ok(match plain.again.tag() {
        _ if !is_stable => finding::hidden_by("stability", findings),
        None => finding::hidden_by("tag", findings),
        Some(_) => findings,
    })
}

async fn try_writes(client: &DoctorClient, plain: &PlainAnswers) -> Result<Vec<Finding>, DoctorFailure> {
    let fresh = &plain.fresh;
    if let Some(obstacle) = obstacle(fresh) {
        return Ok(vec![obstacle]);
    }
    let refused = ask::refused(client).await?;
    let mut findings = writes::refused(&refused);
    let is_clear =
        refused.wrong_match.status == StatusCode::PRECONDITION_FAILED || refused.wrong_match.status.is_success();
    if is_clear && plain.has_stable_tag() && fresh.tag().is_some() {
        findings.extend(writes::accepted(&ask::accepted(client).await?));
    }
    Ok(findings)
}

fn unreadable(read: &ReceivedAnswer) -> Finding {
    let sentence = format!("A read is answered {}, not 200.", read.status.as_u16());
    Finding::problem("read", sentence, "Give the URL of a resource that exists, and credentials with -H.")
}

/// Returns the reason why nothing may be written back.
fn obstacle(fresh: &ReceivedAnswer) -> Option<Finding> {
    if fresh.cached_by().is_some() {
        return Some(kept());
    }
    (fresh.status != StatusCode::OK || fresh.is_coded()).then(|| {
        let sentence = "Not tried: the bytes that are kept cannot be read.";
        Finding::note(WRITES, sentence, "Let a read without Accept-Encoding have them.")
    })
}

fn kept() -> Finding {
    let remedy = "Run doctor with fields that the cache lets pass, such as -H 'Authorization: ...'.";
    Finding::note(WRITES, "Not tried: a cache answers reads, and its bytes may be old.", remedy)
}

#[cfg(test)]
mod tests {
    use super::{finding::Severity, received::received, *};

    #[test]
    fn only_what_is_kept_is_written_back() {
        assert_eq!(obstacle(&received(200, &[], "x")), None);
        for answer in [
            received(200, &[("Age", "1")], "x"),
            received(200, &[("Content-Encoding", "gzip")], "x"),
            received(503, &[], "x"),
        ] {
            assert_eq!(obstacle(&answer).map(|finding| finding.severity), Some(Severity::Note), "{answer:?}");
        }
    }

    #[test]
    fn a_resource_that_cannot_be_read_is_a_problem() {
        assert_eq!(unreadable(&received(404, &[], "")).severity, Severity::Problem);
    }
}
