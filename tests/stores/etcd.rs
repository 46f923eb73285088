//! The etcd store on a real etcd.

use std::{sync::Arc, time::Duration};

use ifmatch::{
    clock::BootClock,
    config,
    store::{Store, etcd::EtcdStore},
};

use crate::{contract::Fixture, engines};

struct Etcd {
    engine: engines::Etcd,
    settings: config::Store,
    store: Arc<EtcdStore>,
}

impl Etcd {
    async fn connect(settings: &config::Store) -> Arc<EtcdStore> {
        let config::Engine::Etcd(etcd) = &settings.engine else { panic!("these are settings of etcd") };
        Arc::new(EtcdStore::connect(etcd, settings, Arc::new(BootClock)).await.expect("etcd can be reached"))
    }
}

impl Fixture for Etcd {
    async fn start(capacity: usize) -> Self {
        let engine = engines::Etcd::start().await;
        let etcd = config::Etcd {
            endpoints: vec![engine.endpoint()],
            prefix: "test/ifmatch".to_owned(),
            login: None,
            tls: None,
        };
        let settings = config::Store {
            engine: config::Engine::Etcd(etcd),
            capacity,
            idle_ttl: Duration::from_secs(3_600),
            timeout: Duration::from_secs(10),
            start_grace: Duration::ZERO,
        };
        let store = Self::connect(&settings).await;
        Self { engine, settings, store }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<EtcdStore>::clone(&self.store)
    }

    async fn other(&self) -> Arc<dyn Store> {
        Self::connect(&self.settings).await
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn collect(&self) {
        self.store.collect(Duration::ZERO).await.expect("etcd can be asked");
    }
}

crate::contract!(Etcd);
