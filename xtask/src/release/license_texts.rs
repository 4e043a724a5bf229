//! Texts of licences: the usual ones, and which licence a text is.

/// The usual texts, for a crate that names a licence and brings no file with it. Empty for others than these two.
pub fn standard_texts(name: &str, license: &str, authors: &str) -> Vec<String> {
    let authors = if authors.is_empty() { format!("the authors of {name}") } else { authors.to_owned() };
    let mut texts = Vec::new();
    if license.split([' ', '(', ')']).any(|word| word == "MIT") {
        texts.push(format!("MIT License\n\nCopyright (c) {authors}\n\n{MIT}"));
    }
    if license.split([' ', '(', ')']).any(|word| word == "Apache-2.0") {
        texts.push(include_str!("../../../LICENSE").to_owned());
    }
    texts
}

/// Which licence a text is, by a phrase that only it has. Go modules say it nowhere else.
pub fn recognized(text: &str) -> Option<&'static str> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is = |phrase: &str| words.contains(phrase);
    let redistribution = is("Redistribution and use in source and binary forms");
    let known = [
        ("Apache-2.0", is("Apache License Version 2.0")),
        ("MPL-2.0", is("Mozilla Public License Version 2.0") || is("Mozilla Public License, version 2.0")),
        (
            "BSD-3-Clause",
            redistribution && (is("Neither the name") || is("The names of its contributors may not")),
        ),
        ("BSD-2-Clause", redistribution),
        (
            "ISC",
            is("Permission to use, copy, modify, and/or distribute this software for any purpose")
                || is("Permission to use, copy, modify, and distribute this software for any purpose"),
        ),
        ("MIT", is("Permission is hereby granted, free of charge, to any person obtaining a copy")),
    ];
    known.iter().find(|(_, is)| *is).map(|(name, _)| *name)
}

const MIT: &str = "\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the \"Software\"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_recognized() {
        let own = include_str!("../../../LICENSE");
        assert_eq!(recognized(own), Some("Apache-2.0"));
        assert_eq!(recognized(MIT), Some("MIT"));
        let bsd = "Redistribution and use in source and\nbinary forms, with or without";
        assert_eq!(recognized(bsd), Some("BSD-2-Clause"));
        assert_eq!(recognized(&format!("{bsd}\nNeither the name of")), Some("BSD-3-Clause"));
        assert_eq!(recognized("Copyright (c) 2026"), None);
    }

    #[test]
    fn standard_texts_are_of_the_named_licences() {
        assert_eq!(standard_texts("a", "MIT OR Apache-2.0", "").len(), 2);
        assert!(standard_texts("a", "MIT", "")[0].contains("Copyright (c) the authors of a"));
        assert!(standard_texts("a", "GPL-3.0-only", "").is_empty());
    }
}
