//! Width of the terminal, and lists of names that fit into a line.

use console::Term;

const DEFAULT_COLUMNS: usize = 120;

/// Columns from `COLUMNS`, else the terminal, else 120.
pub fn terminal_columns() -> usize {
    detected_columns().unwrap_or(DEFAULT_COLUMNS)
}

/// The same without the default; `None` for files and pipes.
pub fn detected_columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let of_terminal = || {
        let term = Term::stdout();
        let size = if term.is_term() { term.size_checked() } else { None };
        size.map(|(_, columns)| usize::from(columns))
    };
    said.filter(|columns| *columns > 0).or_else(of_terminal)
}

/// The first names, and the number of others.
pub fn first_names(names: &[String], most: usize) -> String {
    match names.len().saturating_sub(most) {
        // A single name is as short as its count.
        0 | 1 => names.join(", "),
        more => format!("{} and {more} more", names[..most].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_counted() {
        let names: Vec<String> = (1..=5).map(|number| format!("c{number}")).collect();
        assert_eq!(first_names(&names, 3), "c1, c2, c3 and 2 more");
        assert_eq!(first_names(&names, 4), "c1, c2, c3, c4, c5");
    }
}
