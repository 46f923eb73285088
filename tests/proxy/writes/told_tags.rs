//! Tags of PUTs that the proxy makes of the content that was sent, without a read (docs/tags.md, "Stored bodies of a PUT").
//! The backend is the real nginx, whose access log counts its requests.

use std::fs;

use crate::support::{
    nginx::Nginx,
    proxy::Proxy,
    raw::{get, put_if_match},
};

/// The default of `verbatim_after`.
const READ_AGAIN: usize = 32;

#[tokio::test]
async fn a_backend_that_keeps_bodies_gets_one_read_for_each_save() {
    let nginx = Nginx::start().await;
    fs::write(nginx.root().join("doc"), "the first state").expect("a file");
    let proxy = Proxy::to(nginx.addr()).start().await;
    let mut tag = get(proxy.addr(), "/doc").await.etag();
    for number in 0..READ_AGAIN + 3 {
        let before = nginx.access_lines().await.len();
        let saved = put_if_match(proxy.addr(), "/doc", &tag, format!("state {number}")).await;
        assert_eq!(saved.status, 204);
        tag = saved.etag();
        let lines = nginx.access_lines().await.split_off(before);
        let expected = ["GET /doc 200", "PUT /doc 204", "GET /doc 200"];
        assert_eq!(lines, expected[..if number < READ_AGAIN { 3 } else { 2 }], "{number}");
    }
    assert_eq!(get(proxy.addr(), "/doc").await.etag(), tag);
}
