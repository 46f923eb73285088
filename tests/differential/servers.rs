//! The four servers, each as a child process, and connections to them.

use std::{io, net::SocketAddr, path::Path, process::Command};

use tempfile::TempDir;

use crate::{
    reading::Reading,
    scgi,
    support::{apache::apache, child::Child, nginx::Nginx, raw::Connection, response::Response},
};

pub const NAMES: [&str; 4] = ["nginx", "Apache", "Node.js", "Python"];

/// The running servers.
pub struct Servers {
    nginx: Nginx,
    others: Vec<(SocketAddr, Child)>,
    _directory: TempDir,
}

impl Servers {
    pub async fn start() -> Self {
        let application = scgi::start().await;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let nginx = Nginx::with(&format!(
            "large_client_header_buffers 4 64k; keepalive_timeout 600s;
    location / {{ scgi_pass {application}; scgi_param REQUEST_METHOD $request_method; scgi_param REQUEST_URI $request_uri; }}"
        ))
        .await;
        let place = directory.path();
        let others = vec![
            Child::on_free_port("apache", &place.join("apache.log"), |addr| apache_before(place, addr, application))
                .await,
            Child::on_free_port("node", &place.join("node.log"), |addr| script("node", "server.cjs", addr)).await,
            Child::on_free_port("python3", &place.join("python3.log"), |addr| script("python3", "server.py", addr))
                .await,
        ];
        Self { nginx, others, _directory: directory }
    }

    /// A connection to each of them, in the order of [`NAMES`].
    pub fn clients(&self) -> Vec<Client> {
        let addrs = [self.nginx.addr()].into_iter().chain(self.others.iter().map(|(addr, _)| *addr));
        NAMES.into_iter().zip(addrs).map(|(name, addr)| Client { name, addr, connection: None }).collect()
    }
}

/// Apache in front of this application, with heads of the same limits as the others.
fn apache_before(directory: &Path, addr: SocketAddr, application: SocketAddr) -> Command {
    let directives = format!(
        "KeepAlive On\nMaxKeepAliveRequests 0\nKeepAliveTimeout 600\n\
         LimitRequestFieldSize 65536\nLimitRequestLine 65536\nAllowEncodedSlashes NoDecode\nMergeSlashes Off\n\
         ProxyPass / scgi://{application}/\n<Location />\nCGIPassAuth On\nRequire all granted\n</Location>\n"
    );
    apache(directory, addr, &["proxy", "proxy_scgi"], &directives)
}

fn script(program: &str, file: &str, addr: SocketAddr) -> Command {
    let mut command = Command::new(program);
    command.arg(format!("{}/tests/differential/{file}", env!("CARGO_MANIFEST_DIR")));
    command.arg(addr.ip().to_string()).arg(addr.port().to_string());
    command
}

/// The result of a request.
#[derive(Debug)]
pub enum Told {
    Read(Reading),
    Refused(u16),
}

/// A connection that is kept, so that a request which ends elsewhere than it was sent is seen by the next one.
pub struct Client {
    pub name: &'static str,
    addr: SocketAddr,
    connection: Option<Connection>,
}

impl Client {
    pub async fn ask(&mut self, bytes: &[u8]) -> Told {
        let is_kept = self.connection.is_some();
        let response = match self.exchange(bytes).await {
            // It may close a kept connection at any time.
            Err(_) if is_kept => self.exchange(bytes).await.unwrap_or_else(|error| panic!("{}: {error}", self.name)),
            Err(error) => panic!("{}: {error}", self.name),
            Ok(response) => response,
        };
        if response.status != 200 {
            return Told::Refused(response.status);
        }
        let reading = Reading::told(&response.body);
        Told::Read(if matches!(self.name, "nginx" | "Apache") { reading.of_cgi() } else { reading })
    }

    async fn exchange(&mut self, bytes: &[u8]) -> io::Result<Response> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.addr).await,
        };
        connection.try_send_bytes(bytes).await?;
        let response = connection.try_read_response().await?;
        if response.status == 200 && !response.headers.has_token("connection", "close") {
            self.connection = Some(connection);
        }
        Ok(response)
    }
}
