//! The connections to etcd, and how often it is asked before it is called unavailable.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use etcd_client::{
    Certificate, Client, ConnectOptions, Error, Identity, KvClient, TlsOptions, Txn, TxnResponse, WatchClient,
};
use tokio::time::{Instant, sleep, timeout};

use super::txn;
use crate::{
    config,
    store::{OpenError, StoreError, epoch::Epoch, secret},
};

/// How often an idle connection is asked for a sign of life. Servers close connections that ask more often than every
/// five seconds.
const PING_INTERVAL: Duration = Duration::from_secs(6);

/// Attempts that one operation has time for, the last of which is often cut short. With several members, the next
/// attempt often meets another one.
const ATTEMPTS: u32 = 3;

/// The pause between two attempts, as a share of the operation's time: short, and no storm on a server that is away.
const PAUSES: u32 = 40;

/// A client of one etcd, of one or several members.
pub(super) struct Engine {
    kv: KvClient,
    watch: WatchClient,
    timeout: Duration,
    epoch: Epoch,
    is_failing: AtomicBool,
}

/// The answer to a transaction.
pub(super) struct Answer {
    pub(super) response: TxnResponse,
    /// Whether an earlier attempt got none: it may have been carried out, before this one or after.
    pub(super) is_repeated: bool,
}

impl Engine {
    /// A client for these members. None of them needs to be there, unless there is a user to log in.
    pub(super) async fn connect(settings: &config::Etcd, limit: Duration) -> Result<Self, OpenError> {
        let mut options = ConnectOptions::new()
            .with_require_leader(true)
            .with_connect_timeout(limit)
            .with_keep_alive(PING_INTERVAL, limit)
            .with_keep_alive_while_idle(true);
        if let Some(login) = &settings.login {
            options = options.with_user(&*login.user, secret::password(login)?).with_auto_token_refresh(true);
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
            is_failing: AtomicBool::new(false),
        })
    }

    /// Carries out a transaction, again if no answer comes: for those that are the same when they are done twice.
    pub(super) async fn ask(&self, txn: Txn) -> Result<Answer, StoreError> {
        // A part of the time is left to whoever waits for this.
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
                    self.answers();
                    self.epoch.accept(reached, txn::revision_of(&response).unwrap_or_default())?;
                    return Ok(Answer { response, is_repeated });
                }
                Ok(Err(error)) => self.fails(Some(&error)),
                Err(_elapsed) => self.fails(None),
            }
            is_repeated = true;
            sleep(self.timeout / PAUSES).await;
        }
    }

    pub(super) fn watch(&self) -> WatchClient {
        self.watch.clone()
    }

    /// One line when it begins to fail, and one when it has recovered: it is asked thousands of times a second.
    fn fails(&self, error: Option<&Error>) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            match error {
                Some(error) => tracing::error!(%error, "etcd is not available: guarded writes are refused"),
                None => tracing::error!("etcd does not answer in time: guarded writes are refused"),
            }
        }
    }

    fn answers(&self) {
        if self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("etcd answers again");
        }
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
