//! Bounds the nesting of templates. The engine bounds brackets and blocks, but recurses for every operator and every `elif`.
//! Some thousands of them overflow the stack and end the process.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// Operators in one tag, and `elif`s in one template.
const MOST_OPERATORS: usize = 400;

/// The line of the first tag over the bound, by the tokens of the engine.
pub fn first_too_deep_line(text: &str) -> Option<usize> {
    let (mut operators, mut alternatives) = (0, 0);
    // The engine stops at the same tokenizer error.
    for (token, span) in tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok) {
        match token {
            Token::BlockStart | Token::VariableStart => operators = 0,
            Token::Ident("elif") => alternatives += 1,
            Token::Ident("and" | "or" | "not" | "is" | "in" | "if") => operators += 1,
            Token::Ident(_) | Token::TemplateData(_) | Token::Str(_) | Token::String(_) => {}
            Token::Int(_) | Token::Int128(_) | Token::Float(_) | Token::Comma | Token::Colon => {}
            _ => operators += 1,
        }
        if operators > MOST_OPERATORS || alternatives > MOST_OPERATORS {
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
            assert_eq!(first_too_deep_line(text), expected, "{}", &text[..text.len().min(60)]);
        }
        let many = |text: &str| text.repeat(MOST_OPERATORS + 1);
        for operator in ["- ", "not ", "a + ", "a and ", "a ** ", "a."] {
            check(&format!("a: 1\nb: {{{{ {}a }}}}\n", many(operator)), Some(2));
        }
        for operator in [".a", "[0]", "()", "|upper", " is defined", " if a else a"] {
            check(&format!("{{{{ a{} }}}}", many(operator)), Some(1));
        }
        check(&format!("{{% if a %}}{}{{% endif %}}", many("\n{% elif b %}")), Some(MOST_OPERATORS + 2));
        // Text that looks like the end of a tag or a comment.
        check(&format!("{{{{ {{'a': {{}}}} {}1 }}}}", many("- ")), Some(1));
        check(&format!("{{% raw %}}{{#{{% endraw %}}{{{{ {}1 }}}}", many("- ")), Some(1));
        // Comments, texts, quotes and separate tags do not count.
        check(&format!("{{# {} #}}{}{{{{ '{}' }}}}", many("-"), many("{ - "), many("-")), None);
        check(&many("{{ a.b - 1 }}"), None);
        check("{{ 'never ends", None);
        check("{{ \"\\", None);
    }
}
