//! Stores that are reached over TLS and ask for a password.

use std::{io::Write, path::PathBuf, sync::Arc, time::Duration};

use ifmatch::{
    clock::BootClock,
    config::{self, Login, StoreKind, Tls},
    store::{OpenError, Store, etcd::EtcdStore, postgres::PostgresStore, redis::RedisStore},
};
use tempfile::NamedTempFile;

use crate::{
    contract::{idle, put},
    engines::{
        Etcd, PASSWORD, Redis,
        postgres::{Postgres, USER},
    },
};

fn password(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    // Editors put the end of a line behind it.
    writeln!(file, "{text}").expect("a file takes it");
    file
}

fn settings(kind: StoreKind) -> config::StoreSettings {
    // A server that creates its files on a busy disk takes seconds to answer for the first time.
    let timeout = Duration::from_secs(10);
    config::StoreSettings {
        kind,
        capacity: 10,
        max_bytes: 1 << 20,
        idle_ttl: Duration::from_secs(60),
        timeout,
        start_grace: Duration::ZERO,
    }
}

fn login(user: &str, file: &NamedTempFile) -> Login {
    Login { user: user.to_owned(), password_file: Some(file.path().to_owned()) }
}

fn trusting(certificate: PathBuf) -> Tls {
    Tls { ca: Some(certificate), identity: None }
}

async fn works(store: impl Store) {
    assert!(put(&store, "a", idle()).await.revision.0 > 0);
}

#[tokio::test]
async fn etcd_over_tls_with_a_user() {
    let engine = Etcd::start_secured().await;
    let connect = async |tls, user, password: &str| {
        let file = self::password(password);
        let etcd = config::Etcd {
            endpoints: vec![format!("https://{}", engine.addr())],
            prefix: "test".to_owned(),
            login: Some(login(user, &file)),
            tls,
        };
        EtcdStore::connect(&etcd, &settings(StoreKind::Etcd(etcd.clone())), Arc::new(BootClock)).await
    };
    works(connect(Some(trusting(engine.certificate())), "root", PASSWORD).await.expect("it may")).await;
    let wrong = connect(Some(trusting(engine.certificate())), "root", "wrong").await.err().expect("a wrong password");
    assert!(matches!(wrong, OpenError::Engine(_)), "{wrong:?}");
    assert!(!format!("{wrong:?}").contains("wrong\""), "{wrong:?}");
    assert!(connect(None, "root", PASSWORD).await.is_err(), "nobody vouches for its certificate");
    // A process that starts then serves without the store, and asks again.
    engine.signal("KILL");
    let away = connect(Some(trusting(engine.certificate())), "root", PASSWORD).await.err().expect("it is away");
    assert!(matches!(away, OpenError::Silent), "{away:?}");
}

#[tokio::test]
async fn postgres_over_tls_with_a_password() {
    let engine = Postgres::start_secured().await;
    let connect = async |tls, is_secure, password: &str| {
        let (login, settings) = (self::password(password), crate::postgres::settings(engine.addr()));
        let postgres = config::Postgres { login: Some(self::login(USER, &login)), tls, is_secure, ..settings };
        PostgresStore::connect(&postgres, &self::settings(StoreKind::Postgres(postgres.clone()))).await
    };
    let tls = || Some(trusting(engine.certificate()));
    works(connect(tls(), true, PASSWORD).await.expect("it may")).await;
    let wrong = connect(tls(), true, "wrong").await.err().expect("a wrong password");
    assert!(matches!(wrong, OpenError::Engine(_)), "{wrong:?}");
    assert!(!format!("{wrong:?}").contains("wrong\""), "{wrong:?}");
    assert!(connect(None, true, PASSWORD).await.is_err(), "its authority is unknown");
    assert!(connect(None, false, PASSWORD).await.is_err(), "it takes nothing but TLS");
}

#[tokio::test]
async fn redis_over_tls_with_a_password() {
    let engine = Redis::start_secured().await;
    let connect = async |tls, password: &str| {
        let file = self::password(password);
        let url = format!("rediss://{}", engine.addr());
        let redis = config::Redis { url, prefix: "test".to_owned(), login: Some(login("default", &file)), tls };
        RedisStore::connect(&redis, &settings(StoreKind::Redis(redis.clone()))).await
    };
    works(connect(Some(trusting(engine.certificate())), PASSWORD).await.expect("it may")).await;
    assert!(connect(Some(trusting(engine.certificate())), "wrong").await.is_err());
    assert!(connect(None, PASSWORD).await.is_err(), "nobody vouches for its certificate");
}
