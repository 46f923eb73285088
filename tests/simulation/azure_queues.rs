//! Queues in Azure's dialect: their files at the backend, what must be true of each message, and settings about them.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fastrand::Rng;
use http::Method;
use ifmatch::{
    core::records::{availability::Availability, record::Snapshot},
    dialect::azure_queue::{PopReceipt, Queue, QueueMessage},
};
use tokio::time::{Instant, advance};

use crate::{
    backend::{Backend, response},
    client::{Request, Told},
    generate::{options, remembers},
    judge::Ledger,
    operation::{Manner, Operation},
    options::{Options, Source},
    process::Keeping,
    run::{Run, Setting, Step},
    schedule::Faults,
    world::{Inner, Response, Sent},
};

/// The path of the queue, by which its steps are known.
pub const QUEUE: &str = "/jobs";

/// The longest time for which a message is hidden, in seconds.
const HIDDEN_SECONDS_MAX: u64 = 40;

/// The attempts of the last client to take what is left.
const ATTEMPTS_MAX: u32 = 40;

/// The requests of a client for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueStep {
    Create,
    /// Deletes the queue with all messages.
    Drop,
    Put,
    Take,
    Peek,
    Update,
    Delete,
}

/// A message that a client has taken.
#[derive(Clone, Debug)]
struct Taken {
    id: String,
    text: String,
    receipt: String,
    count: u64,
}

/// The knowledge of clients about their queue.
#[derive(Default)]
pub struct Queues {
    /// True if the run is about a queue.
    pub is_there: bool,
    /// The messages that each client has taken, with the receipts that it got.
    taken: BTreeMap<usize, Vec<Taken>>,
    /// The messages that each request has named, and the receipt.
    named: BTreeMap<usize, Taken>,
    /// The texts of the messages that were put and acknowledged.
    put: BTreeSet<String>,
    /// The id of the queue that each message was put into.
    of_queue: BTreeMap<String, String>,
    /// The texts that a deletion was sent for.
    may_be_gone: BTreeSet<String>,
    /// The moment at which the deletion of each text was acknowledged.
    deleted: BTreeMap<String, u64>,
    /// The request by which each message was taken for the nth time, if its client got an answer.
    told: BTreeMap<(String, u64), usize>,
}

thread_local! {
    static BEGUN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Lets the clocks of all processes begin.
pub fn begin_time() {
    BEGUN.set(Some(Instant::now()));
}

/// The time of the clocks, which pass as the schedule says.
pub fn time() -> SystemTime {
    let begun = BEGUN.get().unwrap_or_else(Instant::now);
    UNIX_EPOCH + Duration::from_secs(1_795_867_200) + begun.elapsed()
}

fn now() -> u64 {
    u64::try_from(time().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Builds the request number `number` of a client.
pub fn request(ledger: &mut Ledger, (client, number): (usize, usize), of: QueueStep, manner: Manner) -> Request {
    let queues = &mut ledger.queues;
    let of_client = queues.taken.get(&client).map(Vec::as_slice).unwrap_or_default();
    // Earlier receipts of the client are tried too, and some messages have been taken by others since.
    let named = of_client.get(number % of_client.len().max(1)).cloned().unwrap_or_else(|| Taken {
        id: "01900000-0000-7000-8000-000000000000".to_owned(),
        text: String::new(),
        receipt: "AAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        count: 0,
    });
    let Taken { id, receipt, .. } = &named;
    let hidden = manner.lasts.unwrap_or(1);
    let message = || Some(format!("<QueueMessage><MessageText>{number}</MessageText></QueueMessage>"));
    let (method, target, body) = match of {
        QueueStep::Create => (Method::PUT, QUEUE.to_owned(), None),
        QueueStep::Drop => (Method::DELETE, QUEUE.to_owned(), None),
        QueueStep::Put => (Method::POST, format!("{QUEUE}/messages"), message()),
        QueueStep::Take => {
            let count = manner.waits.clamp(1, 32);
            (Method::GET, format!("{QUEUE}/messages?numofmessages={count}&visibilitytimeout={hidden}"), None)
        }
        QueueStep::Peek => (Method::GET, format!("{QUEUE}/messages?peekonly=true"), None),
        QueueStep::Update => {
            let target = format!("{QUEUE}/messages/{id}?popreceipt={receipt}&visibilitytimeout={hidden}");
            (Method::PUT, target, None)
        }
        QueueStep::Delete => (Method::DELETE, format!("{QUEUE}/messages/{id}?popreceipt={receipt}"), None),
    };
    if matches!(of, QueueStep::Update | QueueStep::Delete) {
        if of == QueueStep::Delete {
            queues.may_be_gone.insert(named.text.clone());
        }
        queues.named.insert(number, named);
    }
    let fields = vec![("x-sent-by", "client".to_owned()), ("authorization", "usual".to_owned())];
    Request { method, target, fields, body, is_named_by_body: false, describes: false }
}

impl Backend {
    /// The queue that is there.
    fn queue(&self) -> Option<Queue> {
        let (_, document) = self.files.get(&format!("{QUEUE}.json"))?;
        Queue::from_document(document.as_bytes())
    }

    /// Acts on a request for a file, and returns what was there before.
    fn act_on_file(&mut self, sent: &Sent) -> (Response, Option<String>) {
        let before = self.files.get(&sent.target).map(|(_, content)| content.clone());
        if sent.target == format!("{QUEUE}/") {
            let names = self.files.keys().filter_map(|path| path.strip_prefix(&sent.target));
            let files: Vec<_> = names.map(|name| serde_json::json!({ "name": name, "type": "file" })).collect();
            return (Response { body: serde_json::Value::from(files).to_string(), ..response(200) }, None);
        }
        let told = match (sent.method.as_str(), &before) {
            ("PUT", _) => {
                self.file_writes += 1;
                self.files.insert(sent.target.clone(), (self.file_writes, sent.body.clone()));
                response(if before.is_some() { 204 } else { 201 })
            }
            (_, None) => response(404),
            ("DELETE", _) => {
                self.files.remove(&sent.target);
                response(204)
            }
            (_, Some(content)) => {
                let (write, _) = self.files[&sent.target];
                let fields = vec![("etag", format!("\"s{write}\"")), ("content-type", "application/json".to_owned())];
                Response { body: content.clone(), fields, ..response(200) }
            }
        };
        (told, before)
    }
}

fn stored(content: Option<&String>) -> Option<QueueMessage> {
    QueueMessage::from_document(content?.as_bytes())
}

impl Inner {
    /// Lets the backend act on a request for a file of the queue.
    pub fn act_on_queue(&mut self, sent: &Sent) -> Response {
        if let Some(number) = sent.request.filter(|_| sent.writes()) {
            self.ledger.requests[number].arrived = true;
        }
        let (told, before) = self.backend.act_on_file(sent);
        let queue = self.backend.queue();
        let after = self.backend.files.get(&sent.target).map(|(_, content)| content.clone());
        if sent.writes() {
            let (before, after) = (stored(before.as_ref()), stored(after.as_ref()));
            let how = match before {
                Some(before) => self.ledger.changed_message(sent, (&before, after), queue.as_ref()),
                None => after.and_then(|after| self.ledger.made_message(sent, after)),
            };
            if let Some(how) = how {
                self.ledger.breaks(how);
            }
        }
        told
    }
}

impl Ledger {
    /// Returns what is wrong with a message that was not there before.
    fn made_message(&mut self, sent: &Sent, after: QueueMessage) -> Option<String> {
        let number = sent.request?;
        let puts = self.requests[number].operation == Operation::OfQueue(QueueStep::Put);
        let how = (!puts).then(|| format!("request {number} brings message {} back", after.text));
        self.queues.of_queue.insert(after.text, after.queue);
        how
    }

    /// Returns what is wrong with the change of a message.
    fn changed_message(
        &self,
        sent: &Sent,
        (before, after): (&QueueMessage, Option<QueueMessage>),
        queue: Option<&Queue>,
    ) -> Option<String> {
        let number = sent.request?;
        let operation = self.requests[number].operation;
        let about = format!("request {number} changes message {} of take {}", before.text, before.taken);
        let proves = || {
            let receipt = self.queues.named.get(&number).and_then(|named| PopReceipt::parse(&named.receipt));
            receipt.is_some_and(|receipt| before.is_proved_by(receipt))
        };
        match (operation, after) {
            (Operation::OfQueue(QueueStep::Take), Some(after)) => {
                if before.visible.0 > now() {
                    return Some(format!("{about}, which is hidden for {} ms more", before.visible.0 - now()));
                }
                (after.taken != before.taken + 1).then(|| format!("{about} and makes it that of take {}", after.taken))
            }
            (Operation::OfQueue(QueueStep::Update), Some(after)) => {
                let is_same = after.taken == before.taken && after.text == before.text;
                (!is_same || !proves()).then(|| format!("{about} without its last receipt"))
            }
            (Operation::OfQueue(QueueStep::Delete), None) => {
                (!proves()).then(|| format!("{about}: it is deleted without its last receipt"))
            }
            // The rest of a deleted queue.
            (Operation::OfQueue(QueueStep::Drop | QueueStep::Take), None) => queue
                .is_some_and(|queue| queue.id == before.queue)
                .then(|| format!("{about}: it is removed from the queue that is there")),
            (operation, after) => Some(format!("{about} by {operation:?} and leaves {after:?}")),
        }
    }

    /// Records the answer to a request for the queue.
    pub fn answered_of_queue(&mut self, number: usize, of: QueueStep, told: &Told) {
        let (client, invoked) = (self.requests[number].client, self.requests[number].invoked);
        if told.status >= 300 {
            return;
        }
        let moment = self.moment();
        let queues = &mut self.queues;
        match of {
            QueueStep::Put => {
                queues.put.insert(number.to_string());
            }
            QueueStep::Take => {
                for taken in messages(&told.body) {
                    if let Some(other) = queues.told.insert((taken.text.clone(), taken.count), number) {
                        let how =
                            format!("requests {other} and {number} both got take {} of {}", taken.count, taken.text);
                        self.broken.get_or_insert(how);
                    }
                    if queues.deleted.get(&taken.text).is_some_and(|deleted| *deleted < invoked) {
                        self.broken.get_or_insert(format!("request {number} got {}, which was deleted", taken.text));
                    }
                    queues.taken.entry(client).or_default().push(taken);
                }
            }
            QueueStep::Update => {
                let named = queues.named[&number].clone();
                let taken = Taken { receipt: told.receipt.clone().unwrap(), ..named };
                queues.taken.entry(client).or_default().push(taken);
            }
            QueueStep::Delete => {
                let text = queues.named[&number].text.clone();
                if self.requests[number].arrived {
                    queues.deleted.entry(text).or_insert(moment);
                } else {
                    self.broken.get_or_insert(format!("request {number} is told of a deletion that nobody has sent"));
                }
            }
            QueueStep::Create | QueueStep::Drop | QueueStep::Peek => {}
        }
    }
}

/// Reads the messages in an answer.
fn messages(body: &str) -> Vec<Taken> {
    let value = |message: &str, name: &str| {
        let (_, rest) = message.split_once(&format!("<{name}>"))?;
        Some(rest.split_once('<')?.0.to_owned())
    };
    let one = |message: &str| {
        Some(Taken {
            id: value(message, "MessageId")?,
            text: value(message, "MessageText")?,
            receipt: value(message, "PopReceipt")?,
            count: value(message, "DequeueCount")?.parse().ok()?,
        })
    };
    body.split("</QueueMessage>").filter_map(one).collect()
}

impl Run {
    /// Takes all that is left when each message is visible again, and checks that no message is lost. Returns whether the
    /// run is about a queue.
    pub async fn drain_queue(&mut self) -> bool {
        if !self.world.lock().ledger.queues.is_there {
            return false;
        }
        let client = self.clients.len() - 1;
        let manner = Manner { waits: 32, lasts: Some(3_600), ..Manner::default() };
        let step = Step { operation: Operation::OfQueue(QueueStep::Take), target: QUEUE.to_owned(), manner };
        for _ in 0..ATTEMPTS_MAX {
            advance(Duration::from_secs(HIDDEN_SECONDS_MAX)).await;
            self.settle_all().await;
            let told = self.alone(client, step.clone()).await;
            // A write of a dead process keeps its message from all until its doubt is over.
            let is_free = |(_, snapshot): &(_, Snapshot)| snapshot.availability() == Availability::Free;
            let is_quiet = self.cellar.records().iter().all(is_free);
            let is_over = |told: Told| told.status == 404 || told.status == 200 && messages(&told.body).is_empty();
            if is_quiet && told.is_some_and(is_over) {
                break;
            }
        }
        let inner = self.world.lock();
        let queues = &inner.ledger.queues;
        let got: BTreeSet<&String> = queues.taken.get(&client).into_iter().flatten().map(|taken| &taken.text).collect();
        // A message is gone with its queue.
        let queue = inner.backend.queue().map(|queue| queue.id);
        let is_there = |text: &String| queue.is_some() && queues.of_queue.get(text) == queue.as_ref();
        let is_lost = |text: &&String| !queues.may_be_gone.contains(*text) && is_there(text) && !got.contains(text);
        let lost = queues.put.iter().find(is_lost).map(|text| format!("message {text} is lost"));
        drop(inner);
        if let Some(how) = lost {
            self.breaks(how);
        }
        true
    }
}

impl Options {
    /// Returns the text of a configuration of queues.
    pub fn text_of_queue(&self) -> String {
        let whole = self.text();
        let (head, _) = whole.split_once("[defaults]").unwrap();
        let (etag, other_writers) = match self.source {
            Source::Version => ("version", false),
            Source::Content => ("content", !self.exclusive),
            _ => ("upstream", !self.exclusive),
        };
        format!(
            "{head}[[routes]]\nname = \"queues\"\npath = \"/{{*path}}\"\nupstream = \"one\"\npolicy = \"optimistic\"\n\
             dialect = \"azure-queue\"\nindex = \"nginx-json\"\netag = \"{etag}\"\nother_writers = {other_writers}\n"
        )
    }
}

/// Builds a setting from a seed: clients put, take, update and delete messages of one queue.
pub fn setting(random: &mut Rng) -> Setting {
    let keeping = match random.u32(..8) {
        0 => Keeping::Disk,
        1..3 => Keeping::Memory,
        _ => Keeping::Shared,
    };
    setting_with(random, keeping).1
}

/// Builds a setting with such a store, and returns the options too.
pub fn setting_with(random: &mut Rng, keeping: Keeping) -> (Options, Setting) {
    let source = [Source::Version, Source::Version, Source::Upstream, Source::Content][random.usize(..4)];
    let options = Options {
        source,
        exclusive: source == Source::Version || random.bool(),
        judges: false,
        has_servers_apart: false,
        ..options(random, keeping)
    };
    let clients = random.usize(2..4);
    let step = |of, manner| Step { operation: Operation::OfQueue(of), target: QUEUE.to_owned(), manner };
    let mut prologue = vec![Vec::new(); clients];
    prologue[0].push(step(QueueStep::Create, Manner::default()));
    prologue[0].extend((0..random.usize(1..4)).map(|_| step(QueueStep::Put, Manner::default())));
    let mut steps = vec![Vec::new(); clients];
    let begins_anew = random.u32(..3) == 0;
    for own in &mut steps {
        own.push(step(QueueStep::Take, manner(random)));
        for _ in 0..random.usize(2..6) {
            use QueueStep::{Create, Delete, Drop, Peek, Put, Take, Update};
            let of = if begins_anew && random.bool() {
                [Drop, Create, Create, Put, Put][random.usize(..5)]
            } else {
                [Take, Take, Take, Delete, Delete, Delete, Update, Update, Put, Peek][random.usize(..10)]
            };
            own.push(step(of, manner(random)));
        }
    }
    let setting = Setting {
        keeping,
        remembers: remembers(random),
        proxies: if keeping == Keeping::Shared { random.usize(1..3) } else { 1 },
        prologue,
        steps,
        faults: Faults { left: random.u32(..4), kills: true, fails: true },
        has_queue: true,
        ..Setting::of(&options, &options.text_of_queue())
    };
    (options, setting)
}

fn manner(random: &mut Rng) -> Manner {
    Manner {
        waits: random.u64(1..3),
        lasts: Some(if random.bool() { random.u64(1..4) } else { random.u64(1..HIDDEN_SECONDS_MAX) }),
        goes_elsewhere: random.u32(..4) == 0,
        ..Manner::default()
    }
}
