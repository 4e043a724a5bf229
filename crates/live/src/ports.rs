//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::Error;

// Below the range from which systems number outgoing connections: a port stays ours between the choice and its use, and
// while an API server is stopped.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port that nobody listens on and that this process has not chosen before.
pub(crate) fn free() -> Result<u16, Error> {
    // Test processes that run side by side begin at different places.
    let offset = (process::id().wrapping_mul(997) % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + ((u32::from(offset) + u32::from(step)) % u32::from(COUNT)) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Error::NoPort)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_can_be_bound() {
        let ports: Vec<_> = (0..20).map(|_| free().unwrap()).collect();
        let mut distinct = ports.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), ports.len(), "{ports:?}");
        for port in ports {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }

    #[test]
    fn a_taken_port_is_passed_over() {
        let port = free().unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        NEXT.fetch_sub(1, Ordering::Relaxed);
        assert_ne!(free().unwrap(), port);
    }
}
