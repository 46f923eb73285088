//! Memory, descriptors and processor time of the proxy, while something happens.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::process::Process;

/// How often the process is looked at.
const INTERVAL: Duration = Duration::from_millis(20);
/// The rate at which the kernel counts processor time (`sysconf(_SC_CLK_TCK)` on Linux).
const TICKS_PER_SECOND: u64 = 100;

/// The cost of a flood.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// The most resident memory, above what was held before.
    pub resident_kib: usize,
    /// The most descriptors, above what was held before.
    pub descriptors: usize,
    /// Processor time of all threads, that of the honest client's requests too.
    pub processor: Duration,
    /// The longest that the machine let the sampler wait for its turn. It lets every other process wait as long.
    pub pause: Duration,
}

/// Watches a process until it has to end. It has a thread of its own: the runtime of the test is busy flooding.
pub struct Sampler {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Cost>,
}

impl Sampler {
    /// The cost is compared with what the process holds at this moment: the thread may begin after the flood has.
    pub fn start(process: u32) -> Self {
        let before = Held::by(Process(process));
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        Self { ends, thread: thread::spawn(move || sample(Process(process), &before, &seen)) }
    }

    pub async fn end(self) -> Cost {
        self.ends.store(true, Ordering::SeqCst);
        tokio::task::spawn_blocking(|| self.thread.join().expect("it samples to its end")).await.expect("it ends")
    }
}

/// The resources that a process holds at a moment, and has taken until then.
struct Held {
    resident_kib: usize,
    descriptors: usize,
    processor: Duration,
}

impl Held {
    fn by(process: Process) -> Self {
        Self {
            resident_kib: process.resident_kib(),
            descriptors: process.descriptors(),
            processor: processor_time(process),
        }
    }
}

fn sample(process: Process, before: &Held, ends: &AtomicBool) -> Cost {
    let mut cost = Cost::default();
    let mut last = false;
    while !last {
        last = ends.load(Ordering::SeqCst);
        let now = Held::by(process);
        cost.resident_kib = cost.resident_kib.max(now.resident_kib.saturating_sub(before.resident_kib));
        cost.descriptors = cost.descriptors.max(now.descriptors.saturating_sub(before.descriptors));
        cost.processor = now.processor.saturating_sub(before.processor);
        let asleep = Instant::now();
        thread::sleep(INTERVAL);
        cost.pause = cost.pause.max(asleep.elapsed().saturating_sub(INTERVAL));
    }
    cost
}

/// The time that processors have spent on a process.
pub fn processor_time(process: Process) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.0)).expect("a running process");
    // The name before it, in parentheses, may have spaces.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks")).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}
