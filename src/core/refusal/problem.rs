//! The members of a problem document (RFC 9457).

use serde::{Serialize, Serializer};

use crate::core::{
    cause::{Cause, Reason, RequestId, Untagged},
    refusal::Code,
};

/// The room for most problem documents.
pub(super) const PROBLEM_BYTES: usize = 512;

/// The type of a problem, as a URI.
pub(super) struct ProblemType(pub(super) Code);

/// The request that a problem document is about, as a URI.
pub(super) struct Instance(pub(super) RequestId);

impl Serialize for ProblemType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("urn:ifmatch:problem:{}", self.0.as_str()))
    }
}

impl Serialize for Instance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("urn:ifmatch:request:{}", self.0))
    }
}

/// The members of a problem document, in the order that suits a reader.
#[derive(Serialize)]
pub(super) struct ProblemMembers<'a> {
    #[serde(rename = "type")]
    pub(super) kind: ProblemType,
    pub(super) title: &'a str,
    pub(super) status: u16,
    pub(super) detail: &'a str,
    pub(super) code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) in_doubt: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instance: Option<Instance>,
    #[serde(flatten)]
    pub(super) cause: CauseMembers<'a>,
}

/// The members that tell the client the cause, as far as it may know.
#[derive(Default, Serialize)]
pub(super) struct CauseMembers<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_tag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_tag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_change_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untagged: Option<&'static str>,
}

impl<'a> CauseMembers<'a> {
    pub(super) fn of(cause: &'a Cause) -> Self {
        let members = Self {
            reason: cause.reason.map(Reason::word),
            sent_tag: cause.sent_tag.as_deref(),
            // This is about an earlier read of the same client.
            untagged: cause.untagged.map(Untagged::word),
            ..Self::default()
        };
        if !cause.client_may_know {
            return members;
        }
        Self {
            current_tag: cause.current_tag.as_deref(),
            last_change_seconds: cause.last_change.as_ref().map(|change| change.age.as_secs()),
            probe_status: cause.probe_status,
            lease_seconds: cause.lease.as_ref().and_then(|lease| lease.remaining).map(|remaining| remaining.as_secs()),
            ..members
        }
    }
}
