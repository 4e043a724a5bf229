//! Clusters behind a proxy: `proxy-url` of a kubeconfig.

use std::net::Ipv4Addr;
use std::sync::Arc;

use parking_lot::Mutex;
use sandbox::{Sandbox, SandboxOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tutti::cluster::{Client, Link};
use tutti::model::ClusterName;

/// A proxy that opens tunnels (CONNECT); notes the head of each request.
async fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let noted = Arc::clone(&noted);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.expect("a request"));
                }
                let head = String::from_utf8(head).expect("text");
                let place = head.split_whitespace().nth(1).expect("an address").to_owned();
                noted.lock().push(head);
                let mut server = TcpStream::connect(place).await.expect("the server");
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("an answer");
                // It ends with either side.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, heads)
}

#[tokio::test]
async fn a_cluster_is_reached_through_the_proxy_of_its_kubeconfig() {
    let sandbox = Sandbox::new(SandboxOptions::instant("bj1"));
    let listener = sandbox.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port");
    let (address, heads) = proxy().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bj1.kubeconfig");
    let server = format!("server: {}\n", listener.url());
    let behind = format!("{server}    proxy-url: http://me:hunter2@{address}\n");
    std::fs::write(&path, listener.kubeconfig().replace(&server, &behind)).expect("a file");

    let link = Link::Kubeconfig { path, context: None };
    let client = Client::connect(ClusterName::from("bj1"), &link).await.expect("a connection");
    let version = client.probe().await.expect("an answer");
    assert!(version.starts_with("v1."), "{version}");
    let heads = heads.lock();
    let [head] = heads.as_slice() else { panic!("{heads:?}") };
    assert!(head.starts_with(&format!("CONNECT {} ", listener.address())), "{head}");
    assert!(head.to_lowercase().contains("proxy-authorization: basic bwu6ahvudgvymg=="), "{head}");
}
