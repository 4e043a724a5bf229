//! Clusters behind a proxy: `proxy-url` of a kubeconfig. Unit tests cover proxies of the environment.

use std::net::Ipv4Addr;
use std::sync::Arc;

use parking_lot::Mutex;
use sandbox::{Sandbox, SandboxListener, SandboxOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tutti::cluster::{Client, ClusterLink};
use tutti::model::ClusterName;

/// A proxy with CONNECT tunnels; records the head of each request.
async fn start_connect_proxy() -> (String, Arc<Mutex<Vec<String>>>) {
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
                // The tunnel ends when either side closes.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, heads)
}

/// A SOCKS proxy with user and password; records the requested addresses.
async fn start_socks_proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let places: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&places);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let noted = Arc::clone(&noted);
            tokio::spawn(async move {
                let ways = client.read_u16().await.expect("a greeting") & 0xff;
                for _ in 0..ways {
                    client.read_u8().await.expect("a way");
                }
                client.write_all(&[5, 2]).await.expect("an answer");
                let mut login = [0; 12];
                client.read_exact(&mut login).await.expect("a login");
                assert_eq!(&login, b"\x01\x02me\x07hunter2");
                client.write_all(&[1, 0]).await.expect("an answer");
                let mut head = [0; 10];
                client.read_exact(&mut head).await.expect("an address");
                let [5, 1, 0, 1, ip @ .., high, low] = head else { panic!("{head:?}") };
                let place = format!("{}:{}", Ipv4Addr::from(ip), u16::from_be_bytes([high, low]));
                noted.lock().push(place.clone());
                let mut server = TcpStream::connect(place).await.expect("the server");
                client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.expect("an answer");
                // The tunnel ends when either side closes.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, places)
}

/// Probes a cluster whose kubeconfig names this proxy.
async fn probe_through(listener: &SandboxListener, proxy: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bj1.kubeconfig");
    let server = format!("server: {}\n", listener.url());
    let behind = format!("{server}    proxy-url: {proxy}\n");
    std::fs::write(&path, listener.kubeconfig().replace(&server, &behind)).expect("a file");
    let link = ClusterLink::Kubeconfig { path, context: None };
    let client = Client::connect(ClusterName::from("bj1"), &link).await.expect("a connection");
    for _ in 0..2 {
        let version = client.probe().await.expect("an answer");
        assert!(version.starts_with("v1."), "{version}");
    }
}

#[tokio::test]
async fn kubeconfig_socks_proxy_is_used() {
    let sandbox = Sandbox::new(SandboxOptions::instant("bj1"));
    let listener = sandbox.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port");
    let (address, places) = start_socks_proxy().await;
    probe_through(&listener, &format!("socks5://me:hunter2@{address}")).await;
    assert_eq!(*places.lock(), [listener.address().to_string()]);
}

#[tokio::test]
async fn kubeconfig_proxy_url_is_used() {
    let sandbox = Sandbox::new(SandboxOptions::instant("bj1"));
    let listener = sandbox.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port");
    let (address, heads) = start_connect_proxy().await;
    probe_through(&listener, &format!("http://me:hunter2@{address}")).await;
    let heads = heads.lock();
    let [head] = heads.as_slice() else { panic!("{heads:?}") };
    assert!(head.starts_with(&format!("CONNECT {} ", listener.address())), "{head}");
    assert!(head.to_lowercase().contains("proxy-authorization: basic bwu6ahvudgvymg=="), "{head}");
}
