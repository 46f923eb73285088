//! The connections to etcd, and the attempts before it counts as unavailable.

use std::{pin::pin, time::Duration};

use etcd_client::{Certificate, Client, ConnectOptions, Identity, KvClient, TlsOptions, Txn, TxnResponse, WatchClient};
use tokio::time::timeout;

use super::{keys::EtcdKeys, txn};
use crate::{
    config,
    core::records::record::Revision,
    store::{
        OpenError, StoreError,
        shared::{health::EngineHealth, secret, unusable},
    },
};

/// The interval between keep-alive pings. Servers close connections that ping more often than every five seconds.
const PING_INTERVAL: Duration = Duration::from_secs(6);

/// The numbers of the states of gRPC that say so: cancelled, deadline exceeded, unavailable.
const AWAY: [i32; 3] = [1, 4, 14];

/// A client of one etcd cluster, with one or several members.
pub(super) struct EtcdClient {
    pub(super) keys: EtcdKeys,
    kv: KvClient,
    watch: WatchClient,
    health: EngineHealth,
}

/// The answer to a transaction.
pub(super) struct TransactionReply {
    pub(super) response: TxnResponse,
    /// The store's revision at that time. If a record was put, this is its revision.
    pub(super) at: Revision,
    /// True if an earlier attempt got no answer. It may have been carried out before this one or after it.
    pub(super) is_repeated: bool,
}

impl EtcdClient {
    /// Creates a client for these members. None of them needs to be running, unless a user must log in.
    pub(super) async fn connect(settings: &config::Etcd, limit: Duration) -> Result<Self, OpenError> {
        let mut options = ConnectOptions::new()
            .with_require_leader(true)
            .with_connect_timeout(limit)
            .with_keep_alive(PING_INTERVAL, limit)
            .with_keep_alive_while_idle(true);
        if let Some(login) = &settings.login
            // A user without a password is known by the name in its certificate.
            && let Some(password) = secret::password(login)?
        {
            options = options.with_user(&*login.user, password).with_auto_token_refresh(true);
        }
        if let Some(tls) = &settings.tls {
            options = options.with_tls(tls_options(tls)?);
        }
        let client = timeout(limit, Client::connect(&settings.endpoints, Some(options)))
            .await
            .map_err(|_elapsed| OpenError::Silent)?
            .map_err(|error| if is_away(&error) { OpenError::Silent } else { unusable(error) })?;
        Ok(Self {
            keys: EtcdKeys::new(&settings.prefix),
            kv: client.kv_client(),
            watch: client.watch_client(),
            health: EngineHealth::of("etcd", limit),
        })
    }

    /// Carries out a transaction, and repeats it if no answer comes. The transaction must be safe to send twice.
    pub(super) async fn ask(&self, txn: Txn) -> Result<TransactionReply, StoreError> {
        let mut attempts = self.health.attempts();
        loop {
            let mut kv = self.kv.clone();
            if let Some(response) = attempts.make(pin!(kv.txn(txn.clone()))).await? {
                let at = txn::revision_of(&response).unwrap_or_default();
                return Ok(TransactionReply { response, at, is_repeated: attempts.are_repeated });
            }
            attempts.pause().await;
        }
    }

    pub(super) fn watch(&self) -> WatchClient {
        self.watch.clone()
    }
}

/// True if an error says that no member answers, or that none leads. A user must log in before anything else is asked.
fn is_away(error: &etcd_client::Error) -> bool {
    match error {
        etcd_client::Error::IoError(_) | etcd_client::Error::TransportError(_) => true,
        etcd_client::Error::GRpcStatus(status) => AWAY.contains(&i32::from(status.code())),
        _ => false,
    }
}

fn tls_options(tls: &config::Tls) -> Result<TlsOptions, OpenError> {
    let mut options = TlsOptions::new();
    if let Some(ca) = &tls.ca {
        options = options.ca_certificate(Certificate::from_pem(secret::file(ca)?));
    }
    if let Some((certificate, key)) = &tls.identity {
        options = options.identity(Identity::from_pem(secret::file(certificate)?, secret::file(key)?));
    }
    Ok(options)
}
