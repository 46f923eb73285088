//! The requests of `doctor`: reads, and writes that put back the bytes that were read.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use tokio::time::sleep;

use super::{
    aliases::{Alias, AliasAnswers, no_name},
    client::{DoctorClient, DoctorFailure},
    conditions::ConditionalAnswers,
    received::ReceivedAnswer,
    tags::{CodedAnswers, PlainAnswers},
    writes::{RefusedAnswers, WriteAnswers},
};
use crate::{core::tags::entity_tag::EntityTag, entropy::number_of_request};

/// A tag that no state has.
const WRONG_TAG: HeaderValue = HeaderValue::from_static("\"ifmatch-doctor\"");
/// Longer than the coarsest clock of tags and dates, a second.
const PAUSE: Duration = Duration::from_millis(1_100);
/// How often two writes may fall into different seconds before `doctor` gives up.
const ATTEMPTS: usize = 3;

type WithFields<'a> = &'a [(HeaderName, HeaderValue)];

/// Sends a GET with these fields, and without content coding unless they ask for one.
pub(super) async fn get(client: &DoctorClient, fields: WithFields<'_>) -> Result<ReceivedAnswer, DoctorFailure> {
    client.send(Method::GET, &with_identity(fields), Bytes::new()).await
}

fn with_identity(fields: WithFields<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let identity = (header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    std::iter::once(identity).chain(fields.iter().cloned()).collect()
}

fn no_cache() -> (HeaderName, HeaderValue) {
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))
}

/// Sends the reads without conditions that follow a first one.
pub(super) async fn plain(client: &DoctorClient, read: ReceivedAnswer) -> Result<PlainAnswers, DoctorFailure> {
    sleep(PAUSE).await;
    Ok(PlainAnswers {
        read,
        again: get(client, &[]).await?,
        head: client.send(Method::HEAD, &with_identity(&[]), Bytes::new()).await?,
        fresh: get(client, &[no_cache()]).await?,
        unkept: [unkept(client).await?, unkept(client).await?],
        last: get(client, &[no_cache()]).await?,
    })
}

/// Reads with a query that no client has sent before, so that no cache keeps an answer to it.
async fn unkept(client: &DoctorClient) -> Result<ReceivedAnswer, DoctorFailure> {
    let client = client.with_parameter(&format!("ifmatch-doctor={:016x}", number_of_request()))?;
    get(&client, &[no_cache()]).await
}

/// Sends the reads with conditions.
pub(super) async fn conditional(
    client: &DoctorClient,
    tag: &EntityTag,
    body: &Bytes,
) -> Result<ConditionalAnswers, DoctorFailure> {
    let own = tag.to_header_value();
    let mut list = WRONG_TAG.as_bytes().to_vec();
    list.extend_from_slice(b", ");
    list.extend_from_slice(own.as_bytes());
    // Two tags and a comma are a field value.
    let list = HeaderValue::from_bytes(&list).unwrap_or_else(|_invalid| own.clone());
    let weak = EntityTag::weak(tag.opaque()).map_or_else(|_malformed| own.clone(), |weak| weak.to_header_value());
    let none_match = async |form, value: &HeaderValue| {
        Ok::<_, DoctorFailure>((form, get(client, &[(header::IF_NONE_MATCH, value.clone())]).await?))
    };
    let first_byte = (header::RANGE, HeaderValue::from_static("bytes=0-0"));
    Ok(ConditionalAnswers {
        wrong_match: get(client, &[(header::IF_MATCH, WRONG_TAG)]).await?,
        own_match: get(client, &[(header::IF_MATCH, own.clone())]).await?,
        list_match: get(client, &[(header::IF_MATCH, list.clone())]).await?,
        none_match: [
            none_match("alone", &own).await?,
            none_match("list", &list).await?,
            none_match("weak", &weak).await?,
        ],
        wrong_range: if body.is_empty() {
            None
        } else {
            Some(get(client, &[first_byte, (header::IF_RANGE, WRONG_TAG)]).await?)
        },
    })
}

/// Reads with a content coding, and sends the tag of the answer back.
pub(super) async fn coded(client: &DoctorClient, coding: &'static str) -> Result<CodedAnswers, DoctorFailure> {
    let accept = (header::ACCEPT_ENCODING, HeaderValue::from_static(coding));
    let read = client.send(Method::GET, std::slice::from_ref(&accept), Bytes::new()).await?;
    let sent_back = match read.tag() {
        Some(tag) => {
            let fields = [accept, (header::IF_MATCH, tag.to_header_value())];
            Some(client.send(Method::GET, &fields, Bytes::new()).await?)
        }
        None => None,
    };
    Ok(CodedAnswers { coding, read, sent_back })
}

/// Reads the resource by each other name that its path can have, and by a name that no resource has.
pub(super) async fn by_other_names(
    client: &DoctorClient,
    tag: &EntityTag,
) -> Result<(ReceivedAnswer, Vec<AliasAnswers>), DoctorFailure> {
    let anything = get(&client.at(&no_name(client.path()))?, &[]).await?;
    let mut answers = Vec::new();
    for alias in Alias::ALL {
        let Some(name) = alias.of(client.path()) else { continue };
        let client = client.at(&name)?;
        let if_match = async |tag: HeaderValue| get(&client, &[(header::IF_MATCH, tag)]).await;
        answers.push(AliasAnswers {
            alias,
            read: get(&client, &[]).await?,
            matches: [if_match(WRONG_TAG).await?, if_match(tag.to_header_value()).await?],
            name,
        });
    }
    Ok((anything, answers))
}

/// Asks what the server can do with the resource.
pub(super) async fn options(client: &DoctorClient) -> Result<ReceivedAnswer, DoctorFailure> {
    client.send(Method::OPTIONS, &[], Bytes::new()).await
}

/// Sends the writes that must be refused.
pub(super) async fn refused(client: &DoctorClient) -> Result<RefusedAnswers, DoctorFailure> {
    let wrong_match = put(client, &current(client).await?, Some(WRONG_TAG)).await?;
    let is_judged = wrong_match.status == StatusCode::PRECONDITION_FAILED;
    let unconditional = if is_judged { Some(put(client, &current(client).await?, None).await?) } else { None };
    Ok(RefusedAnswers { wrong_match, unconditional })
}

/// Sends two writes with the current tag, within one second of the server if that succeeds.
pub(super) async fn accepted(client: &DoctorClient) -> Result<WriteAnswers, DoctorFailure> {
    let mut attempt = 1;
    loop {
        let answers = write_twice(client).await?;
        let is_clear = answers.share_a_second() || answers.first_read.tag() != answers.second_read.tag();
        if is_clear || !answers.second_write.status.is_success() || attempt == ATTEMPTS {
            return Ok(answers);
        }
        attempt += 1;
    }
}

/// Writes twice, and once more if the second of the server's clock may have ended between the writes: it does not end
/// twice.
async fn write_twice(client: &DoctorClient) -> Result<WriteAnswers, DoctorFailure> {
    sleep(PAUSE).await;
    let tag = |read: &ReceivedAnswer| read.tag().map(|tag| tag.to_header_value());
    let before = current(client).await?;
    let first_write = put(client, &before, tag(&before)).await?;
    let first_read = current(client).await?;
    let second_write = put(client, &first_read, tag(&first_read)).await?;
    let second_read = current(client).await?;
    let mut answers = WriteAnswers {
        before,
        first_write,
        first_read,
        second_write,
        second_read: second_read.clone(),
        settled: second_read,
    };
    if answers.may_be_of_two_seconds() {
        let third_write = put(client, &answers.second_read, tag(&answers.second_read)).await?;
        answers = answers.followed_by(third_write, current(client).await?);
    }
    sleep(PAUSE).await;
    Ok(WriteAnswers { settled: current(client).await?, ..answers })
}

/// Reads the bytes that the next write puts back.
async fn current(client: &DoctorClient) -> Result<ReceivedAnswer, DoctorFailure> {
    let read = get(client, &[no_cache()]).await?;
    if read.status == StatusCode::OK { Ok(read) } else { Err(DoctorFailure::Gone(read.status)) }
}

/// Puts back the content that was read.
async fn put(
    client: &DoctorClient,
    read: &ReceivedAnswer,
    if_match: Option<HeaderValue>,
) -> Result<ReceivedAnswer, DoctorFailure> {
    let mut fields = Vec::new();
    fields.extend(read.fields.get(header::CONTENT_TYPE).map(|value| (header::CONTENT_TYPE, value.clone())));
    fields.extend(if_match.map(|value| (header::IF_MATCH, value)));
    client.send(Method::PUT, &fields, read.body.clone()).await
}
