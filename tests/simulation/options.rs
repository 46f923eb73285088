//! Configurations: their options, and their text.

use std::{fmt::Write as _, time::Duration};

use fastrand::Rng;

use crate::{
    backend::{Style, Tags},
    dates::Dates,
    heads::Heads,
    metadata::SUFFIX,
};

/// The source of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Content,
    Version,
    Upstream,
    Header,
    Json,
    Delegate,
}

pub const SOURCES: [Source; 6] =
    [Source::Content, Source::Version, Source::Upstream, Source::Header, Source::Json, Source::Delegate];

impl Source {
    fn word(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Version => "version",
            Self::Upstream => "upstream",
            Self::Header => "header:X-Rev",
            Self::Json => "json:/rev",
            Self::Delegate => "delegate",
        }
    }
}

/// The server that has no resources.
pub const ELSEWHERE: &str = "127.0.0.1:10";

/// The host by which collections are locked.
pub const LOCKS_HOST: &str = "locks";

/// The accesses that a lease keeps from other clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guards {
    Write,
    Read,
    ReadAndWrite,
    Delete,
}

/// The choices behind a configuration of five routes: documents, the same documents by another path and through another
/// upstream, by a body that names them, their parts, and items.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub source: Source,
    pub exclusive: bool,
    pub tags: Tags,
    pub tells_tag: bool,
    pub judges: bool,
    pub contents: u32,
    pub require: &'static str,
    pub omits: bool,
    /// How many re-reads must show what was sent before a PUT does without one.
    pub verbatim_after: usize,
    /// Whether documents can be leased on their own path and on their other path.
    pub leased: (bool, bool),
    /// True if items can be leased too.
    pub items_leased: bool,
    pub guards: Guards,
    pub required: bool,
    /// True if clients may share leases.
    pub shared: bool,
    /// True if a DELETE waits for the other holders of a shared lease.
    pub delete_pending: bool,
    pub idempotent: bool,
    /// The states that reads show.
    pub reads: &'static str,
    /// True if documents have metadata, and are served as Azure's blobs.
    pub has_metadata: bool,
    pub item_touches_document: bool,
    pub document_touches_item: bool,
    /// The key of documents.
    pub document_key: &'static str,
    /// True if each upstream has a server and an identity of its own. One server has all resources, and the other none.
    pub has_servers_apart: bool,
    /// True if the two upstreams have each other's server.
    pub are_servers_swapped: bool,
    /// Seconds, for the first and the second upstream.
    pub late_write_window: (u64, u64),
    pub timeout: (u64, u64),
    pub start_grace: u64,
    pub dates: Dates,
    /// True if others write without ifmatch.
    pub others_write: bool,
    /// True if the configuration says that the backend's tags never repeat.
    pub says_unique: bool,
    /// The time for which the right of a client that watches lasts, in seconds; `None` if no client may watch.
    pub identity_ttl: Option<u64>,
}

impl Options {
    /// Returns options for documents alone, with good tags and no lease.
    pub fn plain(source: Source) -> Self {
        Self {
            source,
            exclusive: source == Source::Version,
            tags: Tags::Precise,
            tells_tag: false,
            judges: source == Source::Delegate,
            contents: u32::MAX,
            require: "always",
            omits: false,
            verbatim_after: 32,
            leased: (false, false),
            items_leased: false,
            guards: Guards::Write,
            required: false,
            shared: false,
            delete_pending: false,
            idempotent: false,
            reads: "any",
            has_metadata: false,
            item_touches_document: false,
            document_touches_item: false,
            document_key: "/docs/{id}",
            has_servers_apart: false,
            are_servers_swapped: false,
            late_write_window: (5, 5),
            timeout: (10, 10),
            start_grace: 0,
            dates: Dates::None,
            others_write: false,
            says_unique: false,
            identity_ttl: None,
        }
    }

    /// The same options, where no write touches another resource.
    pub fn without_touches(self) -> Self {
        Self { item_touches_document: false, document_touches_item: false, ..self }
    }

    /// The same options, where one client at a time holds a lease, and no DELETE waits for another.
    pub fn without_sharing(self) -> Self {
        Self { shared: false, delete_pending: false, ..self }
    }

    /// Returns options for the same proxy under other rules. Proxies beside each other must agree on what excludes
    /// writes, so options of that kind change only if the proxy is alone.
    pub fn reloaded(self, random: &mut Rng, is_alone: bool) -> Self {
        let mut other = Self {
            require: ["always", "existing", "never"][random.usize(..3)],
            omits: random.bool(),
            idempotent: random.bool(),
            reads: if random.bool() { "settled" } else { "any" },
            ..self
        };
        if is_alone {
            let seconds = |random: &mut Rng| (random.u64(1..20), random.u64(1..20));
            (other.late_write_window, other.timeout) = (seconds(random), seconds(random));
            other.leased = if random.bool() { self.leased } else { (random.bool(), random.bool()) };
            let by_backend = [Source::Content, Source::Upstream, Source::Header, Source::Json];
            if by_backend.contains(&self.source) && !self.exclusive && random.bool() {
                other.source = by_backend[random.usize(..by_backend.len())];
            }
        }
        other
    }

    /// True if the backend acts on no read while a write is in flight.
    pub fn has_settled_reads(&self) -> bool {
        self.reads == "settled"
    }

    pub fn style(&self) -> Style {
        Style {
            tags: self.tags,
            tells_tag: self.tells_tag,
            judges: self.judges,
            tag_in_body: self.source == Source::Json,
            contents: self.contents,
            item_touches_document: self.item_touches_document,
            document_touches_item: self.document_touches_item,
            has_servers_apart: self.has_servers_apart,
            dates: self.dates,
            others_write: self.others_write,
            later_by: Duration::ZERO,
            heads: Heads::AsGet,
            changes_each: None,
        }
    }

    /// True if a configuration of these options may let a DELETE wait.
    pub fn lets_deletes_wait(&self) -> bool {
        self.delete_pending && self.shared && self.guards != Guards::Read && self.source != Source::Delegate
    }

    /// Returns the text of the configuration.
    pub fn text(&self) -> String {
        let mut text = format!("[store]\nkind = \"memory\"\nstart_grace = \"{}s\"\n", self.start_grace);
        for (name, late_write_window, timeout) in
            [("one", self.late_write_window.0, self.timeout.0), ("two", self.late_write_window.1, self.timeout.1)]
        {
            let identity = if self.has_servers_apart { name } else { "backend" };
            let is_elsewhere = self.has_servers_apart && (name == "two") != self.are_servers_swapped;
            let server = if is_elsewhere { ELSEWHERE } else { "127.0.0.1:9" };
            let _ = write!(
                text,
                "[upstreams.{name}]\nservers = [\"{server}\"]\nidentity = \"{identity}\"\nlate_write_window = \"{late_write_window}s\"\n\
                 timeout = \"{timeout}s\"\n"
            );
        }
        let other_writers = !self.exclusive;
        let _ = write!(
            text,
            "[defaults]\netag = \"{}\"\nother_writers = {other_writers}\nrequire = \"{}\"\non_write = \"{}\"\nverbatim_after = {}\nidempotency = \"{}\"\n\
             reads = \"{}\"\n",
            self.source.word(),
            self.require,
            if self.omits { "omit" } else { "probe" },
            self.verbatim_after,
            if self.idempotent { "accept" } else { "off" },
            self.reads,
        );
        if self.says_unique {
            text.push_str("unique_tags = true\n");
        }
        if let Some(seconds) = self.identity_ttl {
            let _ = write!(text, "watch = true\nidentity_ttl = \"{seconds}s\"\n");
        }
        if self.has_metadata {
            let _ = write!(
                text,
                "metadata_suffix = \"{SUFFIX}\"\n[[routes]]\nname = \"documents\"\npath = \"/docs/{{id}}\"\nupstream = \"one\"\n\
                 policy = \"pessimistic\"\ndialect = \"azure\"\n[routes.lease]\nauth = \"none\"\n"
            );
            return text;
        }
        let (documents, items, key) = ("/docs/{id}", "/items/{id}", self.document_key);
        let touches =
            |touches: bool, what: &str| if touches { format!("also_changes = [\"{what}\"]\n") } else { String::new() };
        let of_document = touches(self.document_touches_item, items);
        let part = "/docs/{id}/parts/{part}";
        self.route(&mut text, ("documents", documents, key), "one", self.leased.0, &of_document);
        self.route(&mut text, ("alias", "/alias/{id}", key), "two", self.leased.1, &of_document);
        self.route(&mut text, ("parts", part, key), "one", self.leased.0, &of_document);
        let list = "writes_to = \"/docs/{json./id}\"\n";
        self.route(&mut text, ("list", "/docs", "{path}"), "one", false, list);
        self.route(
            &mut text,
            ("items", items, items),
            if self.has_servers_apart { "one" } else { "two" },
            self.items_leased,
            &touches(self.item_touches_document, documents),
        );
        text
    }

    /// Returns the text of a configuration of collections, whose members have their paths as keys.
    pub fn text_of_trees(&self) -> String {
        let whole = self.text();
        let (mut text, _) = whole.split_once("[[routes]]").map(|(head, rest)| (head.to_owned(), rest)).unwrap();
        self.route(&mut text, ("trees", "/{*rest}", "{path}"), "one", self.leased.0, "collections = \"webdav\"\n");
        if self.leased.0 {
            let _ = write!(
                text,
                "[[routes]]\nname = \"locks\"\nhost = \"{LOCKS_HOST}\"\npath = \"/{{*rest}}\"\nkey = \"{{path}}\"\nupstream = \"one\"\n\
                 policy = \"pessimistic\"\ndialect = \"webdav\"\ncollections = \"webdav\"\n[routes.lease]\nauth = \"none\"\n"
            );
        }
        text
    }

    /// Returns the text of a configuration of a collection whose members clients take.
    pub fn text_of_members(&self) -> String {
        let whole = self.text();
        let (mut text, _) = whole.split_once("[[routes]]").map(|(head, rest)| (head.to_owned(), rest)).unwrap();
        let taken = "members = \"/jobs/{id}\"\nindex = \"json:/jobs/*/id\"\n";
        self.route(&mut text, ("queue", "/jobs", "{path}"), "one", false, taken);
        self.route(&mut text, ("jobs", "/jobs/{id}", "{path}"), "one", true, "");
        text.push_str("acquire_on_read = true\n");
        text
    }

    fn route(
        &self,
        text: &mut String,
        (name, path, key): (&str, &str, &str),
        upstream: &str,
        leased: bool,
        more: &str,
    ) {
        let policy = if leased { "pessimistic" } else { "optimistic" };
        let _ = write!(
            text,
            "[[routes]]\nname = \"{name}\"\npath = \"{path}\"\nkey = \"{key}\"\nupstream = \"{upstream}\"\n\
             policy = \"{policy}\"\n{more}"
        );
        if leased {
            let guards = match self.guards {
                Guards::Write => "[\"write\"]",
                Guards::Read => "[\"read\"]",
                Guards::ReadAndWrite => "[\"read\", \"write\"]",
                Guards::Delete => "[\"delete\"]",
            };
            let _ = write!(
                text,
                "[routes.lease]\nguards = {guards}\nrequired = {}\nshared = {}\ndelete_pending = {}\ninfinite = true\nclient_break = true\n\
                 auth = \"none\"\n",
                self.required,
                self.shared,
                self.lets_deletes_wait()
            );
        }
    }
}
