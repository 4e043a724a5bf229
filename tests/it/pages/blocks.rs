//! Finds the fenced blocks of a page.

/// Programs that must not start a line of a block without a language.
const PROGRAMS: [&str; 18] = [
    "argocd", "cargo", "cat", "cd", "cp", "curl", "echo", "export", "flux", "git", "grep", "helm", "kubectl",
    "mkdir", "rm", "sed", "tutti", "until",
];

#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// `sh`
    Run,
    /// `sh` with a reason not to run it, which may be empty.
    NotRun(String),
    /// `console`
    Transcript,
    /// Any other language, or none.
    Other(String),
    LostComment,
    Unfinished,
}

#[derive(Debug)]
pub struct Block {
    pub kind: Kind,
    /// The line of its fence, from 1.
    pub line: usize,
    pub lines: Vec<String>,
}

impl Block {
    /// The commands, without prompts and comments.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        let is_transcript = self.kind == Kind::Transcript;
        self.lines
            .iter()
            .filter_map(move |line| if is_transcript { line.strip_prefix("$ ") } else { Some(line) })
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    }
}

pub fn of(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut comment: Option<(usize, String)> = None;
    let mut lines = text.lines().zip(1..);
    while let Some((text, line)) = lines.next() {
        let Some(language) = text.strip_prefix("```") else {
            blocks.extend(comment.take().map(lost));
            comment = not_run(text).map(|reason| (line, reason));
            continue;
        };
        let kind = match (language, comment.take()) {
            ("sh", Some((_, reason))) => Kind::NotRun(reason),
            ("sh", None) => Kind::Run,
            (language, comment) => {
                blocks.extend(comment.map(lost));
                if language == "console" { Kind::Transcript } else { Kind::Other(language.to_owned()) }
            }
        };
        let mut block = Block { kind: Kind::Unfinished, line, lines: Vec::new() };
        for (text, _) in lines.by_ref() {
            if text == "```" {
                block.kind = kind;
                break;
            }
            block.lines.push(text.to_owned());
        }
        blocks.push(block);
    }
    blocks.extend(comment.map(lost));
    blocks
}

fn lost((line, _): (usize, String)) -> Block {
    Block { kind: Kind::LostComment, line, lines: Vec::new() }
}

fn not_run(line: &str) -> Option<String> {
    let comment = line.strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let reason = comment.strip_prefix("not run")?;
    Some(reason.strip_prefix(':').unwrap_or("").trim().to_owned())
}

/// Mistakes that keep a block from being run although a reader would run it.
pub fn faults(blocks: &[Block]) -> Vec<String> {
    let fault = |block: &Block| {
        let what = match &block.kind {
            Kind::Run => return None,
            Kind::NotRun(reason) if reason.is_empty() => "not run, without a reason".to_owned(),
            Kind::NotRun(_) => return None,
            Kind::Transcript if block.commands().next().is_some() => return None,
            Kind::Transcript => "no line begins with `$ `".to_owned(),
            Kind::Other(language) if matches!(&**language, "bash" | "shell") => {
                format!("write `sh` instead of `{language}`")
            }
            Kind::Other(language) => {
                let is_output = language == "text";
                let may_be = matches!(&**language, "" | "text");
                let is_command = |line: &&String| {
                    line.starts_with("$ ")
                        || (!is_output && line.split(' ').next().is_some_and(|it| PROGRAMS.contains(&it)))
                };
                let command = block.lines.iter().filter(|_| may_be).find(is_command)?;
                format!("a block of commands without a language: {command}")
            }
            Kind::LostComment => "no block `sh` follows".to_owned(),
            Kind::Unfinished => "the block has no end".to_owned(),
        };
        Some(format!("line {}: {what}", block.line))
    };
    blocks.iter().filter_map(fault).collect()
}
