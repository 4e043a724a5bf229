//! Estimates the cost of a regular expression from its text, and translates RE2 syntax.

/// A Unicode class compiles to hundreds of states.
const STATES_OF_A_CLASS: f64 = 10_000.0;

/// In steps: the cost to compile it, and its possible simultaneous states.
#[derive(Clone, Copy, Debug)]
pub struct RegexCost {
    pub compile_steps: f64,
    pub states: f64,
}

impl RegexCost {
    /// The library refuses larger patterns.
    pub fn largest() -> Self {
        Self { compile_steps: 2_000_000.0, states: 300_000.0 }
    }

    pub fn of(text: &str) -> Self {
        let largest = Self::largest();
        let mut counts = 1.0;
        for part in text.split('{').skip(1) {
            let inside = part.split('}').next().unwrap_or_default();
            let numbers = inside.split(',').filter_map(|number| number.trim().parse::<u32>().ok());
            counts *= f64::from(numbers.max().unwrap_or(1).max(1));
        }
        let is_class =
            |letter: &str| letter.starts_with(|it: char| it.is_ascii_uppercase() || "dpsw".contains(it));
        let classes = number(text.split('\\').skip(1).filter(|rest| is_class(rest)).count());
        let places = (number(text.len()) * counts).min(largest.states);
        let compiling = 1000.0 + 50.0 * places + STATES_OF_A_CLASS * classes * counts;
        Self { compile_steps: compiling.min(largest.compile_steps), states: places }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bound need not be exact")]
fn number(count: usize) -> f64 {
    count as f64
}

/// Translates a pattern from RE2, which API servers use. There `\d`, `\w` and `\s` are ASCII only, and `[`, `&`, `-` and `~`
/// within a class are literal.
pub fn translate_re2(pattern: &str) -> String {
    let mut found = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut is_class = false;
    while let Some(letter) = rest.chars().next() {
        let (before, after) = (rest, rest.get(letter.len_utf8()..).unwrap_or_default());
        rest = after;
        match letter {
            '\\' => rest = translate_escape(after, is_class, &mut found),
            '[' if is_class => match before.strip_prefix("[:").and_then(|inside| inside.split_once(":]")) {
                Some((name, after)) => {
                    found.push_str(&format!("[:{name}:]"));
                    rest = after;
                }
                None => found.push_str("\\["),
            },
            '[' => {
                is_class = true;
                found.push('[');
                if let Some(after) = rest.strip_prefix('^') {
                    found.push('^');
                    rest = after;
                }
                // A leading `]` does not end the class.
                if let Some(after) = rest.strip_prefix(']') {
                    found.push_str("\\]");
                    rest = after;
                }
            }
            ']' if is_class => {
                is_class = false;
                found.push(']');
            }
            '&' | '~' if is_class => found.extend(['\\', letter]),
            '-' if is_class && rest.starts_with('-') => found.push_str("\\-"),
            '{' if !is_class && !is_count(rest) => found.push_str("\\{"),
            other => found.push(other),
        }
    }
    found
}

/// Translates an escape and returns the rest.
fn translate_escape<'p>(after: &'p str, is_class: bool, found: &mut String) -> &'p str {
    let Some(letter) = after.chars().next() else {
        found.push('\\');
        return after;
    };
    let rest = after.get(letter.len_utf8()..).unwrap_or_default();
    let members = match letter.to_ascii_lowercase() {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\x0c\\r\\x20",
        _ => "",
    };
    match letter {
        'd' | 'w' | 's' if is_class => found.push_str(members),
        'd' | 'w' | 's' => found.push_str(&format!("[{members}]")),
        'D' | 'W' | 'S' => found.push_str(&format!("[^{members}]")),
        'b' if !is_class => found.push_str("(?-u:\\b)"),
        // Braces contain a name or a number.
        'p' | 'P' | 'x' if rest.starts_with('{') => {
            let end = rest.find('}').map_or(rest.len(), |at| at + 1);
            let (name, rest) = rest.split_at(end);
            found.extend(['\\', letter]);
            found.push_str(name);
            return rest;
        }
        'Q' => {
            let (text, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            found.push_str(&regex::escape(text));
            return rest;
        }
        other => found.extend(['\\', other]),
    }
    rest
}

/// Matches `{2}`, `{2,}`, `{2,5}`; anything else is literal.
fn is_count(after: &str) -> bool {
    let Some((inside, _)) = after.split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let is_number = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

/// The worst case: each state of the pattern for each byte.
pub fn match_cost(text: &str, pattern: RegexCost) -> f64 {
    const PLACES: f64 = 256.0;
    #[expect(clippy::cast_precision_loss, reason = "a bound need not be exact")]
    let letters = 1.0 + text.len() as f64;
    1.0 + letters * (1.0 + pattern.states) / PLACES
}

pub fn compile_cost(pattern: &str) -> u64 {
    whole_steps(RegexCost::of(pattern).compile_steps)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive bound")]
pub fn whole_steps(cost: f64) -> u64 {
    cost as u64
}
