use crate::health::{LOG_BYTES, last_line};
use crate::model::SecretValues;

#[track_caller]
fn check(log: &[u8], expected: Option<&str>) {
    assert_eq!(last_line(log, &SecretValues::default()).as_deref(), expected);
}

#[test]
fn last_line_is_returned() {
    check(b"fatal: no such table\n", Some("fatal: no such table"));
    check(b"starting\nfatal: no such table", Some("fatal: no such table"));
    check(b"fatal: no such table\n \n\n", Some("fatal: no such table"));
    check(b"", None);
    check(b" \n\t\r\n", None);
    check(b"10 %\r20 %\rout of space\r\n", Some("out of space"));
}

#[test]
fn line_has_no_control_characters() {
    check(b"\x1b[1;31mERROR\x1b[0m\tno   such\x00 table\x07", Some("ERROR no such table"));
    // A title in both forms; a character set; a single letter after an escape; one without an end.
    check(b"\x1b]0;mine\x07a\x1b]8;;http://x\x1b\\b\x1b(Bc\x1bMd", Some("abcd"));
    check(b"a\x1b]0;mine", Some("a"));
    check(b"\x1b[31m\x1b[0m", None);
    // Eight-bit controls, and invalid UTF-8.
    check("a\u{9b}31mb".as_bytes(), Some("a31mb"));
    check(b"a\xffb", Some("a\u{fffd}b"));
    // Characters that reverse the text or are invisible.
    check("a\u{202e}b\u{2066}c\u{200b}d\u{feff}".as_bytes(), Some("abcd"));
}

#[test]
fn a_long_line_is_cut_between_characters() {
    check("é".repeat(200).as_bytes(), Some(&"é".repeat(200)));
    check("é".repeat(201).as_bytes(), Some(&format!("{}…", "é".repeat(200))));
    // As the sender cuts it: in the middle of a character.
    let long = format!("a{}", "é".repeat(LOG_BYTES));
    check(&long.as_bytes()[..LOG_BYTES], Some(&format!("a{}…", "é".repeat(199))));
    let short = format!("{}é", "\u{1b}[31m".repeat(LOG_BYTES / 5));
    check(&short.as_bytes()[..LOG_BYTES], None);
}

/// It reports that with the status of a log.
#[test]
fn missing_log_has_no_last_line() {
    check(b"unable to retrieve container logs for containerd://3222b0321fda", None);
    check(b"failed to try resolving symlinks in path \"/var/log/pods/a/b/0.log\": lstat: no such file or directory", None);
    check(b"failed to open log file \"/var/log/pods/a/b_0.log\": no such file or directory\n", None);
}

/// A virtual node may not support `tailLines`: it sends the log from its first line.
#[test]
fn cut_log_has_no_last_line() {
    check(&b"starting\n".repeat(1 + LOG_BYTES / 9)[..LOG_BYTES], None);
}
