//! Decides whether the value that a delivery sets was replaced between its acceptance and its write.

use jiff::Timestamp;

use crate::source::ContentChange;

const ACCEPTED: &str = "Accepted: ";

/// Line in the message of each trigger commit. It tells later readers which of two deliveries was accepted first.
pub fn accepted_line(accepted: Timestamp) -> String {
    format!("{ACCEPTED}{accepted}\n")
}

fn accepted_time(message: &str) -> Option<Timestamp> {
    message.lines().rev().find_map(|line| line.strip_prefix(ACCEPTED)?.trim().parse().ok())
}

/// Why a delivery is not written any more. `from`: the value when its change was computed. `now`: the value at the head. `last`:
/// the commit that set it, if that is not much older than the delivery.
pub fn superseded_reason(
    accepted: Timestamp,
    from: Option<&str>,
    now: Option<&str>,
    last: Option<&ContentChange>,
) -> Option<String> {
    let name = now.unwrap_or("nothing");
    match last.map(|last| (last.time, last.messages.iter().find_map(|message| accepted_time(message)))) {
        Some((_, Some(time))) if time > accepted => {
            Some(format!("a delivery or call that was accepted later, at {time}, already set {name}"))
        }
        // The earlier delivery was only written first.
        Some((_, Some(_))) => None,
        Some((time, None)) if time > accepted.as_second() => {
            Some(format!("a commit that is newer than the delivery of {accepted} already set {name}"))
        }
        _ if from != now => Some(format!(
            "the value is now {name}; it was {} at the time of the delivery",
            from.unwrap_or("nothing")
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_delivery_is_written() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let commit = |time, message: &str| ContentChange { time, messages: vec![message.to_owned()] };
        let check = |from: &str, now: &str, last: Option<ContentChange>, expected: Option<&str>| {
            let found = superseded_reason(at(100), Some(from), Some(now), last.as_ref());
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()), "{last:?}");
        };
        check("v1", "v1", None, None);
        check("v1", "v1", Some(commit(99, "by li")), None);
        check("v1", "v1", Some(commit(101, "by li")), Some("newer than the delivery"));
        // Committed before, pushed after.
        check(
            "v1",
            "v2",
            Some(commit(99, "by li")),
            Some("the value is now v2; it was v1 at the time of the delivery"),
        );
        check("v1", "v2", None, Some("the value is now v2"));
        // An earlier delivery written later, and the reverse.
        let of = |second| format!("pay: v1 → v2\n\n{}", accepted_line(at(second)));
        check("v1", "v2", Some(commit(120, &of(90))), None);
        check("v2", "v2", Some(commit(99, &of(110))), Some("accepted later, at 1970-01-01T00:01:50Z"));
        let merge = ContentChange { time: 120, messages: vec!["Merge".to_owned(), of(90)] };
        check("v1", "v2", Some(merge), None);
        check("v1", "v2", Some(commit(120, "Accepted: soon")), Some("newer"));
        assert!(superseded_reason(at(100), None, None, None).is_none());
        assert!(
            superseded_reason(at(100), Some("v1"), None, None).is_some_and(|it| it.contains("now nothing"))
        );
    }
}
