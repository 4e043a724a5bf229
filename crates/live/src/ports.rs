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

/// A free port that this process has not chosen before.
pub fn free() -> Result<u16, Error> {
    first_free((0..COUNT).map(|_| next()))
}

fn first_free(mut ports: impl Iterator<Item = u16>) -> Result<u16, Error> {
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).ok_or(Error::NoPort)
}

fn next() -> u16 {
    // Test processes that run side by side begin at different places.
    let begin = process::id().wrapping_mul(997) % u32::from(COUNT);
    let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed) % COUNT);
    FIRST + ((begin + step) % u32::from(COUNT)) as u16
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
        // Another process of the machine may take one meanwhile.
        let bound =
            ports.iter().filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, **port)).is_ok()).count();
        assert!(bound > 15, "{bound} of {}", ports.len());
    }

    #[test]
    fn a_taken_port_is_passed_over() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = listener.local_addr().unwrap().port();
        // Several, for another process of the machine may take one meanwhile.
        let others: Vec<_> = (0..5).map(|_| free().unwrap()).collect();
        let chosen = first_free([taken].into_iter().chain(others.iter().copied())).unwrap();
        assert!(others.contains(&chosen), "{chosen} is none of {others:?}; {taken} is taken");
    }
}
