//! A `known_hosts` file (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"), as far as plain host names go.

const STANDARD_PORT: u16 = 22;

/// The port of an ssh address.
pub(super) fn port_of(url: &str) -> u16 {
    let authority = url.strip_prefix("ssh://").and_then(|rest| rest.split('/').next());
    authority
        .and_then(|text| text.rsplit_once(':'))
        .and_then(|(_, port)| port.parse().ok())
        .unwrap_or(STANDARD_PORT)
}

/// Checks that the file lists this key for this host. Hashed host names give an error.
pub(super) fn check_known_host(text: &str, host: &str, port: u16, key: &[u8]) -> Result<(), &'static str> {
    let key = base64(key);
    let name = if port == STANDARD_PORT { host.to_owned() } else { format!("[{host}]:{port}") };
    let (mut trusted, mut hashed, mut other) = (false, false, false);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let Some(mut names) = words.next() else { continue };
        let revoked = names == "@revoked";
        if names.starts_with('@') {
            // `@cert-authority` would need a certificate, which libgit2 does not hand out.
            let Some(next) = words.next().filter(|_| revoked) else { continue };
            names = next;
        }
        hashed |= names.starts_with("|1|");
        if !names.split(',').any(|known| known == name) {
            continue;
        }
        match (words.nth(1) == Some(&key), revoked) {
            (true, true) => return Err("its key is revoked"),
            (true, false) => trusted = true,
            (false, _) => other |= !revoked,
        }
    }
    match (trusted, other, hashed) {
        (true, ..) => Ok(()),
        (_, true, _) => Err("its key is not the known one"),
        (_, _, true) => {
            Err("it is not listed, and hashed names are not supported (use ssh-keyscan without -H)")
        }
        _ => Err("it is not listed"),
    }
}

/// RFC 4648, with padding: keys are compared in the form the file has them in.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let number = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let present = digit <= group.len();
            let index = (number >> (18 - 6 * digit)) & 63;
            text.push(if present { char::from(DIGITS[index as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_standard() {
        let check = |text: &str, expected: &str| assert_eq!(base64(text.as_bytes()), expected);
        check("", "");
        check("f", "Zg==");
        check("fo", "Zm8=");
        check("foo", "Zm9v");
        check("foobar", "Zm9vYmFy");
    }

    #[test]
    fn only_listed_keys_are_trusted() {
        let file = "# ours\ngit.example.com,10.0.0.1 ssh-ed25519 Zm9v li@laptop\n[git.example.com]:2222 ssh-rsa Zm9vYmFy\n\
                    @revoked old.example.com ssh-rsa Zm9v\n";
        let check_host = |host: &str, port: u16, key: &str, expected: Result<(), &str>| {
            assert_eq!(check_known_host(file, host, port, key.as_bytes()), expected, "{host}:{port}");
        };
        check_host("git.example.com", 22, "foo", Ok(()));
        check_host("10.0.0.1", 22, "foo", Ok(()));
        check_host("git.example.com", 2222, "foobar", Ok(()));
        check_host("git.example.com", 22, "bar", Err("its key is not the known one"));
        check_host("git.example.com", 23, "foo", Err("it is not listed"));
        check_host("old.example.com", 22, "foo", Err("its key is revoked"));
        assert!(
            check_known_host("|1|abc=|def= ssh-rsa Zm9v", "a", 22, b"foo")
                .is_err_and(|text| text.contains("hashed"))
        );
    }

    #[test]
    fn ports() {
        let check = |url: &str, expected: u16| assert_eq!(port_of(url), expected, "{url}");
        check("ssh://git@host:2222/a.git", 2222);
        check("ssh://git@host/a.git", 22);
        check("git@host:a.git", 22);
    }
}
