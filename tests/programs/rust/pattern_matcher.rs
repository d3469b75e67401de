//! A matcher for simple regular expressions: `.`, `*`, `^` and `$`, after Rob Pike.

struct Pattern(Vec<char>);

impl Pattern {
    fn new(text: &str) -> Self {
        Pattern(text.chars().collect())
    }

    fn is_match(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        match self.0.split_first() {
            Some(('^', rest)) => here(rest, &text),
            _ => (0..=text.len()).any(|start| here(&self.0, &text[start..])),
        }
    }
}

fn here(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => true,
        [c, '*', rest @ ..] => star(*c, rest, text),
        ['$'] => text.is_empty(),
        [c, rest @ ..] => match text {
            [first, tail @ ..] if *c == '.' || c == first => here(rest, tail),
            _ => false,
        },
    }
}

fn star(c: char, pattern: &[char], text: &[char]) -> bool {
    let run = text.iter().take_while(|t| c == '.' || **t == c).count();
    (0..=run).any(|n| here(pattern, &text[n..]))
}

fn main() {
    let words = ["cat", "concat", "coat", "caaat", "dog", "ct"];
    for pattern in ["ca*t", "^c.*t$", "o.", "^d", "x"] {
        let compiled = Pattern::new(pattern);
        let found: Vec<_> = words.iter().filter(|word| compiled.is_match(word)).collect();
        println!("{pattern:<8} {found:?}");
    }
}
