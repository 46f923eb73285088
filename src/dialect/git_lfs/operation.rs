//! The operations of the API, by the methods and paths of their requests.

use http::Method;

use super::{LockName, LockPath, ObjectId, PageWanted, refusals};
use crate::{
    core::{
        http::{readings::query_names::form_decode, request_target::split_query},
        refusal::Refusal,
    },
    dialect::{Incoming, Intent},
};

/// A request of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LfsCall {
    /// The path of the repository, without a slash at its end.
    pub repository: String,
    /// The operation.
    pub operation: LfsOperation,
}

/// An operation of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LfsOperation {
    /// Tells where objects are read or written.
    Batch,
    /// Reads an object.
    ReadObject,
    /// Writes an object.
    WriteObject(ObjectId),
    /// Locks a path.
    Lock,
    /// Shows locks.
    ListLocks(LockFilter, PageWanted),
    /// Shows the locks of the client apart from those of others.
    VerifyLocks,
    /// Unlocks a path.
    Unlock(LockName),
}

/// The locks that a client wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockFilter {
    /// All of them.
    All,
    /// The lock of a path.
    OfPath(LockPath),
    /// The lock with a name.
    Named(LockName),
    /// None: no file has the path.
    Nothing,
}

impl LfsCall {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// It is no operation of the API, or one of its parameters is invalid.
    pub fn of(request: Incoming<'_>) -> Result<Self, Refusal> {
        let (path, query) = split_query(request.target);
        let path = str::from_utf8(path).map_err(|_where| refusals::no_operation())?;
        let segments: Vec<&str> = path.split('/').collect();
        let (repository, operation) = match segments.as_slice() {
            [repository @ .., "objects", "batch"] => (repository, only(request, &Method::POST, LfsOperation::Batch)?),
            [repository @ .., "objects", _, _, id] => (repository, of_object(request, path, (repository, id))?),
            [repository @ .., "locks", "verify"] => {
                (repository, only(request, &Method::POST, LfsOperation::VerifyLocks)?)
            }
            [repository @ .., "locks", name, "unlock"] => {
                (repository, only(request, &Method::POST, LfsOperation::Unlock(LockName::of(name)))?)
            }
            [repository @ .., "locks"] => (repository, of_locks(request, query.unwrap_or_default())?),
            _ => return Err(refusals::no_operation()),
        };
        Ok(Self { repository: repository.join("/"), operation })
    }
}

impl LfsOperation {
    /// The name of the operation in logs, and its purpose.
    pub const fn facts(&self) -> (&'static str, Intent) {
        match self {
            Self::Batch => ("Batch", Intent::List),
            Self::ReadObject => ("Download", Intent::Read),
            Self::WriteObject(_) => ("Upload", Intent::Write),
            Self::Lock => ("Lock", Intent::Lease),
            Self::ListLocks(..) => ("List Locks", Intent::Lease),
            Self::VerifyLocks => ("Verify Locks", Intent::Lease),
            Self::Unlock(_) => ("Unlock", Intent::Lease),
        }
    }
}

fn only(request: Incoming<'_>, method: &Method, operation: LfsOperation) -> Result<LfsOperation, Refusal> {
    if request.method == method { Ok(operation) } else { Err(refusals::bad_method()) }
}

/// An object has one path, so that all clients read what one of them has written.
fn of_object(request: Incoming<'_>, path: &str, (repository, id): (&[&str], &str)) -> Result<LfsOperation, Refusal> {
    let id = ObjectId::parse(id).filter(|id| id.path_in(&repository.join("/")) == path);
    let id = id.ok_or_else(refusals::no_operation)?;
    match *request.method {
        Method::GET | Method::HEAD => Ok(LfsOperation::ReadObject),
        Method::PUT => Ok(LfsOperation::WriteObject(id)),
        _ => Err(refusals::bad_method()),
    }
}

fn of_locks(request: Incoming<'_>, query: &[u8]) -> Result<LfsOperation, Refusal> {
    match *request.method {
        Method::POST => return Ok(LfsOperation::Lock),
        Method::GET => {}
        _ => return Err(refusals::bad_method()),
    }
    let (path, id) = (value_of(query, "path")?, value_of(query, "id")?);
    let filter = match (path.filter(|path| !path.is_empty()), id.filter(|id| !id.is_empty())) {
        (Some(path), _) => LockPath::parse(&path).map_or(LockFilter::Nothing, LockFilter::OfPath),
        (None, Some(id)) => LockFilter::Named(LockName::of(&id)),
        (None, None) => LockFilter::All,
    };
    let limit = value_of(query, "limit")?.filter(|limit| !limit.is_empty());
    let limit = limit.map(|limit| limit.parse().map_err(|_error| refusals::bad_page())).transpose()?;
    let page = PageWanted::of(value_of(query, "cursor")?.as_deref(), limit).ok_or_else(refusals::bad_page)?;
    Ok(LfsOperation::ListLocks(filter, page))
}

/// Returns the value of a parameter of the query.
fn value_of(query: &[u8], name: &str) -> Result<Option<String>, Refusal> {
    let value = |parameter: &[u8]| {
        parameter.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(|value| form_decode(value).into_owned())
    };
    let mut values = query.split(|octet| *octet == b'&').filter_map(value);
    let found = values.next();
    if values.next().is_some() {
        return Err(refusals::repeated_parameter());
    }
    found.map(String::from_utf8).transpose().map_err(|_where| refusals::repeated_parameter())
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::core::refusal::Code;

    const ID: &str = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";

    fn of(method: &Method, target: &str) -> Result<LfsCall, Code> {
        let headers = HeaderMap::new();
        let request = Incoming { method, other_methods: &[], target: target.as_bytes(), headers: &headers };
        LfsCall::of(request).map_err(|refusal| refusal.code)
    }

    fn call(repository: &str, operation: LfsOperation) -> LfsCall {
        LfsCall { repository: repository.to_owned(), operation }
    }

    #[test]
    fn operations_are_told_by_method_and_path() {
        let (get, post, put) = (Method::GET, Method::POST, Method::PUT);
        let object = format!("/game/objects/4d/7a/{ID}");
        let id = ObjectId::parse(ID).expect("a name");
        let all = || LfsOperation::ListLocks(LockFilter::All, PageWanted::default());
        for (method, target, expected) in [
            (&post, "/org/game.git/info/lfs/objects/batch", Ok(call("/org/game.git/info/lfs", LfsOperation::Batch))),
            (&post, "/objects/batch", Ok(call("", LfsOperation::Batch))),
            (&get, &*object, Ok(call("/game", LfsOperation::ReadObject))),
            (&Method::HEAD, &object, Ok(call("/game", LfsOperation::ReadObject))),
            (&put, &object, Ok(call("/game", LfsOperation::WriteObject(id)))),
            (&post, "/game/locks", Ok(call("/game", LfsOperation::Lock))),
            (&get, "/game/locks", Ok(call("/game", all()))),
            (&get, "/game/locks?refspec=refs%2Fheads%2Fmain", Ok(call("/game", all()))),
            (&post, "/game/locks/verify", Ok(call("/game", LfsOperation::VerifyLocks))),
            (&post, "/game/locks/0a/unlock", Ok(call("/game", LfsOperation::Unlock(LockName::of("0a"))))),
            (&get, "/game/objects/batch", Err(Code::MethodNotAllowed)),
            (&Method::DELETE, &object, Err(Code::MethodNotAllowed)),
            (&Method::DELETE, "/game/locks", Err(Code::MethodNotAllowed)),
            (&get, &*format!("/game/objects/4d/7b/{ID}"), Err(Code::NotSupported)),
            (&get, &*format!("/game/objects/{ID}"), Err(Code::NotSupported)),
            (&get, "/game/locks/art/hero.psd", Err(Code::NotSupported)),
            (&post, "/game/lock%73", Err(Code::NotSupported)),
            (&get, "/game", Err(Code::NotSupported)),
        ] {
            assert_eq!(of(method, target), expected, "{method} {target}");
        }
    }

    #[test]
    fn a_list_has_a_filter_and_a_page() {
        let filter = |query: &str| match of(&Method::GET, &format!("/game/locks?{query}")) {
            Ok(LfsCall { operation: LfsOperation::ListLocks(filter, page), .. }) => Ok((filter, page)),
            other => Err(other),
        };
        let path = |text| LockFilter::OfPath(LockPath::parse(text).expect("a path"));
        let page = |cursor, limit| PageWanted::of(cursor, limit).expect("a page");
        let cursor = "00112233445566778899aabbccddeeff";
        assert_eq!(filter("path=art%2Fhero+1.psd&id="), Ok((path("art/hero 1.psd"), PageWanted::default())));
        assert_eq!(filter("path=..%2Fa"), Ok((LockFilter::Nothing, PageWanted::default())));
        assert_eq!(filter("id=0a&limit=7"), Ok((LockFilter::Named(LockName::of("0a")), page(None, Some(7)))));
        assert_eq!(filter(&format!("cursor={cursor}")), Ok((LockFilter::All, page(Some(cursor), None))));
        for query in ["limit=-1", "limit=x", "cursor=1", "path=a&path=b", "path=%ff"] {
            assert_eq!(filter(query), Err(Err(Code::MalformedRequest)), "{query}");
        }
    }
}
