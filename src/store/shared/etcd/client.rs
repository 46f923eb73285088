//! The connections to etcd, and the attempts before it counts as unavailable.

use std::{fs, time::Duration};

use etcd_client::{Certificate, Client, ConnectOptions, Identity, KvClient, TlsOptions, Txn, TxnResponse, WatchClient};
use tokio::time::{Instant, sleep, timeout};

use super::txn;
use crate::{
    config,
    core::records::record::Revision,
    store::{
        OpenError, StoreError,
        shared::{epoch::Epoch, health::EngineHealth, secret},
    },
};

/// The interval between keep-alive pings. Servers close connections that ping more often than every five seconds.
const PING_INTERVAL: Duration = Duration::from_secs(6);

/// The number of attempts that one operation has time for. The last one is often cut short. With several members, the
/// next attempt often reaches another one.
const ATTEMPTS: u32 = 3;

/// The pause between two attempts, as a divisor of the operation's time. It is short, but does not flood a server that
/// is down.
const PAUSES: u32 = 40;

/// A client of one etcd cluster, with one or several members.
pub(super) struct EtcdClient {
    kv: KvClient,
    watch: WatchClient,
    timeout: Duration,
    epoch: Epoch,
    health: EngineHealth,
}

/// The answer to a transaction.
pub(super) struct TransactionReply {
    pub(super) response: TxnResponse,
    /// The store's revision at that time. If a record was put, this is its revision.
    pub(super) at: Revision,
    /// Whether an earlier attempt got no answer. It may have been carried out before this one or after it.
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
            .map_err(|error| OpenError::Engine(error.into()))?;
        Ok(Self {
            kv: client.kv_client(),
            watch: client.watch_client(),
            timeout: limit,
            epoch: Epoch::default(),
            health: EngineHealth::of("etcd"),
        })
    }

    /// Carries out a transaction, and repeats it if no answer comes. The transaction must be safe to send twice.
    pub(super) async fn ask(&self, txn: Txn) -> Result<TransactionReply, StoreError> {
        // A part of the time is left to the caller.
        let end = Instant::now() + self.timeout * 9 / 10;
        let mut is_repeated = false;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::Unavailable);
            }
            let reached = self.epoch.reached()?;
            let mut kv = self.kv.clone();
            match timeout(left.min(self.timeout / ATTEMPTS), kv.txn(txn.clone())).await {
                Ok(Ok(response)) => {
                    self.health.answers();
                    let at = txn::revision_of(&response).unwrap_or_default();
                    self.epoch.accept(reached, at)?;
                    return Ok(TransactionReply { response, at, is_repeated });
                }
                Ok(Err(error)) => self.health.fails(&error),
                Err(elapsed) => self.health.fails(&elapsed),
            }
            is_repeated = true;
            sleep(self.timeout / PAUSES).await;
        }
    }

    pub(super) fn watch(&self) -> WatchClient {
        self.watch.clone()
    }
}

fn tls_options(tls: &config::Tls) -> Result<TlsOptions, OpenError> {
    let read =
        |path: &std::path::PathBuf| fs::read(path).map_err(|error| OpenError::File { path: path.clone(), error });
    let mut options = TlsOptions::new();
    if let Some(ca) = &tls.ca {
        options = options.ca_certificate(Certificate::from_pem(read(ca)?));
    }
    if let Some((certificate, key)) = &tls.identity {
        options = options.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(options)
}
