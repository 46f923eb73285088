//! A guard in front of a backend with one resource.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::{HeaderMap, Method};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::MutexGuard,
};

use super::{
    Asked, Fault, FaultyStore, When,
    backend::{AnswerRead, Backend},
    message::{facet, head},
    transport::NotingTransport,
};
use crate::{
    config::{Config, Route},
    core::{
        http::{client_address::ClientAddress, readings::method::MethodReadings},
        policy::{GuardRules, TagSource},
        resource::ResourceKey,
    },
    drain::{Gate, new_gates},
    guard::{Guard, StartHold},
    routing::{GuardedDestination, GuardedRequest, table::RoutingTable},
    store::Store as _,
    telemetry::metrics::Gauged as _,
    testing::{self, config, guard, route},
    upstream::Exchanger,
};

/// The fields of the client that the backend lets in, if it refuses others.
pub(crate) const OWNER: &str = "Authorization: owner\r\n";

/// The path of the lease operations on `/doc`.
pub(super) const LEASE: &str = "/.leases/doc";

/// A guard in front of a backend, on a store that fails on demand.
pub(crate) struct Fixture {
    pub(crate) store: Arc<FaultyStore>,
    pub(super) guards: Guard,
    table: Arc<RoutingTable>,
    transport: Arc<NotingTransport>,
    config: Config,
    backend: Arc<Backend>,
}

/// The response that a client got.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn tag(&self) -> Option<&str> {
        self.field("etag")
    }
}

impl Fixture {
    /// Creates a guard with an exclusive route and these tags.
    pub(crate) async fn new(etag: TagSource) -> Self {
        Self::with(GuardRules { etag, other_writers: false, ..guard() }).await
    }

    pub(crate) async fn with(guard: GuardRules) -> Self {
        Self::held_back(guard, Duration::ZERO).await
    }

    /// Creates a guard on a store that other processes use too.
    pub(crate) async fn sharing(guard: GuardRules) -> Self {
        Self::over(FaultyStore::shared(), guard, Duration::ZERO).await
    }

    /// The same, but each of the processes keeps the time itself.
    pub(crate) async fn sharing_without_clock(guard: GuardRules) -> Self {
        Self::over(FaultyStore::shared_without_clock(), guard, Duration::ZERO).await
    }

    /// Creates the guard of another process in front of the same backend, on the same store.
    pub(crate) async fn beside(&self) -> Self {
        Self::of_process(2, Arc::clone(&self.store), self.config.clone(), Arc::clone(&self.backend), Duration::ZERO)
            .await
    }

    /// Creates the guard of a process that has just started, and holds writes back for the time `hold`.
    pub(crate) async fn held_back(guard: GuardRules, hold: Duration) -> Self {
        Self::over(FaultyStore::new(), guard, hold).await
    }

    /// Creates a guard whose route takes all paths. Each is that of the one resource of the backend.
    pub(crate) async fn of_all_paths(guard: GuardRules) -> Self {
        Self::at("/{*path}", FaultyStore::new(), guard, Duration::ZERO).await
    }

    async fn over(store: FaultyStore, guard: GuardRules, hold: Duration) -> Self {
        Self::at("/doc", store, guard, hold).await
    }

    async fn at(path: &str, store: FaultyStore, guard: GuardRules, hold: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let backend = Arc::<Backend>::default();
        let has_trees = guard.changes_trees();
        let route = route(path, Some(guard), &[listener.local_addr().unwrap()]);
        let route = Route { may_hold_members: has_trees, has_trees, ..route };
        let mut config = config(vec![route]);
        config.store.timeout = Duration::from_millis(20);
        Arc::clone(&backend).listen(listener);
        Self::of_process(1, Arc::new(store), config, backend, hold).await
    }

    async fn of_process(
        owner: u64,
        store: Arc<FaultyStore>,
        config: Config,
        backend: Arc<Backend>,
        hold: Duration,
    ) -> Self {
        let hold = StartHold::from(store.now().await.unwrap(), hold);
        let exchanger = Arc::<Exchanger>::default();
        let transport = Arc::new(NotingTransport::to(Arc::clone(exchanger.upstreams())));
        let way = (exchanger, Arc::<NotingTransport>::clone(&transport) as _);
        let table = Arc::new(RoutingTable::new(&config.routes));
        let guards = Guard::over(way, &config, Arc::clone(&table), Arc::<FaultyStore>::clone(&store), owner, hold);
        Self { store, guards, table, transport, config, backend }
    }

    /// Turns to the next guard, of the same configuration.
    pub(crate) fn reload(&mut self) {
        self.guards = self.guards.renewed(&self.config, Arc::clone(&self.table), new_gates(self.config.routes.len()));
    }

    /// The gate of the route.
    pub(crate) fn gate(&self) -> &Gate {
        &self.guards.gates()[0]
    }

    /// Returns for each read the only server that it may go to, if there is one.
    pub(crate) fn read_from(&self) -> Vec<Option<usize>> {
        self.transport.read_from()
    }

    /// Answers reads in this way from now on.
    pub(crate) async fn answer_reads(&self, answer_read: AnswerRead) {
        *self.backend.answer_read.lock().await = Some(answer_read);
    }

    /// True if a write or a grant stands in the line of a resource.
    pub(crate) fn has_line(&self, key: &ResourceKey) -> bool {
        self.guards.claims.queues.has_line(key)
    }

    /// The number of writes and grants that stand in the line of a resource.
    pub(crate) fn line_length(&self, key: &ResourceKey) -> usize {
        let queues = &self.guards.claims.queues;
        queues.came_before(key, queues.arrival())
    }

    /// The number of reads that wait for the end of writes.
    pub(crate) fn waiting_reads(&self) -> u64 {
        self.guards.claims.reads.waiters().map_or(0, |(_, count)| count)
    }

    /// Refuses all clients but the owner with this status from now on.
    pub(crate) fn refuse_with(&self, status: u16) {
        self.backend.refusal.store(status, Ordering::Relaxed);
    }

    /// Lets the backend show each resource as a collection from now on.
    pub(crate) fn show_folders(&self) {
        self.backend.has_only_folders.store(true, Ordering::Relaxed);
    }

    /// Lets the backend refuse all writes with this status from now on; with 0, none.
    pub(crate) fn refuse_writes_with(&self, status: u16) {
        self.backend.write_refusal.store(status, Ordering::Relaxed);
    }

    /// Returns the heads of all reads that the backend has received, in lower case.
    pub(crate) async fn reads(&self) -> Vec<String> {
        self.backend.reads.lock().await.clone()
    }

    /// Like [`send`](Self::send), but for the resource with this key.
    pub(crate) async fn send_to(&self, resource: &str, method: Method, fields: &str, body: &str) -> Response {
        self.exchange(resource, "/doc", method, fields, body).await
    }

    pub(crate) async fn send(&self, method: Method, fields: &str, body: &str) -> Response {
        self.send_to("doc", method, fields, body).await
    }

    /// Sends a request whose target names an operation.
    pub(crate) async fn send_for(&self, target: &str, method: Method, fields: &str, body: &str) -> Response {
        self.exchange("doc", target, method, fields, body).await
    }

    /// Sends an operation on the lease of a resource, in the native dialect.
    pub(crate) async fn lease(&self, resource: &str, method: Method, fields: &str) -> Response {
        self.exchange(resource, LEASE, method, fields, "").await
    }

    /// Sends a request for a resource under this target.
    pub(crate) async fn exchange(
        &self,
        resource: &str,
        path: &str,
        method: Method,
        fields: &str,
        body: &str,
    ) -> Response {
        Box::pin(self.exchange_slowly((resource, path), method, fields, body, async {})).await
    }

    /// Sends a PUT whose body waits for `before_body`, which starts after the guard has judged the head.
    pub(crate) async fn put_slowly(&self, fields: &str, body: &str, before_body: impl Future<Output = ()>) -> Response {
        let judged = async {
            while self.store.asked() == Asked::default() {
                tokio::task::yield_now().await;
            }
            before_body.await;
        };
        self.store.fail(Fault::Unavailable, When::Never);
        Box::pin(self.exchange_slowly(("doc", "/doc"), Method::PUT, fields, body, judged)).await
    }

    async fn exchange_slowly(
        &self,
        (resource, path): (&str, &str),
        method: Method,
        fields: &str,
        body: &str,
        before_body: impl Future<Output = ()>,
    ) -> Response {
        let request = self.request((resource, path), &method);
        self.exchange_as(request, head(path, &method, fields, body.len()), body, before_body).await
    }

    /// Sends a COPY or MOVE between the resources with these keys, whose paths are below `/doc`.
    pub(crate) async fn transfer(&self, (source, destination): (&str, &str), method: &str, fields: &str) -> Response {
        let method = method.parse().expect("a method");
        let path = |key: &str| format!("/doc/{key}");
        let request = self.request((destination, &path(destination)), &Method::PUT);
        let target = path(destination).into_bytes().into();
        let mut both = self.request((source, &path(source)), &method);
        both.destination = Some(Box::new(GuardedDestination { request, target }));
        let head = head(&path(source), &method, &format!("Destination: /ignored\r\n{fields}"), 0);
        Box::pin(self.exchange_as(both, head, "", async {})).await
    }

    async fn exchange_as(
        &self,
        request: GuardedRequest,
        head: Vec<u8>,
        body: &str,
        before_body: impl Future<Output = ()>,
    ) -> Response {
        let (session, mut client) = testing::arrived(&head).await;
        let (handled, ()) = tokio::join!(testing::answer(&self.guards, session, &request), async {
            before_body.await;
            // A refusal can end the connection before the body is sent.
            let _ = client.write_all(body.as_bytes()).await;
        });
        handled.unwrap();
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").expect("a response");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Response { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Sends an operation on the lease of a resource, for a client that has gone before the answer.
    pub(crate) async fn lease_unheard(&self, resource: &str, method: Method, fields: &str) {
        let (session, client) = testing::arrived(&head(LEASE, &method, fields, 0)).await;
        drop(client);
        let request = self.request((resource, LEASE), &method);
        assert!(testing::answer(&self.guards, session, &request).await.is_err(), "nobody takes the answer");
    }

    /// Returns the request with this method and path, which acts on the resource with this key.
    pub(super) fn request(&self, (resource, path): (&str, &str), method: &Method) -> GuardedRequest {
        let route = Arc::clone(&self.config.routes[0]);
        let rules = route.guard.as_ref().expect("a guarded route");
        let methods = MethodReadings::of(rules, method, &HeaderMap::new(), b"/").expect("one method");
        GuardedRequest {
            methods,
            route,
            route_index: 0,
            key: ResourceKey::from_text(resource),
            forwarded_target: None,
            client: ClientAddress::Local,
            facet: facet(path, LEASE),
            destination: None,
        }
    }

    pub(crate) async fn put(&self, tag: &str, body: &str) -> Response {
        self.send(Method::PUT, &format!("If-Match: {tag}\r\n"), body).await
    }

    pub(crate) async fn tag(&self) -> String {
        self.send(Method::GET, "", "").await.tag().expect("a tag").to_owned()
    }

    /// Returns the fencing token of the last write that the backend has received.
    pub(crate) async fn last_fence(&self) -> Option<String> {
        self.last_field("fencing-token").await
    }

    pub(crate) async fn last_field(&self, name: &str) -> Option<String> {
        let head = self.backend.last_write.lock().await;
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
    }

    /// Returns the first line of the last write that the backend has received, in lower case.
    pub(crate) async fn last_write(&self) -> String {
        self.backend.last_write.lock().await.lines().next().unwrap_or_default().to_owned()
    }

    pub(crate) fn writes(&self) -> usize {
        self.backend.writes.load(Ordering::Relaxed)
    }

    /// Lets the backend answer no request until this is dropped.
    pub(crate) async fn hold_writes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.backend.content.lock().await
    }

    /// Changes the resource like a late write of an earlier process.
    pub(crate) async fn write_late(&self, content: &str) {
        *self.backend.content.lock().await = content.as_bytes().to_vec();
    }

    pub(crate) async fn content(&self) -> String {
        String::from_utf8(self.backend.content.lock().await.clone()).unwrap()
    }
}
