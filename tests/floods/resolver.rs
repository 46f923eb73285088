//! Names of servers that the resolver of the system no longer answers for.

use std::{fs, net::UdpSocket, path::Path, time::Duration};

use rustix::process::geteuid;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    process::Process,
    sockets::connections,
    support::{
        proxy::Proxy,
        raw::{get, send},
    },
};

/// The address of a name server that never answers.
const SILENT: &str = "127.53.53.53";

/// Where the system looks names up, for one process alone: a file system of its own has other files in place of the
/// system's, which takes root.
struct Names {
    directory: TempDir,
    _silent: UdpSocket,
}

impl Names {
    /// Returns `None` if this user may not listen on the port of name servers.
    fn new() -> Option<Self> {
        if !geteuid().is_root() {
            println!("no name server can be started here, which takes root");
            return None;
        }
        let silent = UdpSocket::bind((SILENT, 53)).expect("the address of no other name server");
        let names = Self { directory: TempDir::new().expect("a directory"), _silent: silent };
        names.write("resolv.conf", &format!("nameserver {SILENT}\noptions timeout:30\n"));
        names.write("nsswitch.conf", "hosts: files dns\n");
        Some(names)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.directory.path().join(file), text).expect("a file");
    }

    /// The command that starts another one with these names.
    fn wrapper(&self) -> Vec<String> {
        let directory = self.directory.path().display();
        let files = ["resolv.conf", "nsswitch.conf", "hosts"].map(|file| {
            assert!(Path::new("/etc").join(file).exists(), "/etc/{file} is replaced");
            format!("mount --bind {directory}/{file} /etc/{file} && ")
        });
        let script = format!("{}exec \"$0\" \"$@\"", files.concat());
        ["unshare", "--mount", "sh", "-c", &script].map(str::to_owned).into()
    }
}

/// Look-ups that hang take no threads from others: bodies are spooled meanwhile, and a server whose name was known is
/// reached by the address that it had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resolver_that_hangs_stops_no_other_upstream() {
    const SPOOLED_BYTES: usize = 200_000;
    let Some(names) = Names::new() else { return };
    names.write("hosts", "127.0.0.1 known.test\n");
    let configuration = |addr: std::net::SocketAddr| {
        let setup = Proxy::to(addr).server("max_body_memory = \"64KiB\"").route("require = \"never\"");
        let file = setup.on_one_thread().configuration();
        let known = format!("known.test:{}", addr.port());
        let of = |name: &str, server: &str| {
            format!(
                "[upstreams.{name}]\nservers = [\"{server}\"]\nidentity = \"backend\"\n[[routes]]\nname = \"{name}\"\n\
                 path = \"/{name}/{{*rest}}\"\nupstream = \"{name}\"\npolicy = \"last-writer-wins\"\n"
            )
        };
        let file = file.replace("[upstreams.backend]\n", "[upstreams.backend]\nidentity = \"backend\"\n");
        format!("{file}\n{}{}", of("known", &known), of("hanging", "hanging.test:80"))
    };
    let arena = Arena::under(configuration, &names.wrapper()).await;
    arena.backend.put("/known/doc", "by name");
    assert_eq!(get(arena.addr(), "/known/doc").await.status, 200);
    names.write("hosts", "");
    let count = times(600, 900);
    let ceiling = Ceiling { resident_mib: 48, descriptors: count + 60, honest_wait: HONEST_WAIT };
    let flood = async {
        let mut hanging = connections(arena.addr(), count).await;
        for stream in &mut hanging {
            stream.write_all(b"GET /hanging/doc HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("it is taken");
        }
        arena.settles().await;
        for number in 0..20 {
            let written = send(arena.addr(), "PUT", &format!("/large/{number}"), &[], "x".repeat(SPOOLED_BYTES)).await;
            assert_eq!(written.status, 201, "its body went to a file");
            assert_eq!(get(arena.addr(), "/known/doc").await.status, 200, "its address is known");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let threads = Process(arena.proxy.id()).threads();
        assert!(threads <= 24, "{threads} threads");
        get(arena.addr(), "/hanging/doc").await
    };
    let (hung, _) = arena.flood("requests to a server whose name hangs", ceiling, flood).await;
    hung.refused(504, "upstream-timeout");
}
