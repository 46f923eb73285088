//! The spelling of requests: which lock or unlock a state, and the ID that a write names.

use http::Method;

use super::lock_info::lease_id;
use crate::{
    core::{
        http::{
            readings::query_names::form_decode,
            request_target::{KeptInNames, join_query, normalize, split_query},
        },
        lease::LeaseId,
        policy::GuardRules,
        refusal::{Code, Refusal},
    },
    dialect::Incoming,
};

/// The parameter of the query that names a lock, as its clients spell it.
const ID: &[u8] = b"ID";

/// The effect of a request on the lock of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockVerb {
    /// The client takes the lock.
    Lock,
    /// The client gives the lock up, or ends it.
    Unlock,
}

impl LockVerb {
    /// Returns the method that means this on every route.
    pub fn method(self) -> Method {
        // Both are tokens.
        Method::from_bytes(self.word().as_bytes()).unwrap_or_default()
    }

    /// Returns the name of the operation.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lock => "LOCK",
            Self::Unlock => "UNLOCK",
        }
    }
}

/// A request for the lock of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRequest {
    /// The effect of the request.
    pub verb: LockVerb,
    /// The target of the state.
    pub target: Vec<u8>,
    /// The lease that its query names.
    pub named: Option<LeaseId>,
}

/// Reads a request for the lock of a state; `None` if it is none.
///
/// # Errors
///
/// The request has no meaning for a lock.
pub fn lock_request(request: Incoming<'_>, rules: &GuardRules) -> Result<Option<LockRequest>, Refusal> {
    let of_method = [LockVerb::Lock, LockVerb::Unlock].into_iter().find(|verb| verb.word() == request.method.as_str());
    let (path, query) = split_query(request.target);
    let (verb, state) = match path_of_state(path, rules.lock_suffix.as_deref())? {
        Some(state) => (of_method.map_or_else(|| verb_of_own_path(request.method), Ok)?, state),
        None => match of_method {
            Some(verb) => (verb, path),
            None => return Ok(None),
        },
    };
    let (named, target) = take_id(&join_query(state, query))?;
    Ok(Some(LockRequest { verb, target, named }))
}

/// Returns the lease that the query of a target names, and the target without that.
///
/// # Errors
///
/// The query names several.
pub(super) fn take_id(target: &[u8]) -> Result<(Option<LeaseId>, Vec<u8>), Refusal> {
    let (path, query) = split_query(target);
    let Some(query) = query else { return Ok((None, target.to_vec())) };
    let value = |parameter: &&[u8]| parameter.strip_prefix(ID)?.strip_prefix(b"=").map(<[u8]>::to_vec);
    let parameters = || query.split(|octet| *octet == b'&');
    let ids: Vec<_> = parameters().filter_map(|parameter| value(&parameter)).collect();
    let named = match ids.as_slice() {
        [] => return Ok((None, target.to_vec())),
        [id] => str::from_utf8(&form_decode(id)).map(lease_id).map_err(|_where| malformed("is no text"))?,
        _ => return Err(malformed("occurs twice")),
    };
    let rest: Vec<_> = parameters().filter(|parameter| value(parameter).is_none()).collect();
    let rest = rest.join(&b'&');
    Ok((Some(named), join_query(path, Some(&*rest).filter(|rest| !rest.is_empty()))))
}

/// Returns the path of the state whose lock has this path; `None` if it is that of no lock.
fn path_of_state<'a>(path: &'a [u8], suffix: Option<&str>) -> Result<Option<&'a [u8]>, Refusal> {
    let Some(suffix) = suffix else { return Ok(None) };
    // The door has refused what has no normal form.
    let is_of_lock = normalize(path, KeptInNames::ALL).is_ok_and(|normal| normal.as_str().ends_with(suffix));
    if !is_of_lock {
        return Ok(None);
    }
    let misspelled = || {
        let detail = format!("spell the path of a lock as that of its state and {suffix}");
        Refusal::new(Code::AmbiguousTarget, detail)
    };
    let state = path.strip_suffix(suffix.as_bytes()).filter(|state| !state.is_empty());
    state.map(Some).ok_or_else(misspelled)
}

fn verb_of_own_path(method: &Method) -> Result<LockVerb, Refusal> {
    match *method {
        Method::POST | Method::PUT => Ok(LockVerb::Lock),
        Method::DELETE => Ok(LockVerb::Unlock),
        _ => Err(Refusal::new(Code::MethodNotAllowed, "a lock takes POST, which locks, and DELETE, which unlocks")),
    }
}

fn malformed(why: &str) -> Refusal {
    Refusal::new(Code::MalformedRequest, format!("name one lock in the query: the parameter ID {why}"))
}
