//! The entry of this proxy in Via (RFC 9110 section 7.6.3).

use std::sync::LazyLock;

use http::{HeaderMap, HeaderValue, Version};

use crate::{
    core::{
        http::via::{PSEUDONYM, goes_round},
        refusal::{Code, Refusal},
    },
    entropy::random_u64,
};

/// The comment by which this process knows its own entry in a request. A client never sees it.
static OWN_COMMENT: LazyLock<String> = LazyLock::new(|| format!("({:016x})", random_u64().unwrap_or_default()));

/// The entries in requests, by the version of the message that was received.
static OF_REQUESTS: LazyLock<[HeaderValue; 3]> = LazyLock::new(|| {
    let entry = |version| HeaderValue::try_from(format!("{version} {PSEUDONYM} {}", *OWN_COMMENT));
    // Each of them is a valid value.
    ["2", "1.0", "1.1"].map(|version| entry(version).unwrap_or(HeaderValue::from_static("1.1 ifmatch")))
});

/// Returns the entry that this proxy adds to a response received in a version.
pub(crate) fn via(received: Version) -> HeaderValue {
    HeaderValue::from_static(match received {
        Version::HTTP_2 => "2 ifmatch",
        Version::HTTP_10 => "1.0 ifmatch",
        _ => "1.1 ifmatch",
    })
}

/// Returns the entry that this proxy adds to a request received in a version.
pub(crate) fn via_of_request(received: Version) -> HeaderValue {
    let [two, old, usual] = &*OF_REQUESTS;
    match received {
        Version::HTTP_2 => two.clone(),
        Version::HTTP_10 => old.clone(),
        _ => usual.clone(),
    }
}

/// Refuses a request that comes back to this process.
pub(crate) fn refuse_return(fields: &HeaderMap) -> Result<(), Refusal> {
    if goes_round(fields, &OWN_COMMENT) {
        let detail = "the request has been here before, as its Via field says: an upstream leads back to this proxy";
        return Err(Refusal::new(Code::LoopDetected, detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;

    #[test]
    fn a_request_that_was_forwarded_is_known() {
        for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
            let (mut forwarded, mut answered) = (HeaderMap::new(), HeaderMap::new());
            forwarded.insert(header::VIA, via_of_request(version));
            answered.insert(header::VIA, via(version));
            assert_eq!(refuse_return(&forwarded).map_err(|refusal| refusal.code), Err(Code::LoopDetected));
            assert!(refuse_return(&answered).is_ok(), "another process of ifmatch may be in front");
        }
    }
}
