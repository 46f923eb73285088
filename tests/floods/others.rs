//! The same floods against nginx and haproxy with their defaults (`make floods`, docs/floods.md): no ceilings, a table.

use std::{fs, net::SocketAddr, process::Command, time::Duration};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    arena::{ALONE, times},
    frames::{
        DATA, END_HEADERS, END_STREAM, HEADERS, Http2, RST_STREAM, SETTINGS, WINDOW_UPDATE, fields, frame,
        initial_window,
    },
    measure::Sampler,
    sockets::connections,
    support::{backend::Backend, child::Child, ports, proxy::Proxy},
};

/// How long each flood goes on.
const TIME: Duration = Duration::from_secs(20);

/// A server that floods are let loose on.
struct Server {
    name: &'static str,
    http1: SocketAddr,
    http2: SocketAddr,
    process: u32,
    _directory: Option<TempDir>,
    _running: Running,
}

#[allow(dead_code, reason = "they are kept so that they go on")]
enum Running {
    Ifmatch(Proxy),
    Other(Child),
}

/// What became of a flood, in a few words.
type Outcome = String;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_take_the_same_floods() {
    if !times(false, true) {
        return;
    }
    let _alone = ALONE.lock().await;
    let backend = Backend::start().await;
    backend.put("/large", "x".repeat(512 << 10));
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = silent.local_addr().expect("its address");
    println!("| flood | server | memory | descriptors | processor | outcome |\n|---|---|---|---|---|---|");
    for flood in 0..7 {
        for name in ["ifmatch", "nginx", "haproxy"] {
            let Some(server) = start(name, backend.addr(), silent).await else { continue };
            let sampler = Sampler::start(server.process);
            let (name, outcome) = run(flood, &server).await;
            let cost = sampler.end().await;
            println!(
                "| {name} | {} | {:.1} MiB | {} | {:.2} s | {outcome} |",
                server.name,
                cost.resident_kib as f64 / 1024.0,
                cost.descriptors,
                cost.processor.as_secs_f64(),
            );
        }
    }
}

/// One of them, where it is installed.
async fn start(name: &str, backend: SocketAddr, silent: SocketAddr) -> Option<Server> {
    match name {
        "nginx" => nginx(backend, silent).await,
        "haproxy" => haproxy(backend, silent).await,
        _ => Some(ifmatch(backend, silent).await),
    }
}

async fn run(flood: usize, server: &Server) -> (&'static str, Outcome) {
    match flood {
        0 => ("300 heads, a byte each 100 ms, for 20 s", trickled(server.http1).await),
        1 => ("300 heads of 1 MB", huge(server.http1).await),
        2 => ("a head of 1 MB in pieces of 64 bytes", pieces(server.http1).await),
        3 => ("2,000 idle connections of one client", idle(server.http1).await),
        4 => ("1,200 requests that are given up, silent backend", given_up(server.http2).await),
        5 => ("200,000 WINDOW_UPDATE frames", updates(server.http2).await),
        _ => ("120 answers of 512 KiB, windows shut, for 20 s", shut(server.http2).await),
    }
}

async fn trickled(addr: SocketAddr) -> Outcome {
    let mut clients = JoinSet::new();
    for mut stream in connections(addr, 300).await {
        clients.spawn(async move {
            let begun = Instant::now();
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX: ").await;
            while begun.elapsed() < TIME {
                let ended = timeout(Duration::from_millis(100), stream.read(&mut [0; 512])).await;
                if ended.is_ok() || stream.write_all(b"x").await.is_err() {
                    return false;
                }
            }
            true
        });
    }
    let open = clients.join_all().await.into_iter().filter(|is_open| *is_open).count();
    format!("{open} are open after it")
}

async fn huge(addr: SocketAddr) -> Outcome {
    let piece = "x".repeat(64 << 10);
    let mut clients = JoinSet::new();
    for mut stream in connections(addr, 300).await {
        let piece = piece.clone();
        clients.spawn(async move {
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX: ").await;
            for _ in 0..16 {
                if stream.write_all(piece.as_bytes()).await.is_err() {
                    break;
                }
            }
            status(stream).await
        });
    }
    most(clients.join_all().await)
}

async fn pieces(addr: SocketAddr) -> Outcome {
    let mut stream = connections(addr, 1).await.remove(0);
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await;
    for _ in 0..16_000 {
        if stream.write_all(&[b'X'; 64]).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    status(stream).await
}

async fn idle(addr: SocketAddr) -> Outcome {
    let mut open = 0;
    let mut kept = Vec::new();
    for mut stream in connections(addr, 2_000).await {
        if timeout(Duration::from_millis(1), stream.read(&mut [0])).await.is_err() {
            open += 1;
            kept.push(stream);
        }
    }
    sleep(Duration::from_secs(1)).await;
    format!("{open} are let in")
}

async fn given_up(addr: SocketAddr) -> Outcome {
    let mut client = Http2::open(addr, &frame(SETTINGS, 0, 0, &[])).await;
    for batch in 0..60 {
        let streams = (20 * batch..20 * batch + 20).map(|number| 2 * number + 1);
        for stream in streams.clone() {
            let head = frame(HEADERS, END_HEADERS, stream, &fields("POST", "/silent/a", &[("content-length", "4")]));
            let _ = client.send(&[head, frame(DATA, END_STREAM, stream, b"post")].concat()).await;
        }
        sleep(Duration::from_millis(30)).await;
        for stream in streams {
            let _ = client.send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).await;
        }
    }
    ended(client, Duration::from_secs(1)).await
}

async fn updates(addr: SocketAddr) -> Outcome {
    let mut client = Http2::open(addr, &frame(SETTINGS, 0, 0, &[])).await;
    let many = frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()).repeat(1_000);
    for _ in 0..200 {
        if client.send(&many).await.is_err() {
            break;
        }
    }
    ended(client, Duration::from_secs(2)).await
}

async fn shut(addr: SocketAddr) -> Outcome {
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = Http2::open(addr, &initial_window(0)).await;
        for number in 0..60 {
            let head = frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &fields("GET", "/large", &[]));
            let _ = client.send(&head).await;
        }
        clients.push(client);
    }
    sleep(TIME).await;
    let mut outcomes = Vec::new();
    for client in clients {
        outcomes.push(ended(client, Duration::from_millis(100)).await);
    }
    most(outcomes)
}

/// Whether the server has ended a connection within a time.
async fn ended(client: Http2, wait: Duration) -> Outcome {
    let begun = Instant::now();
    while !client.is_over() && begun.elapsed() < wait {
        sleep(Duration::from_millis(10)).await;
    }
    if !client.is_over() {
        return "goes on".to_owned();
    }
    client.end().await.goaway.map_or_else(|| "closed".to_owned(), |code| format!("GOAWAY {code}"))
}

async fn status(mut stream: TcpStream) -> Outcome {
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
    let line = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
    line.split(' ').nth(1).map_or_else(|| "closed".to_owned(), str::to_owned)
}

fn most(mut outcomes: Vec<Outcome>) -> Outcome {
    outcomes.sort();
    outcomes.chunk_by(PartialEq::eq).max_by_key(|chunk| chunk.len()).map_or_else(String::new, |chunk| chunk[0].clone())
}

async fn ifmatch(backend: SocketAddr, silent: SocketAddr) -> Server {
    let tables = format!(
        "[upstreams.silent]\nservers = [\"{silent}\"]\n[[routes]]\nname = \"silent\"\npath = \"/silent/{{*rest}}\"\n\
         upstream = \"silent\"\npolicy = \"optimistic\"\n"
    );
    let proxy = Proxy::start_with(&(Proxy::to(backend).configuration() + &tables), &[("RUST_LOG", "off")]).await;
    let (addr, process) = (proxy.addr(), proxy.id());
    let running = Running::Ifmatch(proxy);
    Server { name: "ifmatch", http1: addr, http2: addr, process, _directory: None, _running: running }
}

async fn nginx(backend: SocketAddr, silent: SocketAddr) -> Option<Server> {
    let (http1, http2) = (ports::free(), ports::free());
    other("nginx", &["-c"], http1, http2, |directory| {
        format!(
            "daemon off; master_process off; pid {directory}/pid; error_log stderr;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  server {{
    listen {http1}; listen {http2} http2;
    location / {{ proxy_pass http://{backend}; }}
    location /silent/ {{ proxy_pass http://{silent}; }}
  }}
}}
"
        )
    })
    .await
}

async fn haproxy(backend: SocketAddr, silent: SocketAddr) -> Option<Server> {
    let (http1, http2) = (ports::free(), ports::free());
    // The timeouts are those of Debian's file; without one it waits for ever.
    other("haproxy", &["-db", "-f"], http1, http2, |_directory| {
        format!(
            "defaults
  mode http
  timeout connect 5000
  timeout client 50000
  timeout server 50000
frontend all
  bind {http1}
  bind {http2} proto h2
  use_backend silent if {{ path_beg /silent/ }}
  default_backend main
backend main
  server main {backend}
backend silent
  server silent {silent}
"
        )
    })
    .await
}

/// Another server, where it is installed.
async fn other(
    name: &'static str,
    arguments: &[&str],
    http1: SocketAddr,
    http2: SocketAddr,
    configuration: impl FnOnce(&str) -> String,
) -> Option<Server> {
    let program = [name.to_owned(), format!("/usr/sbin/{name}")];
    let program = program.iter().find(|program| Command::new(program).arg("-v").output().is_ok())?;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("configuration");
    fs::write(&file, configuration(directory.path().to_str().expect("UTF-8"))).expect("a file");
    let mut command = Command::new(program);
    command.args(arguments).arg(&file);
    let mut child = Child::spawn(name, &mut command, directory.path().join("log"));
    child.accepts(http1).await.expect("it accepts");
    let process = child.id();
    Some(Server { name, http1, http2, process, _directory: Some(directory), _running: Running::Other(child) })
}
