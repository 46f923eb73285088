//! The real `haproxy`, whose plain health check asks the admin listener.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    process::Command,
};

use super::support::{admin::start, backend::Backend, child::Child, ports, proxy::Proxy, raw::get, wait::until_some};

/// The last health check of the server `proxy`: its result and the status that it was told.
fn last_check(socket: &Path) -> Option<(String, String)> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.write_all(b"show stat\n").ok()?;
    let mut table = String::new();
    stream.read_to_string(&mut table).ok()?;
    let mut lines = table.lines().map(|line| line.trim_start_matches("# ").split(',').collect::<Vec<_>>());
    let names = lines.next()?;
    let server = lines.find(|line| line.get(1) == Some(&"proxy"))?;
    let column = |name| server.get(names.iter().position(|other| *other == name)?).map(|value| (*value).to_owned());
    // "* " stands before the result of a check that is in flight, which is that of the one before.
    let result = column("check_status")?.trim_start_matches("* ").to_owned();
    (!result.is_empty() && result != "INI").then_some((result, column("check_code")?))
}

/// Nothing is configured but `option httpchk`: it sends `OPTIONS / HTTP/1.0` without `Host`.
#[tokio::test]
async fn the_plain_check_of_haproxy_finds_the_proxy_ready() {
    let backend = Backend::start().await;
    backend.put("/doc", "one");
    let (proxy, admin) = start(&Proxy::to(backend.addr())).await;
    let (directory, listen) = (tempfile::tempdir().expect("a directory"), ports::free());
    let (socket, path) = (directory.path().join("stats"), directory.path().join("haproxy.cfg"));
    let configuration = format!(
        "global\n  stats socket {}\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  \
         timeout server 5s\nlisten documents\n  bind {listen}\n  option httpchk\n  \
         server proxy {} check addr {} port {} inter 100ms\n",
        socket.display(),
        proxy.addr(),
        admin.ip(),
        admin.port()
    );
    fs::write(&path, configuration).expect("a file");
    let mut command = Command::new("haproxy");
    command.args(["-db", "-f"]).arg(&path);
    let mut haproxy = Child::spawn("haproxy", &mut command, directory.path().join("log"));
    haproxy.accepts(listen).await.unwrap_or_else(|status| panic!("it ended: {status}"));
    let last = until_some("HAProxy to have asked", || last_check(&socket)).await;
    assert_eq!(last, ("L7OK".to_owned(), "200".to_owned()));
    assert_eq!(get(listen, "/doc").await.text(), "one");
}
