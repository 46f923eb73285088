//! Tests of the number of writes for answers that are ready at the same time.

use futures_util::future::join_all;
use http::Request;
use tokio::io::duplex;

use super::{tapped::Tap, *};

/// The number of writes to a connection.
#[derive(Clone, Debug, Default)]
struct Writes(Arc<AtomicUsize>);

impl Tap for Writes {
    fn wrote(&mut self, _bytes: usize) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the number of writes for eight answers with bodies of this length.
async fn writes_of_eight(length: usize) -> usize {
    let (client, server) = duplex(1 << 20);
    let writes = Writes::default();
    let (watch, handshake) = begin(Tapped::new(server, writes.clone()), &options(65_536));
    let (server, client) = tokio::join!(handshake, h2::client::handshake(client));
    let (mut server, (mut client, connection)) = (server.expect("a client"), client.expect("a server"));
    tokio::spawn(connection);
    let running = Running::default();
    let ask =
        |_| client.send_request(Request::get("http://a/").body(()).expect("a request"), true).expect("a stream").0;
    let answers: Vec<_> = (0..8).map(ask).collect();
    let mut asked = Vec::new();
    for _ in 0..8 {
        asked.push(next(&mut server, &watch, &running).await.expect("a request").expect("a good one").1);
    }
    let before = writes.0.load(Ordering::Relaxed);
    for response in &mut asked {
        let mut body = response.send_response(Response::new(()), false).expect("a stream");
        body.send_data(Bytes::from(vec![b'x'; length]), true).expect("a stream");
    }
    let received = join_all(answers.into_iter().map(async |answer| {
        let mut body = answer.await.expect("an answer").into_body();
        let mut bytes = 0;
        while let Some(piece) = body.data().await {
            bytes += piece.expect("a body").len();
        }
        bytes
    }));
    tokio::select! {
        _ = next(&mut server, &watch, &running) => panic!("nothing more is asked"),
        lengths = received => assert_eq!(lengths, [length; 8]),
    }
    writes.0.load(Ordering::Relaxed) - before
}

/// Each write is a call of the operating system, and over TLS a record.
#[tokio::test]
async fn answers_that_are_ready_together_share_writes() {
    for (length, writes) in [(1, 1), (400, 1), (1_024, 1), (1_900, 1), (3_000, 2), (7_500, 4)] {
        assert_eq!(writes_of_eight(length).await, writes, "{length}");
    }
}
