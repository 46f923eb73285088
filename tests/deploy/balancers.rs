//! The examples of balancers, in the real `HAProxy` and nginx.

use std::{fs, net::SocketAddr, process::Command};

use super::{
    file,
    support::{
        admin::start,
        backend::{Answer, Backend},
        child::Child,
        nginx::Nginx,
        ports,
        proxy::Proxy,
        raw::{get, put},
        wait::until_some,
    },
};

/// How many requests show that no server is left out, and that none is asked that is down.
const REQUESTS: usize = 8;

/// An example with the addresses of this test in place of its own, each of which it has once.
fn example(name: &str, addresses: &[(&str, String)]) -> String {
    let mut text = fs::read_to_string(file("deploy/balancer").join(name)).expect("the example");
    for (from, to) in addresses {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text = text.replace(from, to);
    }
    text
}

async fn answers(addr: SocketAddr) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..REQUESTS {
        statuses.push(get(addr, "/doc").await.status);
    }
    statuses
}

#[tokio::test]
async fn haproxy_asks_each_proxy_whether_it_is_ready() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let (first, first_admin) = start(&Proxy::to(backend.addr())).await;
    let (second, second_admin) = start(&Proxy::to(backend.addr())).await;
    let (directory, listen) = (tempfile::tempdir().expect("a directory"), ports::free());
    let text = example(
        "haproxy.cfg",
        &[
            ("127.0.0.1:8000", listen.to_string()),
            (
                "127.0.0.1:8080 port 9901",
                format!("{} addr {} port {}", first.addr(), first_admin.ip(), first_admin.port()),
            ),
            (
                "127.0.0.1:8081 port 9902",
                format!("{} addr {} port {}", second.addr(), second_admin.ip(), second_admin.port()),
            ),
            ("inter 2s", "inter 100ms".to_owned()),
        ],
    );
    let path = directory.path().join("haproxy.cfg");
    fs::write(&path, text).expect("a file");
    let mut command = Command::new("haproxy");
    command.args(["-db", "-f"]).arg(&path);
    let mut haproxy = Child::spawn("haproxy", &mut command, directory.path().join("log"));
    haproxy.accepts(listen).await.unwrap_or_else(|status| panic!("it ended: {status}"));
    assert_eq!(answers(listen).await, [200; REQUESTS]);
    drop(first);
    let mut left = None;
    while left != Some([200; REQUESTS].to_vec()) {
        left = Some(answers(listen).await);
    }
    assert_eq!(get(second.addr(), "/doc").await.text(), "one");
}

/// The two servers break the connection of each write. nginx would send the write to the other one.
#[tokio::test]
async fn nginx_sends_no_write_twice() {
    let servers = [Backend::start().await, Backend::start().await];
    for server in &servers {
        server.put("/doc", "one");
        server.always("PUT", "/doc", |_| Answer::close());
    }
    let listen = ports::free();
    let text = example(
        "nginx.conf",
        &[
            ("127.0.0.1:8000", listen.to_string()),
            ("127.0.0.1:8080", servers[0].addr().to_string()),
            ("127.0.0.1:8081", servers[1].addr().to_string()),
        ],
    );
    let nginx = Nginx::beside(&text).await;
    assert_eq!(
        until_some("nginx to listen", || std::net::TcpStream::connect(listen).ok()).await.peer_addr().ok(),
        Some(listen)
    );
    assert_eq!(answers(listen).await, [200; REQUESTS]);
    assert_eq!(put(listen, "/doc", &[], "two").await.status, 502);
    assert_eq!(servers.iter().map(|server| server.count("PUT", "/doc")).sum::<usize>(), 1);
    drop(nginx);
}
