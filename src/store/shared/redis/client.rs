//! The connections to Redis, and the attempts before it counts as unavailable.

use std::{
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use redis::{
    Client, ClientTlsConfig, Cmd, ConnectionInfo, FromRedisValue, IntoConnectionInfo, Msg, RedisError,
    ScriptInvocation, TlsCertificates,
    aio::{ConnectionManager, ConnectionManagerConfig},
    io::tcp::TcpSettings,
};
use tokio::time::timeout;

use crate::{
    config,
    core::resource::ResourceKey,
    counted::Counted,
    store::{
        OpenError, StoreError,
        shared::{
            health::EngineHealth,
            secret, unusable,
            waiters::{Announces, Changes},
        },
    },
};

/// The number of connections that all operations share. A single one limits a Redis that writes each change to the
/// disk: it reads 16 KiB of each connection, and syncs once for all of them. With more connections, each carries less
/// at a time, which costs both sides CPU time. An operation takes the connection with fewer operations in flight. So
/// while Redis handles those of one connection, this process handles those of the other.
const CONNECTIONS: usize = 2;

/// A client of one Redis.
pub(super) struct RedisClient {
    client: Client,
    /// The channel on which the keys of changed resources are published.
    channel: String,
    connections: [RedisConnection; CONNECTIONS],
    timeout: Duration,
    health: EngineHealth,
}

struct RedisConnection {
    /// The connection itself, and the number of connections before it.
    current: Mutex<(u64, ConnectionManager)>,
    /// The number of operations that wait for an answer.
    in_flight: AtomicUsize,
}

/// The answer to a request.
pub(super) struct RedisReply<T> {
    pub(super) reply: T,
    /// True if an earlier attempt got no answer. It may have been carried out before this one or after it.
    pub(super) is_repeated: bool,
}

#[derive(Clone, Copy)]
enum RedisCommand<'a> {
    Script(&'a ScriptInvocation<'a>),
    Command(&'a Cmd),
}

impl RedisCommand<'_> {
    async fn put_to<T: FromRedisValue>(self, connection: &mut ConnectionManager) -> Result<T, RedisError> {
        match self {
            Self::Script(script) => script.invoke_async(connection).await,
            Self::Command(command) => command.query_async(connection).await,
        }
    }
}

impl RedisClient {
    /// Creates a client that is not connected yet.
    pub(super) fn new(settings: &config::Redis, limit: Duration, channel: &str) -> Result<Self, OpenError> {
        let client = client(settings, limit)?;
        let first = || {
            let current = Mutex::new((0, connection(&client, limit).map_err(unusable)?));
            Ok::<_, OpenError>(RedisConnection { current, in_flight: AtomicUsize::new(0) })
        };
        let connections = [first()?, first()?];
        let health = EngineHealth::of("Redis", limit);
        Ok(Self { client, channel: channel.to_owned(), connections, timeout: limit, health })
    }

    /// Runs a script, and repeats it if no answer comes. The script must be safe to run twice.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<RedisReply<T>, StoreError> {
        self.ask(RedisCommand::Script(script)).await
    }

    /// Sends a command, and repeats it if no answer comes. The command must be safe to send twice.
    pub(super) async fn send<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        Ok(self.ask(RedisCommand::Command(command)).await?.reply)
    }

    async fn ask<T: FromRedisValue>(&self, question: RedisCommand<'_>) -> Result<RedisReply<T>, StoreError> {
        let mut attempts = self.health.attempts();
        let in_flight = |connection: &&RedisConnection| connection.in_flight.load(Ordering::Relaxed);
        let Some(shared) = self.connections.iter().min_by_key(in_flight) else { return Err(StoreError::Unavailable) };
        let _in_flight = Counted::up_to(usize::MAX, &shared.in_flight);
        loop {
            let (number, mut connection) = shared.current.lock().clone();
            if let Some(reply) = attempts.make(pin!(question.put_to(&mut connection))).await? {
                return Ok(RedisReply { reply, is_repeated: attempts.are_repeated });
            }
            self.replace(shared, number);
            attempts.pause().await;
        }
    }

    /// Replaces the connection with this number, unless that was already done. It may lead to a server that is no
    /// longer the primary, or to none.
    fn replace(&self, shared: &RedisConnection, number: u64) {
        let mut current = shared.current.lock();
        if current.0 == number
            && let Ok(connection) = connection(&self.client, self.timeout)
        {
            *current = (number + 1, connection);
        }
    }
}

impl Announces for RedisClient {
    async fn listen(&self) -> Option<Changes> {
        let connected = async {
            let mut notifications = self.client.get_async_pubsub().await?;
            notifications.subscribe(&self.channel).await?;
            Ok::<_, RedisError>(notifications)
        };
        let notifications = timeout(self.timeout, connected).await.ok()?.ok()?;
        let resource = |message: Msg| Some(ResourceKey::from_text(&message.get_payload::<String>().ok()?));
        Some(Box::pin(notifications.into_on_message().map(resource)))
    }
}

fn connection(client: &Client, limit: Duration) -> Result<ConnectionManager, RedisError> {
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(0)
        .set_connection_timeout(Some(limit))
        // The caller sets its own limit.
        .set_response_timeout(None);
    // The manager connects with the first request.
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}

fn client(settings: &config::Redis, limit: Duration) -> Result<Client, OpenError> {
    let mut info: ConnectionInfo = settings.url.as_str().into_connection_info().map_err(unusable)?;
    // Without this limit on unacknowledged data, a dead connection would stay open for a quarter of an hour.
    info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true).set_user_timeout(limit));
    if let Some(login) = &settings.login {
        // A user with `nopass` logs in with any password. Without one, the library would not log in as this user.
        let password = secret::password(login)?.unwrap_or_default();
        let redis = info.redis_settings().clone().set_username(&login.user).set_password(password);
        info = info.set_redis_settings(redis);
    }
    let Some(tls) = &settings.tls else { return Client::open(info).map_err(unusable) };
    let client_tls = match &tls.identity {
        Some((certificate, key)) => {
            Some(ClientTlsConfig { client_cert: secret::file(certificate)?, client_key: secret::file(key)? })
        }
        None => None,
    };
    let root_cert = tls.ca.as_deref().map(secret::file).transpose()?;
    Client::build_with_tls(info, TlsCertificates { client_tls, root_cert }).map_err(unusable)
}
