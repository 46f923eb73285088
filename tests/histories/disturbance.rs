//! Kills and stops of proxies and of their engine, one after another.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{
    board::Board,
    standstill::stop_at_rest,
    support::{engines::Engine, proxy::Proxy, random::Random},
};

/// The longest stop. The owner of a mark looks at its clock directly before the first byte, and then needs the
/// upstream's whole timeout (1 s): a shorter stop cannot outlast the mark's deadline unnoticed.
const STOP_MAX_MS: usize = 600;

/// The largest number of operations between two disturbances, and the longest wait for them.
const QUIET_OPERATIONS_MAX: usize = 150;
const QUIET_MAX: Duration = Duration::from_secs(2);

/// The number of disturbances of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub proxy_kills: usize,
    pub proxy_stops: usize,
    pub engine_kills: usize,
    pub engine_stops: usize,
    /// Intended stops of a proxy that took longer than its marks last.
    pub outlasting_stops: usize,
    /// Stops that took longer than intended, so that one of them may have outlasted a mark.
    pub too_long: usize,
}

impl Counts {
    pub fn total(&self) -> usize {
        self.proxy_kills + self.proxy_stops + self.engine_kills + self.engine_stops + self.outlasting_stops
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            proxy_kills: self.proxy_kills + other.proxy_kills,
            proxy_stops: self.proxy_stops + other.proxy_stops,
            engine_kills: self.engine_kills + other.engine_kills,
            engine_stops: self.engine_stops + other.engine_stops,
            outlasting_stops: self.outlasting_stops + other.outlasting_stops,
            too_long: self.too_long + other.too_long,
        }
    }
}

pub struct Disturber {
    pub proxies: Vec<Proxy>,
    pub engine: Option<Engine>,
    /// The configuration of a proxy.
    pub configuration: String,
    pub board: Arc<Board>,
    pub random: Random,
    pub counts: Counts,
    /// The length from which on a stop could outlast a mark's deadline.
    pub too_long: Duration,
}

impl Disturber {
    /// Makes this number of disturbances, with a few operations in between.
    pub async fn disturb(&mut self, disturbances: usize) {
        for _ in 0..disturbances {
            self.wait_for_operations().await;
            let proxy = self.random.below(self.proxies.len());
            // A single proxy has no other beside it, and no engine.
            let kinds = if self.proxies.len() > 1 { 6 } else { 3 };
            match self.random.below(kinds) {
                0 | 1 => self.restart_proxy(proxy).await,
                2 => self.stop_proxy(proxy, false).await,
                3 => self.stop_engine().await,
                4 => self.restart_engine().await,
                // The stopped proxy's mark in the store is all that the other one learns of it.
                _ => self.stop_proxy(proxy, true).await,
            }
        }
        self.wait_for_operations().await;
    }

    /// Stops a proxy for so long that the others take its marks over and write on the same resources: what it had begun
    /// then comes too late.
    pub async fn outlast_marks(&mut self, length: Duration) {
        self.wait_for_operations().await;
        let index = self.random.below(self.proxies.len());
        self.board.stays.store(true, Ordering::Relaxed);
        stop_at_rest(&self.proxies[index]).await;
        sleep(length).await;
        self.proxies[index].signal("CONT");
        self.counts.outlasting_stops += 1;
        self.wait_for_operations().await;
        self.board.stays.store(false, Ordering::Relaxed);
    }

    async fn wait_for_operations(&mut self) {
        let enough = self.board.answered.load(Ordering::Relaxed) + self.random.below(QUIET_OPERATIONS_MAX);
        let end = Instant::now() + QUIET_MAX;
        while self.board.answered.load(Ordering::Relaxed) < enough && Instant::now() < end {
            sleep(Duration::from_millis(1)).await;
        }
    }

    fn stop_length(&mut self) -> Duration {
        Duration::from_millis(self.random.below(STOP_MAX_MS) as u64)
    }

    async fn restart_proxy(&mut self, index: usize) {
        self.kill_proxy(index);
        self.start_proxy_again(index).await;
    }

    fn kill_proxy(&mut self, index: usize) {
        self.proxies[index].signal("KILL");
        self.counts.proxy_kills += 1;
    }

    async fn start_proxy_again(&mut self, index: usize) {
        self.proxies[index].exit_status().await;
        let proxy = Proxy::start(&self.configuration).await;
        self.board.addrs.lock().expect("nobody panics with it")[index] = proxy.addr();
        self.proxies[index] = proxy;
    }

    /// Stops a proxy for a while; if `kills_other`, another one is killed meanwhile.
    async fn stop_proxy(&mut self, index: usize, kills_other: bool) {
        let (began, length) = (Instant::now(), self.stop_length());
        let other = (index + 1) % self.proxies.len();
        self.proxies[index].signal("STOP");
        if kills_other {
            self.kill_proxy(other);
        }
        sleep(length).await;
        self.proxies[index].signal("CONT");
        self.counts.proxy_stops += 1;
        self.counts.too_long += usize::from(began.elapsed() >= self.too_long);
        if kills_other {
            self.start_proxy_again(other).await;
        }
    }

    async fn stop_engine(&mut self) {
        let length = self.stop_length();
        let Some(engine) = &self.engine else { return };
        engine.signal("STOP");
        sleep(length).await;
        engine.signal("CONT");
        self.counts.engine_stops += 1;
    }

    async fn restart_engine(&mut self) {
        let length = self.stop_length();
        let Some(engine) = &mut self.engine else { return };
        engine.signal("KILL");
        sleep(length).await;
        engine.restart().await;
        self.counts.engine_kills += 1;
    }
}
