//! How deep a template may nest. The engine bounds brackets and blocks, but goes down one call for every operator of an
//! expression and for every `elif`: some thousands of them are more than a thread's stack has room for, and end the
//! process.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// More operators in one tag, or more `elif`s in one template, than anybody writes.
const MOST: usize = 400;

/// The line of the first tag that is too much for the engine, by its own tokens.
pub fn too_deep(text: &str) -> Option<usize> {
    let (mut operators, mut alternatives) = (0, 0);
    // Where the tokens end in a mistake, the engine ends too.
    for (token, span) in tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok) {
        match token {
            Token::BlockStart | Token::VariableStart => operators = 0,
            Token::Ident("elif") => alternatives += 1,
            Token::Ident("and" | "or" | "not" | "is" | "in" | "if") => operators += 1,
            Token::Ident(_) | Token::TemplateData(_) | Token::Str(_) | Token::String(_) => {}
            Token::Int(_) | Token::Int128(_) | Token::Float(_) | Token::Comma | Token::Colon => {}
            _ => operators += 1,
        }
        if operators > MOST || alternatives > MOST {
            return Some(usize::from(span.start_line));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_operators_are_too_deep() {
        fn check(text: &str, expected: Option<usize>) {
            assert_eq!(too_deep(text), expected, "{}", &text[..text.len().min(60)]);
        }
        let many = |text: &str| text.repeat(MOST + 1);
        for operator in ["- ", "not ", "a + ", "a and ", "a ** ", "a."] {
            check(&format!("a: 1\nb: {{{{ {}a }}}}\n", many(operator)), Some(2));
        }
        for operator in [".a", "[0]", "()", "|upper", " is defined", " if a else a"] {
            check(&format!("{{{{ a{} }}}}", many(operator)), Some(1));
        }
        check(&format!("{{% if a %}}{}{{% endif %}}", many("\n{% elif b %}")), Some(MOST + 2));
        // What looks like the end of a tag, or like a comment, and is none.
        check(&format!("{{{{ {{'a': {{}}}} {}1 }}}}", many("- ")), Some(1));
        check(&format!("{{% raw %}}{{#{{% endraw %}}{{{{ {}1 }}}}", many("- ")), Some(1));
        // In comments, texts and quotes, and in several tags, it is as much as anybody likes.
        check(&format!("{{# {} #}}{}{{{{ '{}' }}}}", many("-"), many("{ - "), many("-")), None);
        check(&many("{{ a.b - 1 }}"), None);
        check("{{ 'never ends", None);
        check("{{ \"\\", None);
    }
}
