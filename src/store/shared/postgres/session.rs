//! A connection to PostgreSQL that is fit for the store.

use std::{error::Error, pin::pin, time::Duration};

use futures_util::{StreamExt as _, stream::poll_fn};
use rustls::ClientConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc::{Receiver, channel},
    task::AbortHandle,
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, NoTls, Notification,
    config::{SslMode, TargetSessionAttrs},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    config,
    store::{
        OpenError,
        shared::{secret, unusable},
    },
    tls,
};

/// Settings of each session. Statements see each other's effects as soon as they are committed. They are planned once,
/// by their keys: tables without statistics, which are new, would otherwise be read from end to end. None takes as long
/// as its compilation would.
const OPTIONS: &str = "-c default_transaction_isolation=read\\ committed -c jit=off -c enable_seqscan=off \
                       -c plan_cache_mode=force_generic_plan";

/// The most notifications that wait for their receiver, which takes each at once.
const NOTIFICATIONS_MAX: usize = 1_024;

/// The settings that decide whether an acknowledged change can be lost.
const DURABILITY: &str = "SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('fsync')";

/// The address of PostgreSQL, and the credentials.
pub(super) struct PostgresAccess {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

/// An open connection. It closes when this is dropped.
pub(super) struct Session {
    pub(super) client: Client,
    driver: AbortHandle,
}

/// The server is a standby, which becomes the server that takes writes if that one is lost.
#[derive(Debug, thiserror::Error)]
#[error("it is a standby, which takes no writes")]
pub(super) struct Standby;

/// The reason why a connection cannot be used.
pub(super) type Unfit = Box<dyn Error + Send + Sync>;

impl PostgresAccess {
    /// Reads the files that the settings name. Connections are given up after `limit` without an acknowledgement.
    pub(super) fn new(settings: &config::Postgres, limit: Duration) -> Result<Self, OpenError> {
        let mut config = Config::new();
        for (host, port) in &settings.hosts {
            config.host(host).port(*port);
        }
        config.dbname(&settings.database).application_name("ifmatch");
        // A statement that waits for a lock ends with its caller. The wait for a synchronous standby has no limit: if
        // it ended, the server would acknowledge a change that it can still lose.
        config.options(format!("{OPTIONS} -c statement_timeout={}", limit.as_millis()));
        // The kernel counts idle time in whole seconds, and takes no zero.
        let idle = limit.max(Duration::from_secs(1));
        config.connect_timeout(limit).tcp_user_timeout(limit).keepalives_idle(idle);
        // Of several hosts, the one that takes writes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.user(settings.login.as_ref().map_or(config::POSTGRES_USER, |login| &login.user));
        // The server may know its user without one: by a certificate, by the user of the process, or by the address.
        if let Some(password) = settings.login.as_ref().map(secret::password).transpose()?.flatten() {
            config.password(password);
        }
        config.ssl_mode(if settings.is_secure { SslMode::Require } else { SslMode::Disable });
        let tls = settings.is_secure.then(|| client_tls(settings.tls.as_ref())).transpose()?;
        Ok(Self { config, tls: tls.map(MakeRustlsConnect::new) })
    }

    /// Opens a connection, and checks that what it acknowledges is durable.
    pub(super) async fn open(&self) -> Result<Session, Unfit> {
        let (session, _notifications) = self.connect().await?;
        let row = session.client.query_one(DURABILITY, &[]).await?;
        if row.try_get::<_, bool>(0)? {
            return Err(Standby.into());
        }
        if row.try_get::<_, &str>(1)? == "off" || row.try_get::<_, &str>(2)? == "off" {
            return Err("it acknowledges what it can still lose: synchronous_commit and fsync must not be off, set \
                        ALTER ROLE ... SET synchronous_commit = on"
                .into());
        }
        Ok(session)
    }

    /// Opens a connection, and returns its notifications, too.
    pub(super) async fn connect(&self) -> Result<(Session, Receiver<Notification>), tokio_postgres::Error> {
        if let Some(tls) = &self.tls {
            let (client, connection) = self.config.connect(tls.clone()).await?;
            return Ok(driven(client, connection));
        }
        let (client, connection) = self.config.connect(NoTls).await?;
        Ok(driven(client, connection))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Lets a connection do its work in the background.
fn driven<S, T>(client: Client, mut connection: Connection<S, T>) -> (Session, Receiver<Notification>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (notify, notifications) = channel(NOTIFICATIONS_MAX);
    let driver = tokio::spawn(async move {
        let mut messages = pin!(poll_fn(move |context| connection.poll_message(context)));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                // A connection with more notices than its receiver takes ends: the end wakes all callers.
                if notify.try_send(notification).is_err() {
                    return;
                }
            }
        }
    });
    (Session { client, driver: driver.abort_handle() }, notifications)
}

fn client_tls(settings: Option<&config::Tls>) -> Result<ClientConfig, OpenError> {
    let authorities = settings.and_then(|tls| tls.ca.as_ref()).map(|path| tls::authorities(path)).transpose();
    let identity = settings.and_then(|tls| tls.identity.as_ref());
    let own = identity.map(|(certificate, key)| tls::Pair::load(certificate, key)).transpose();
    let authorities = authorities.map_err(unusable)?.unwrap_or_else(tls::system_authorities);
    tls::client(authorities, own.map_err(unusable)?).map_err(unusable)
}
