//! The completion indexes of a job as text, such as `0,2-4`.

use std::collections::BTreeSet;

/// Those of a text like `0,2-4` that are below the number of completions.
pub(super) fn parse_indexes(text: &str, completions: i64) -> BTreeSet<i64> {
    let mut indexes = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            // the status is client input and may hold any value
            indexes.extend(first.max(0)..=last.min(completions - 1));
        }
    }
    indexes
}

/// `0,1`, and `0-2` for three or more in a row.
pub(super) fn format_indexes(indexes: &BTreeSet<i64>) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for index in indexes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let text = |(first, last): (i64, i64)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_in_a_row_are_a_range() {
        let check = |indexes: &[i64], expected: &str| {
            assert_eq!(format_indexes(&indexes.iter().copied().collect()), expected);
        };
        check(&[], "");
        check(&[0, 1], "0,1");
        check(&[0, 1, 2, 5], "0-2,5");
    }
}
