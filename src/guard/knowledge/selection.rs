//! The parts of a request that select one representation of a resource among others (DESIGN, section 2, "variant").

use http::{HeaderMap, HeaderName, HeaderValue, header};
use pingora::http::RequestHeader;

use super::responses::selecting_fields;
use crate::{
    core::{
        http::request_target::{KeptInNames, normalize, split_query},
        policy::GuardRules,
        tags::parts_hash::PartsHasher,
    },
    guard::request::Request,
};

/// Fields of the client itself: its credentials, its origin and the host that it called. A probe carries those of the
/// client that it serves.
const OF_THE_CLIENT: [HeaderName; 4] = [header::AUTHORIZATION, header::COOKIE, header::ORIGIN, header::HOST];

/// The selection of a representation: the target, and the values of the fields that `Vary` named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Path and query, as they were sent.
    target: Vec<u8>,
    /// The selecting fields with their values, in the order of their names.
    fields: Vec<(HeaderName, Vec<HeaderValue>)>,
}

impl Selection {
    /// The selection behind the response to a request.
    pub(crate) fn of(rules: &GuardRules, sent: &RequestHeader, response: &HeaderMap) -> Self {
        let is_own = |name: &HeaderName| {
            OF_THE_CLIENT.contains(name)
                || rules.identifies(name)
                // Bytes to be hashed are requested without a content coding, no matter which ones the client accepts.
                || rules.etag.needs_body() && *name == header::ACCEPT_ENCODING
        };
        let mut fields = selecting_fields(&sent.headers, response).unwrap_or_default();
        fields.retain(|(name, _)| !is_own(name));
        fields.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        fields.dedup_by(|(one, _), (other, _)| one == other);
        Self { target: sent.raw_path().to_vec(), fields }
    }

    /// The number of this variant in the tags of the resource; `None` if the resource's own path alone selects it.
    pub(crate) fn number(&self, request: &Request) -> Option<u32> {
        let (path, query) = split_query(&self.target);
        let own = request.key.as_str().strip_prefix(request.upstream().identity.as_str());
        let own = own.and_then(|key| key.strip_prefix(':')).unwrap_or_default();
        let normal = (path != own.as_bytes()).then(|| normalize(path, KeptInNames::ALL).ok()).flatten();
        let normal = normal.map(|normal| if request.upstream().ignore_case { normal.folded() } else { normal });
        let path = normal.as_ref().map_or(path, |normal| normal.as_str().as_bytes());
        if path == own.as_bytes() && query.is_none() && self.fields.is_empty() {
            return None;
        }
        let mut hasher = PartsHasher::default();
        hasher.add(path);
        hasher.add(query.unwrap_or_default());
        for (name, values) in &self.fields {
            hasher.add(name.as_str().as_bytes());
            hasher.add(&(values.len() as u64).to_le_bytes());
            for value in values {
                hasher.add(value.as_bytes());
            }
        }
        let [a, b, c, d, ..] = hasher.hash();
        Some(u32::from_be_bytes([a, b, c, d]))
    }

    /// Makes a request select the same representation.
    pub(crate) fn apply(&self, head: &mut RequestHeader) -> pingora::Result<()> {
        head.set_raw_path(&self.target)?;
        for (name, values) in &self.fields {
            head.remove_header(name);
            for value in values {
                head.append_header(name.clone(), value.clone())?;
            }
        }
        Ok(())
    }

    /// True if a request has the same target.
    pub(crate) fn has_target_of(&self, head: &RequestHeader) -> bool {
        self.target == head.raw_path()
    }

    /// True if a request selects the same representation.
    pub(crate) fn is_that_of(&self, head: &RequestHeader) -> bool {
        self.has_target_of(head)
            && self.fields.iter().all(|(name, values)| head.headers.get_all(name).iter().eq(values))
    }

    /// The approximate size of the selection, in bytes.
    pub(crate) fn len(&self) -> usize {
        let values = self.fields.iter().flat_map(|(_, values)| values).map(HeaderValue::len);
        self.target.len() + values.sum::<usize>()
    }
}
