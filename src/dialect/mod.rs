//! The dialects of clients (`dialect`): how a request head becomes a call, and how its outcome becomes an answer. Pure.
//!
//! # Design
//!
//! *Which code depends on the dialect of a route?* Only [`Dialect::grammar`]. All other code calls the [`Grammar`] to
//! read or write something, or looks at its data: [`Quirks`] to judge a request, and the rest of its [`DialectFacts`]
//! to read a configuration. A new dialect is a variant of [`Dialect`] with its name, and a file with its grammar.
//! If its requests are more than single verbs of the guard, its quirks name the service that carries them out.
//!
//! *Why is a grammar native by default?* S3 differs from plain HTTP in only a few places, and so does any other storage
//! service with its own conditional requests.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::core::{
    lease::{Denied, Done, LeaseDuration, LeaseId, UseDenied, field_names::LEASE_ID},
    policy::{Dialect, GuardRules, LeaseRules},
    quirks::Quirks,
    records::record::Snapshot,
    refusal::{Code, Refusal},
    tags::checksum::Checksum,
};

mod answers;
pub mod azure;
pub mod azure_queue;
pub mod azure_table;
mod call;
pub mod description;
mod endless_locks;
pub mod git_lfs;
pub mod index;
mod markup;
pub mod native;
pub mod objects;
pub mod s3;
pub mod settings;
pub mod terraform;
#[cfg(test)]
mod toy;
pub mod webdav;
pub mod xml;

pub use answers::{CallOutcome, ErrorDocument, Response, ShownDocument};
pub use call::{AtDestination, Call, ForwardedHead, Incoming, Intent, LeaseOnRead, LeaseOperation, PartChecksum};

use description::DescriptionGrammar;
use objects::{BlockGrammar, CopyGrammar, ListGrammar};
use settings::{Defaults, Demands, DialectFacts};

impl Dialect {
    /// Each dialect with its name in the configuration.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("native", Self::Native),
        ("s3", Self::S3),
        ("azure", Self::Azure),
        ("azure-table", Self::AzureTable),
        ("azure-queue", Self::AzureQueue),
        ("terraform", Self::Terraform),
        ("git-lfs", Self::GitLfs),
        ("webdav", Self::WebDav),
        #[cfg(test)]
        ("toy", Self::Toy),
    ];

    /// Returns the grammar of the dialect.
    pub fn grammar(self) -> &'static dyn Grammar {
        match self {
            Self::Native => &native::Native,
            Self::S3 => &s3::S3,
            Self::Azure => &azure::Azure,
            Self::AzureTable => &azure_table::AzureTable,
            Self::AzureQueue => &azure_queue::AzureQueue,
            Self::Terraform => &terraform::Terraform,
            Self::GitLfs => &git_lfs::GitLfs,
            Self::WebDav => &webdav::WebDav,
            #[cfg(test)]
            Self::Toy => &toy::Toy,
        }
    }

    /// Returns the differences between the dialect and plain HTTP.
    pub fn quirks(self) -> &'static Quirks {
        &self.grammar().facts().quirks
    }
}

/// The grammar of a dialect. Methods that a grammar does not define work as in [`native`].
pub trait Grammar: Sync {
    /// Returns the data of the dialect.
    fn facts(&self) -> &'static DialectFacts {
        &native::FACTS
    }

    /// Reads a request to a route with these rules. `is_lease`: whether its path is the path of a lease.
    ///
    /// # Errors
    ///
    /// The request cannot be read, or the dialect does not serve it.
    fn read(&self, request: Incoming<'_>, rules: &GuardRules, is_lease: bool) -> Result<Call, Refusal> {
        native::call(request, rules, is_lease)
    }

    /// Reads a lease operation. `fresh` draws the id of a lease for which the client chooses none.
    ///
    /// # Errors
    ///
    /// The request cannot be read, or the route does not allow the operation.
    fn lease(&self, request: Incoming<'_>, rules: &LeaseRules, fresh: Fresh) -> Result<LeaseOperation, Refusal> {
        native::read(request.method, request.headers, rules, fresh)
    }

    /// Returns the root of the tree that the removal of a collection removes, by the key of its request. `None` if no key
    /// tells.
    fn removed_tree(&self, key: &str) -> Option<String> {
        Some(key.to_owned())
    }

    /// True if a read requests the lease of its resource.
    fn asks_for_lease(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(&native::LEASE_DURATION)
    }

    /// Reads the lease that a GET requests, if it requests one (`lease.acquire_on_read`).
    ///
    /// # Errors
    ///
    /// Those of [`Grammar::lease`].
    fn lease_on_read(
        &self,
        headers: &HeaderMap,
        rules: &LeaseRules,
        fresh: Fresh,
    ) -> Result<Option<LeaseOnRead>, Refusal> {
        Ok(native::read_on_get(headers, rules, fresh)?.map(|wanted| (wanted, native::wait(headers))))
    }

    /// Returns the fields that tell a client of its grant.
    fn grant_fields(
        &self,
        id: LeaseId,
        duration: LeaseDuration,
        snapshot: &Snapshot,
    ) -> Vec<(HeaderName, HeaderValue)> {
        native::grant_fields(id, duration, snapshot).to_vec()
    }

    /// Returns the response to a lease operation that succeeded. `presented` is the id that the request named,
    /// `snapshot` is the record after the operation, and `waited` is true if the client had to wait.
    ///
    /// # Errors
    ///
    /// The dialect treats this kind of success as an error.
    fn lease_done(
        &self,
        done: Done,
        presented: Option<LeaseId>,
        snapshot: &Snapshot,
        waited: bool,
    ) -> Result<Response, Refusal> {
        let _ = presented;
        Ok(native::done(done, snapshot, waited))
    }

    /// Returns the response that shows a lease.
    fn lease_shown(&self, snapshot: &Snapshot) -> Response {
        native::show(snapshot)
    }

    /// Returns the refusal of a lease operation.
    fn lease_denied(&self, denied: Denied) -> Refusal {
        native::refuse(denied)
    }

    /// Returns the refusal of a read or write that a lease forbids.
    fn use_denied(&self, denied: UseDenied) -> Refusal {
        native::refuse_use(denied)
    }

    /// Returns the refusal of a body that does not have this checksum.
    fn checksum_mismatch(&self, checksum: Checksum) -> Refusal {
        let _ = checksum;
        Refusal::new(Code::MalformedRequest, "the body does not have the checksum that the request names")
    }

    /// Returns the grammar of uploads in blocks, if the dialect has them.
    fn blocks(&self) -> Option<&'static dyn BlockGrammar> {
        None
    }

    /// Returns the grammar of copies, if the dialect has them.
    fn copies(&self) -> Option<&'static dyn CopyGrammar> {
        None
    }

    /// Returns the grammar of lists, if the dialect has them.
    fn lists(&self) -> Option<&'static dyn ListGrammar> {
        None
    }

    /// Returns the grammar of descriptions, if the dialect has them.
    fn description(&self) -> Option<&'static dyn DescriptionGrammar> {
        None
    }

    /// Returns the usual spelling of the field that presents a lease.
    fn lease_field(&self) -> &'static str {
        LEASE_ID.title
    }

    /// Returns the document that reports a refusal, with the id of the refused request.
    fn refusal(&self, request: Incoming<'_>, refusal: &Refusal) -> ErrorDocument {
        native::page_or_problem(request, refusal)
    }

    /// Returns the meaning of the upstream's status and fields for a call.
    fn outcome(&self, call: &Call, status: StatusCode, fields: &HeaderMap) -> CallOutcome {
        let _ = (call, fields);
        CallOutcome::Done { status, relays_body: true, fields: Vec::new() }
    }

    /// True if a multistatus that answers a request with this method tells that all was done.
    fn tells_success(&self, method: &Method, multistatus: &[u8]) -> bool {
        let _ = (method, multistatus);
        false
    }

    /// Returns the fields of each answer to a request with these fields. The number of the answer is made from
    /// `random`.
    fn answer_fields(&self, request: &HeaderMap, random: Random) -> Vec<(HeaderName, HeaderValue)> {
        let _ = (request, random);
        Vec::new()
    }

    /// Returns the fields that a 304 gets.
    fn not_modified_fields(&self) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }

    /// True if only this proxy writes a field of an answer, beside those that it writes in every dialect.
    fn is_own_field(&self, name: &HeaderName) -> bool {
        let _ = name;
        false
    }

    /// Returns the fields that tell a reader of the lease of the resource.
    fn state_fields(&self, snapshot: &Snapshot) -> Vec<(HeaderName, HeaderValue)> {
        let _ = snapshot;
        Vec::new()
    }

    /// Returns the target of a probe for a request with this target, without the credentials in it.
    fn probe_target(&self, target: &[u8]) -> Vec<u8> {
        s3::target_without_signature(target)
    }
}

/// A function that draws the id of a lease.
pub type Fresh = fn() -> Result<LeaseId, Refusal>;

/// Draws the number of an answer. It is drawn only for a dialect whose answers have one.
pub type Random = fn() -> [u8; 16];
