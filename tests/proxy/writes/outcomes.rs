//! The fate of the record for each behaviour of an upstream after a write (DESIGN, section 4, step 8): the record is
//! unknown or true, never wrong.
//!
//! Each case writes `two` over `one`, then tries `three` with the tag of `one`. In the end it writes `four` with the
//! tag that a read gives. The content at the backend decides which verdict is right.

use std::sync::Arc;

use tokio::time::{Duration, Instant};

use crate::support::{
    backend::Answer,
    raw::{Connection, get, put_if_match, request_bytes},
    scene::{Mode, Resource, Scene, all_at_once, assert_held_back},
    source,
};

/// How long others are held back if the test waits for the end of it.
const LATE_WRITE_WINDOW: Duration = Duration::from_millis(300);
const SOON_OVER: &str = "late_write_window = \"300ms\"\n";
/// In whole seconds, as the client gets it.
const SOON_OVER_SECONDS: u64 = 1;
/// The same if it must not end before the test does, even on a slow machine.
const NEVER_OVER: &str = "late_write_window = \"1h\"\n";
const NEVER_OVER_SECONDS: u64 = 3600;
/// How long a silent upstream is waited for.
const TIMEOUT: &str = "timeout = \"2s\"\n";

/// The behaviour of the backend.
enum Script {
    Answer(Answer),
    /// It applies the write, sends these bytes of an answer, and nothing more.
    Stall(&'static str),
}

/// The answer that the client gets.
enum Told {
    Status(u16),
    Refused { status: u16, code: &'static str, in_doubt: bool },
}

/// The state that the record should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    /// The write was applied, and its result was read again.
    Learned,
    /// It was applied, and nothing was learned of the result.
    Applied,
    /// It was not applied.
    Kept,
    /// It was not applied, and the answer contradicts what was known.
    Contradicted,
    /// The answer does not tell.
    Unclear,
    /// It may still be applied.
    Doubt,
}

impl Settled {
    /// True if the tag from before the write is still good.
    fn lets_old_tag_pass(self, mode: Mode, applied: bool) -> bool {
        match mode {
            Mode::ContentShared | Mode::ContentExclusive => !applied,
            // A version ends with every write that may have been applied.
            Mode::VersionExclusive => matches!(self, Self::Kept | Self::Contradicted),
        }
    }

    /// How often the upstream is asked before the next write is judged.
    fn probes(self, mode: Mode) -> usize {
        match mode {
            Mode::ContentShared => 1,
            Mode::ContentExclusive => usize::from(!matches!(self, Self::Learned | Self::Kept)),
            // The version shows any write.
            Mode::VersionExclusive => 0,
        }
    }
}

struct Case {
    name: &'static str,
    script: Script,
    told: Told,
    settled: Settled,
}

fn case(name: &'static str, answer: Answer, told: Told, settled: Settled) -> Case {
    Case { name, script: Script::Answer(answer), told, settled }
}

/// The upstream's status as it is, with the write applied or not.
fn statuses() -> Vec<Case> {
    use Settled::{Applied, Contradicted, Doubt, Kept, Learned, Unclear};
    let not_applied = [
        (202, Unclear),
        (207, Unclear),
        (301, Unclear),
        (303, Unclear),
        (307, Kept),
        (308, Kept),
        (400, Kept),
        (403, Kept),
        (404, Contradicted),
        (408, Unclear),
        (409, Contradicted),
        (410, Contradicted),
        (412, Contradicted),
        (413, Kept),
        (499, Unclear),
        (500, Unclear),
        (502, Doubt),
        (503, Unclear),
        (504, Doubt),
    ];
    let applied = [200, 201, 204].map(|status| (status, Learned));
    let silently = [(202, Unclear), (207, Unclear), (303, Unclear), (408, Unclear), (500, Unclear), (502, Doubt)];
    let named = |prefix: &str, status: u16| -> &'static str { format!("{prefix} {status}").leak() };
    let mut cases = Vec::new();
    for (status, settled) in not_applied {
        cases.push(case(named("not applied", status), Answer::status(status), Told::Status(status), settled));
    }
    for (status, settled) in applied.into_iter().chain(silently) {
        let answer = Answer::status(status).applied();
        cases.push(case(named("applied", status), answer, Told::Status(status), settled));
    }
    cases.push(case("a 204 that lies", Answer::status(204), Told::Status(204), Learned));
    let early = Answer::status(200).early(102, &[]).early(103, &[("Link", "</style>")]).applied();
    cases.push(case("interim responses", early, Told::Status(200), Learned));
    let large = Answer::status(200).body(vec![b'x'; 200_000]).applied();
    cases.push(case("a body above max_hash_size", large, Told::Status(200), Applied));
    cases
}

/// Answers that are none, or end too early.
fn broken() -> Vec<Case> {
    use Settled::{Applied, Doubt, Unclear};
    let failed = || Told::Refused { status: 502, code: "upstream-failed", in_doubt: true };
    let lost = || Told::Refused { status: 502, code: "upstream-failed", in_doubt: false };
    let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
    let half_body = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
    let half_chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf";
    let half_error = "HTTP/1.1 500 Oops\r\nContent-Length: 9\r\n\r\nhalf";
    let half_gateway = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 9\r\n\r\nhalf";
    vec![
        case("closed", Answer::close(), failed(), Doubt),
        case("applied and closed", Answer::close().applied(), failed(), Doubt),
        case("reset", Answer::reset(), failed(), Doubt),
        case("applied and reset", Answer::reset().applied(), failed(), Doubt),
        case("101", Answer::raw(switching), failed(), Doubt),
        case("applied and 101", Answer::raw(switching).applied(), failed(), Doubt),
        case("garbage", Answer::raw("SSH-2.0-OpenSSH_9.9\r\n\r\n"), failed(), Doubt),
        case("applied and garbage", Answer::raw("\0\0\0\r\n\r\n").applied(), failed(), Doubt),
        case("half a head", Answer::raw("HTTP/1.1 200 OK\r\nContent-Le"), failed(), Doubt),
        case("applied and half a head", Answer::raw("HTTP/1.1 20").applied(), failed(), Doubt),
        case("half a body", Answer::raw(half_body).applied(), lost(), Applied),
        case("half a chunk", Answer::raw(half_chunk).applied(), lost(), Applied),
        case("half a body of a 500", Answer::raw(half_error).applied(), lost(), Unclear),
        case("half a body of a 502", Answer::raw(half_gateway), failed(), Doubt),
    ]
}

/// No answer in time.
fn silent() -> Vec<Case> {
    let late = || Told::Refused { status: 504, code: "upstream-timeout", in_doubt: true };
    let half_a_head = Script::Stall("HTTP/1.1 200 OK\r\nContent-Le");
    vec![
        case("silence", Answer::never(), late(), Settled::Doubt),
        case("applied and silence", Answer::never().applied(), late(), Settled::Doubt),
        Case { name: "half a head and silence", script: half_a_head, told: late(), settled: Settled::Doubt },
    ]
}

/// Runs each of the cases in each mode, many at once.
async fn run_all<F: Future<Output = ()> + Send + 'static>(
    scene: &Arc<Scene>,
    cases: impl Fn() -> Vec<Case>,
    run: impl Fn(Arc<Scene>, Mode, Case) -> F,
) {
    let runs = Mode::ALL.into_iter().flat_map(|mode| cases().into_iter().map(move |case| (mode, case)));
    all_at_once(runs.map(|(mode, case)| (format!("{mode:?}: {}", case.name), run(Arc::clone(scene), mode, case))))
        .await;
}

/// Every answer in every mode: the answer that the client gets, and the answers to the next writes. No write reaches
/// the backend twice (DESIGN, section 3, rules 3 and 6).
#[tokio::test]
async fn the_record_is_unknown_or_true_after_every_answer() {
    let scene = Scene::start(|setup| setup.upstream(SOON_OVER).route("max_hash_size = \"100KiB\"")).await;
    run_all(&scene, || [statuses(), broken()].into_iter().flatten().collect(), afterwards).await;
}

#[tokio::test]
async fn the_record_is_unknown_or_true_after_silence() {
    let scene = Scene::start(|setup| setup.upstream(SOON_OVER).upstream(TIMEOUT)).await;
    run_all(&scene, silent, afterwards).await;
}

async fn afterwards(scene: Arc<Scene>, mode: Mode, case: Case) {
    let resource = Resource::create(&scene, mode, case.name).await;
    let sent = Instant::now();
    write(&resource, case.script, &case.told, SOON_OVER_SECONDS).await;
    let applied = resource.content().as_deref() == Some("two");
    assert_eq!(resource.writes(), 2, "one creation and one write have reached the backend");

    let seen = resource.requests();
    let second = resource.put_when_free(&resource.tag, "three", SOON_OVER_SECONDS).await;
    if case.settled == Settled::Doubt {
        assert!(sent.elapsed() >= LATE_WRITE_WINDOW, "it was held back for {:?} only", sent.elapsed());
    }
    let passes = case.settled.lets_old_tag_pass(mode, applied);
    if passes {
        assert_eq!(second.status, 204, "with the old tag: {second:?}");
    } else {
        second.refused(412, "precondition-failed");
    }
    assert_eq!(resource.probes_since(seen), case.settled.probes(mode), "probes before the next write");

    let tag = resource.get().await.etag();
    assert_eq!(resource.put(&tag, "four").await.status, 204, "with the tag that was read");
    assert_eq!(resource.content().as_deref(), Some("four"));
    assert_eq!(resource.writes(), 3 + usize::from(passes), "each write reached the backend once");
}

/// A doubt holds others back, and nothing else does: the claim of every other write is given back with its answer.
#[tokio::test]
async fn others_are_held_back_by_a_doubt_alone() {
    let scene = Scene::start(|setup| setup.upstream(NEVER_OVER).route("max_hash_size = \"100KiB\"")).await;
    run_all(&scene, || [statuses(), broken()].into_iter().flatten().collect(), meanwhile).await;
}

async fn meanwhile(scene: Arc<Scene>, mode: Mode, case: Case) {
    let resource = Resource::create(&scene, mode, case.name).await;
    write(&resource, case.script, &case.told, NEVER_OVER_SECONDS).await;
    let seen = resource.requests();
    let second = resource.put(&resource.tag, "three").await;
    if case.settled == Settled::Doubt {
        assert_held_back(&second, NEVER_OVER_SECONDS);
        assert_eq!(resource.requests(), seen, "nothing reaches the backend");
        assert_eq!(resource.get().await.status, 200, "a read passes");
    } else {
        assert_ne!(second.status, 409, "{second:?}");
    }
}

/// Sends the write and checks the answer to its client.
async fn write(resource: &Resource, script: Script, told: &Told, held_back_seconds: u64) {
    let backend = &resource.scene.backend;
    let response = match script {
        Script::Answer(answer) => {
            backend.once("PUT", &resource.target, answer);
            resource.put(&resource.tag, "two").await
        }
        Script::Stall(bytes) => {
            let held = backend.hold("PUT", &resource.target);
            let (response, ()) = tokio::join!(resource.put(&resource.tag, "two"), async {
                let mut held = held.arrived().await;
                held.apply().await;
                held.send_bytes(bytes).await;
                held.peer_closed().await;
            });
            response
        }
    };
    match *told {
        Told::Status(status) => assert_eq!(response.status, status, "{response:?}"),
        Told::Refused { status, code, in_doubt } => {
            let problem = response.refused(status, code);
            assert_eq!(problem.in_doubt, in_doubt, "{:?}", problem.json);
            let retry_after = in_doubt.then_some(held_back_seconds);
            assert_eq!(problem.retry_after_seconds, retry_after, "{:?}", problem.json);
        }
    }
}

/// RFC 9110 sections 15.4.8 and 15.4.9: a redirect that keeps the method has done nothing, so the tag goes on to the other
/// target. Frameworks redirect so to the other slash.
#[tokio::test]
async fn a_redirected_write_is_followed_with_its_tag() {
    for source in source::ALL {
        for status in [307, 308] {
            let (backend, setup) = source.start("/doc/", "one").await;
            let proxy = setup.start().await;
            let addr = proxy.addr();
            let tag = get(addr, "/doc/").await.etag();
            backend.always("*", "/doc", move |_| Answer::status(status).header("Location", "/doc/"));
            for _ in 0..2 {
                assert_eq!(put_if_match(addr, "/doc", &tag, "two").await.status, status, "{source}");
            }
            let followed = put_if_match(addr, "/doc/", &tag, "two").await;
            assert_eq!(followed.status, 204, "{source} {status}: {followed:?}");
            put_if_match(addr, "/doc/", &tag, "three").await.refused(412, "precondition-failed");
        }
    }
}

/// A body that stops in the middle: the status has shown that the write was applied, for any answer to the client.
#[tokio::test]
async fn a_body_that_never_ends_leaves_an_applied_write() {
    let scene = Scene::start(|setup| setup.upstream(TIMEOUT)).await;
    let run = async |mode| {
        let resource = Resource::create(&scene, mode, "stalled").await;
        let held = scene.backend.hold("PUT", &resource.target);
        let mut client = Connection::open(scene.proxy.addr()).await;
        let request = request_bytes("PUT", &resource.target, &[("If-Match", &resource.tag)], b"two");
        client.send_bytes(request).await;
        let mut held = held.arrived().await;
        held.apply().await;
        held.send_bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
        resource.put(&resource.tag, "three").await.refused(412, "precondition-failed");
        let tag = resource.get().await.etag();
        assert_eq!(resource.put(&tag, "four").await.status, 204);
        assert_eq!(resource.writes(), 3);
    };
    tokio::join!(run(Mode::ContentShared), run(Mode::ContentExclusive), run(Mode::VersionExclusive));
}
