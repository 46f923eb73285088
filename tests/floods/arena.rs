//! A backend, the proxy before it, and the measure of a flood.

use std::{env, net::SocketAddr, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    sync::{Mutex, MutexGuard},
    time::sleep,
};

use crate::{
    honest::Honest,
    measure::{Cost, Sampler, processor_time},
    process::Process,
    support::{
        backend::Backend,
        proxy::{Proxy, Setup},
        raw::get,
    },
};

/// One flood at a time: each is measured alone.
pub static ALONE: Mutex<()> = Mutex::const_new(());

/// A proxy that is about to be flooded.
pub struct Arena {
    pub backend: Backend,
    pub proxy: Proxy,
    /// That of the backend: the flood keeps the test's own one busy.
    runtime: Option<Runtime>,
    _alone: MutexGuard<'static, ()>,
}

/// The most that a flood may cost.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    /// Resident memory above what was held before.
    pub resident_mib: usize,
    /// Descriptors above what was held before.
    pub descriptors: usize,
    /// How long an honest client waits, of a hundred times the longest but one.
    pub honest_wait: Duration,
}

/// How long an honest client may wait in most floods: a build without optimisation takes a tenth, if the machine has
/// nothing else to do.
pub const HONEST_WAIT: Duration = Duration::from_secs(2);

/// One number for `make test`, another for `make floods`.
pub fn times<T>(short: T, long: T) -> T {
    if env::var("FLOODS").is_ok_and(|value| value == "full") { long } else { short }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // It must not be waited for if others run.
        self.runtime.take().expect("it is there until now").shutdown_background();
    }
}

impl Arena {
    /// A proxy with one optimistic route for every path, and these lines in `[server]`.
    pub async fn start(lines: &str) -> Self {
        Self::before(lines, |setup| setup, "", None).await
    }

    /// The same with more in the configuration: `configure` adds to its tables, `tables` are further ones; and with so
    /// many file descriptors at most.
    pub async fn before(
        lines: &str,
        configure: impl FnOnce(Setup) -> Setup,
        tables: &str,
        descriptors: Option<usize>,
    ) -> Self {
        let configuration = |addr| configure(Proxy::to(addr).server(lines)).configuration() + tables;
        Self::with(configuration, descriptors).await
    }

    /// A proxy with the configuration that sends everything to a backend at this address.
    pub async fn with(configuration: impl FnOnce(SocketAddr) -> String, descriptors: Option<usize>) -> Self {
        let limit = descriptors.map(|descriptors| format!("ulimit -n {descriptors} && exec \"$0\" \"$@\""));
        let wrapper = limit.map_or_else(Vec::new, |limit| vec!["sh".to_owned(), "-c".to_owned(), limit]);
        Self::under(configuration, &wrapper).await
    }

    /// The same by a command that executes the command after it in its own place.
    pub async fn under(configuration: impl FnOnce(SocketAddr) -> String, wrapper: &[String]) -> Self {
        let alone = ALONE.lock().await;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let backend = runtime.spawn(Backend::start()).await.expect("a backend");
        let configuration = configuration(backend.addr());
        let proxy = Proxy::start_under(&configuration, &[("RUST_LOG", "warn,ifmatch::cli=info")], wrapper).await;
        backend.put("/warm", "up");
        assert_eq!(get(proxy.addr(), "/warm").await.status, 200);
        Self { backend, proxy, runtime: Some(runtime), _alone: alone }
    }

    /// Waits until the proxy has taken what was sent to it: until it rests.
    pub async fn settles(&self) {
        let process = Process(self.proxy.id());
        let mut last = processor_time(process);
        loop {
            sleep(Duration::from_millis(200)).await;
            let now = processor_time(process);
            if now.saturating_sub(last) <= Duration::from_millis(60) {
                return;
            }
            last = now;
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.proxy.addr()
    }

    /// Lets a flood go on beside an honest client, tells what it cost, and compares that with the ceiling.
    pub async fn flood<T>(&self, name: &str, ceiling: Ceiling, flood: impl Future<Output = T>) -> (T, Cost) {
        let honest = Honest::start(self.addr()).await;
        let sampler = Sampler::start(self.proxy.id());
        let result = flood.await;
        let cost = sampler.end().await;
        let wait = honest.end().await;
        println!(
            "| {name} | {:.1} MiB | {} | {:.2} s | {} ms |",
            cost.resident_kib as f64 / 1024.0,
            cost.descriptors,
            cost.processor.as_secs_f64(),
            wait.as_millis(),
        );
        assert!(cost.resident_kib <= ceiling.resident_mib * 1024, "{name}: memory: {cost:?}, {ceiling:?}");
        assert!(cost.descriptors <= ceiling.descriptors, "{name}: descriptors: {cost:?}, {ceiling:?}");
        let longest = ceiling.honest_wait + cost.pause;
        assert!(wait <= longest, "{name}: an honest client waited {wait:?}: {cost:?}, {ceiling:?}");
        (result, cost)
    }
}
