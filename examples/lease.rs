//! Appends lines to the text at a URL, under a lease: `lease URL HOLDER SECONDS LINES`

use std::{
    env,
    error::Error,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use ureq::{
    Agent, Body,
    http::{Request, Response},
};
use uuid::Uuid;

/// The lease of the resource at a URL, until it is dropped.
struct Lease {
    holding: Arc<Holding>,
    fence: String,
    /// While it is there the lease is kept.
    heartbeat: Option<Sender<()>>,
}

struct Holding {
    agent: Agent,
    url: String,
    id: String,
    seconds: u64,
    ends: Mutex<Instant>,
}

impl Lease {
    fn acquire(url: &str, holder: &str, seconds: u64) -> Result<Self, Box<dyn Error>> {
        let (scheme, rest) = url.split_once("://").ok_or("a URL begins with http://")?;
        let (host, path) = rest.split_once('/').ok_or("a URL has a path")?;
        let holding = Arc::new(Holding {
            agent: Agent::config_builder().http_status_as_error(false).build().into(),
            url: format!("{scheme}://{host}/.leases/{path}"),
            id: Uuid::new_v4().to_string(),
            seconds,
            ends: Mutex::new(Instant::now()),
        });
        let duration = seconds.to_string();
        let wish = [("Lease-Duration", duration.as_str()), ("Lease-Holder", holder), ("Prefer", "wait=20")];
        for _ in 0..40 {
            // The id is the same each time, so a grant whose answer was lost is ours all the same.
            let mut after = 1.0;
            let asked = Instant::now(); // before the request: the proxy counts from a later moment
            if let Ok(mut answer) = holding.send("POST", &holding.url, Duration::from_secs(60), &wish, "") {
                if answer.status() == 201 {
                    let fence = field(&answer, "Fencing-Token").unwrap_or_default();
                    holding.set_end(asked + Duration::from_secs(seconds));
                    holding.renew(); // If we have stood in line, much of that time is over.
                    let (heartbeat, release) = channel();
                    let kept = Arc::clone(&holding);
                    thread::spawn(move || kept.keep(&release));
                    return Ok(Self { holding, fence, heartbeat: Some(heartbeat) });
                }
                let Some(seconds) = field(&answer, "Retry-After") else {
                    return Err(lost(&answer.body_mut().read_to_string()?));
                };
                after = seconds.parse()?;
            }
            thread::sleep(Duration::from_secs_f64(after * (0.5 + fastrand::f64() / 2.0)));
        }
        Err(lost("somebody else holds it"))
    }

    fn write(&self, url: &str, text: &str) -> Result<(), Box<dyn Error>> {
        if !self.holding.is_held() {
            return Err(lost("it has run out"));
        }
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
        self.heartbeat = None;
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

    fn is_held(&self) -> bool {
        Instant::now() < *self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_end(&self, ends: Instant) {
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = ends;
    }

    /// Whether the lease was renewed.
    fn renew(&self) -> bool {
        let asked = Instant::now();
        let time = Duration::from_secs(self.seconds);
        let Ok(answer) = self.send("PUT", &self.url, time / 3, &[], "") else { return false };
        let ends = match answer.status().as_u16() {
            200 => asked + time,
            500.. => return false,
            _ => asked, // It is over, and the proxy says so.
        };
        self.set_end(ends);
        answer.status() == 200
    }

    fn keep(&self, release: &Receiver<()>) {
        let time = Duration::from_secs(self.seconds);
        let mut pause = time / 3;
        // What has run out on our clock stays lost, even if the proxy would still renew it.
        while release.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) && self.is_held() {
            pause = if self.renew() { time / 3 } else { time / 20 };
        }
    }
}

fn field(answer: &Response<Body>, name: &str) -> Option<String> {
    Some(answer.headers().get(name)?.to_str().ok()?.to_owned())
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
        thread::sleep(Duration::from_millis(400)); // This is the work.
        lease.write(url, &format!("{text}{holder} {line}\n"))?;
    }
    Ok(())
}
