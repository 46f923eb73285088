//! Appends lines to the text at a URL, under a lease: `lease URL HOLDER SECONDS LINES`

use std::{
    env,
    error::Error,
    io::{BufRead, BufReader},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use ureq::{
    Agent, Body,
    http::{Request, Response},
};
use uuid::Uuid;

/// The lease of the resource at a URL, until it is dropped.
struct Lease {
    holding: Arc<Holding>,
    fence: u64,
    /// Says why the lease is lost.
    over: Receiver<String>,
}

struct Holding {
    agent: Agent,
    url: String,
    id: String,
    holder: String,
    seconds: u64,
}

/// The data of an event.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    fence: u64,
    reason: String,
    status: u16,
    detail: String,
    retry_after: Option<u64>,
}

/// The events that ifmatch sends, until the connection breaks: the name of each event, and its data.
type Events = Box<dyn Iterator<Item = (String, Data)> + Send>;

impl Lease {
    fn acquire(url: &str, holder: &str, seconds: u64) -> Result<Self, Box<dyn Error>> {
        let (scheme, rest) = url.split_once("://").ok_or("a URL begins with http://")?;
        let (host, path) = rest.split_once('/').ok_or("a URL has a path")?;
        let holding = Arc::new(Holding {
            agent: Agent::config_builder().http_status_as_error(false).build().into(),
            url: format!("{scheme}://{host}/.leases/{path}"),
            // The id is the same each time, so a grant whose answer was lost is ours all the same.
            id: Uuid::new_v4().to_string(),
            holder: holder.to_owned(),
            seconds,
        });
        for _ in 0..40 {
            let (mut after, mut events) = (1, holding.ask("wait=20"));
            while let Some((name, data)) = events.next() {
                match (&*name, data.retry_after) {
                    ("granted", _) => {
                        let (sender, over) = channel();
                        let (kept, fence) = (Arc::clone(&holding), data.fence);
                        thread::spawn(move || kept.keep(events, fence, &sender));
                        return Ok(Self { holding, fence, over });
                    }
                    ("refused", None) => return Err(lost(&data.detail)),
                    ("refused", Some(seconds)) => after = seconds,
                    _ => {}
                }
            }
            thread::sleep(Duration::from_secs(after).mul_f64(0.5 + fastrand::f64() / 2.0));
        }
        Err(lost("another client holds it"))
    }

    /// Waits for this time, or until the lease is lost.
    fn work(&self, time: Duration) -> Result<(), Box<dyn Error>> {
        match self.over.recv_timeout(time) {
            Ok(reason) => Err(lost(&reason)),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(lost("nothing keeps it")),
        }
    }

    fn write(&self, url: &str, text: &str) -> Result<(), Box<dyn Error>> {
        let mut answer = self.holding.send("PUT", url, Duration::from_secs(90), &[], text)?;
        match answer.status().as_u16() {
            200 | 201 | 204 => Ok(()),
            412 => Err(lost(&answer.body_mut().read_to_string()?)),
            status => Err(format!("{status} {}", answer.body_mut().read_to_string()?).into()),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // If this fails it ends by itself.
        let _ = self.holding.send("DELETE", &self.holding.url, Duration::from_secs(10), &[], "");
    }
}

impl Holding {
    fn send(
        &self,
        method: &str,
        url: &str,
        timeout: Duration,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Result<Response<Body>, ureq::Error> {
        let mut request = Request::builder().method(method).uri(url).header("Lease-Id", &self.id);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request =
            self.agent.configure_request(request.body(body.to_owned())?).timeout_global(Some(timeout)).build();
        self.agent.run(request)
    }

    /// Sends the request for the lease once. The stream ends soon after the term of the lease: so a connection that is
    /// dead does not last for longer.
    fn ask(&self, preference: &str) -> Events {
        let seconds = self.seconds.to_string();
        let fields = [
            ("Accept", "text/event-stream"),
            ("Lease-Duration", &seconds),
            ("Lease-Holder", &self.holder),
            ("Prefer", preference),
        ];
        let limit = Duration::from_secs(self.seconds + 20);
        let Ok(mut answer) = self.send("POST", &self.url, limit, &fields, "") else { return Box::new([].into_iter()) };
        if answer.status() != 200 {
            let refused = answer.body_mut().read_to_string().ok().and_then(|text| serde_json::from_str(&text).ok());
            return Box::new(refused.map(|data| ("refused".to_owned(), data)).into_iter());
        }
        let mut name = String::new();
        let lines = BufReader::new(answer.into_body().into_reader()).lines().map_while(Result::ok);
        Box::new(lines.filter_map(move |line| match line.split_once(": ") {
            Some(("event", event)) => {
                event.clone_into(&mut name);
                None
            }
            Some(("data", data)) => Some((name.clone(), serde_json::from_str(data).ok()?)),
            _ => None,
        }))
    }

    /// Reads the stream beside the work. Comes back after a break, until the lease must be over.
    fn keep(&self, mut events: Events, fence: u64, over: &Sender<String>) {
        let mut broken = None;
        let reason = 'lost: loop {
            for (name, data) in events {
                match &*name {
                    "lost" => break 'lost data.reason,
                    "refused" if data.status < 500 => break 'lost data.detail,
                    "granted" if data.fence != fence => break 'lost "another client has had it".to_owned(),
                    "granted" => broken = None,
                    _ => {}
                }
            }
            let since = *broken.get_or_insert_with(Instant::now);
            if since.elapsed() > Duration::from_secs(self.seconds) {
                break "it has run out".to_owned();
            }
            thread::sleep(Duration::from_secs(1));
            events = self.ask("");
        };
        let _ = over.send(reason);
    }
}

/// The lease is over, or cannot be had: nothing more may be written.
fn lost(reason: &str) -> Box<dyn Error> {
    format!("lost the lease: {reason}").into()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, holder, seconds, lines] = arguments.as_slice() else {
        return Err("usage: lease URL HOLDER SECONDS LINES".into());
    };
    let lease = Lease::acquire(url, holder, seconds.parse()?)?;
    println!("fencing token {}", lease.fence);
    for line in 0..lines.parse::<u32>()? {
        let text = ureq::get(url).call()?.body_mut().read_to_string()?;
        lease.work(Duration::from_millis(400))?;
        lease.write(url, &format!("{text}{holder} {line}\n"))?;
    }
    Ok(())
}
