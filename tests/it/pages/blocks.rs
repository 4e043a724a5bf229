//! Finds the fenced blocks of a page.

/// Programs that must not start a line of a block without a language.
const PROGRAMS: [&str; 18] = [
    "argocd", "cargo", "cat", "cd", "cp", "curl", "echo", "export", "flux", "git", "grep", "helm", "kubectl",
    "mkdir", "rm", "sed", "tutti", "until",
];

#[derive(Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// `sh`
    Run,
    /// `sh` with a reason not to run it, which may be empty.
    NotRun(String),
    /// `console`
    Transcript,
    /// Any other language, or none.
    Other(String),
    CommentWithoutBlock,
    WithoutEnd,
}

#[derive(Debug)]
pub struct PageBlock {
    pub kind: BlockKind,
    /// The line of its fence, from 1.
    pub line: usize,
    pub lines: Vec<String>,
}

impl PageBlock {
    /// The commands, without prompts and comments.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        let is_transcript = self.kind == BlockKind::Transcript;
        self.lines
            .iter()
            .filter_map(move |line| if is_transcript { line.strip_prefix("$ ") } else { Some(line) })
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    }
}

pub fn blocks_of_page(text: &str) -> Vec<PageBlock> {
    let mut blocks = Vec::new();
    let mut comment: Option<(usize, String)> = None;
    let mut lines = text.lines().zip(1..);
    while let Some((text, line)) = lines.next() {
        let Some(language) = text.strip_prefix("```") else {
            blocks.extend(comment.take().map(comment_without_block));
            comment = not_run_reason(text).map(|reason| (line, reason));
            continue;
        };
        let kind = match (language, comment.take()) {
            ("sh", Some((_, reason))) => BlockKind::NotRun(reason),
            ("sh", None) => BlockKind::Run,
            (language, comment) => {
                blocks.extend(comment.map(comment_without_block));
                if language == "console" {
                    BlockKind::Transcript
                } else {
                    BlockKind::Other(language.to_owned())
                }
            }
        };
        let mut block = PageBlock { kind: BlockKind::WithoutEnd, line, lines: Vec::new() };
        for (text, _) in lines.by_ref() {
            if text == "```" {
                block.kind = kind;
                break;
            }
            block.lines.push(text.to_owned());
        }
        blocks.push(block);
    }
    blocks.extend(comment.map(comment_without_block));
    blocks
}

fn comment_without_block((line, _): (usize, String)) -> PageBlock {
    PageBlock { kind: BlockKind::CommentWithoutBlock, line, lines: Vec::new() }
}

fn not_run_reason(line: &str) -> Option<String> {
    let comment = line.strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let reason = comment.strip_prefix("not run")?;
    Some(reason.strip_prefix(':').unwrap_or("").trim().to_owned())
}

/// Mistakes that keep a block from being run although a reader would run it.
pub fn block_mistakes(blocks: &[PageBlock]) -> Vec<String> {
    let fault = |block: &PageBlock| {
        let what = match &block.kind {
            BlockKind::Run => return None,
            BlockKind::NotRun(reason) if reason.is_empty() => "not run, without a reason".to_owned(),
            BlockKind::NotRun(_) => return None,
            BlockKind::Transcript if block.commands().next().is_some() => return None,
            BlockKind::Transcript => "no line begins with `$ `".to_owned(),
            BlockKind::Other(language) if matches!(&**language, "bash" | "shell") => {
                format!("write `sh` instead of `{language}`")
            }
            BlockKind::Other(language) => {
                let is_output = language == "text";
                let may_be = matches!(&**language, "" | "text");
                let is_command = |line: &&String| {
                    line.starts_with("$ ")
                        || (!is_output && line.split(' ').next().is_some_and(|it| PROGRAMS.contains(&it)))
                };
                let command = block.lines.iter().filter(|_| may_be).find(is_command)?;
                format!("a block of commands without a language: {command}")
            }
            BlockKind::CommentWithoutBlock => "no block `sh` follows".to_owned(),
            BlockKind::WithoutEnd => "the block has no end".to_owned(),
        };
        Some(format!("line {}: {what}", block.line))
    };
    blocks.iter().filter_map(fault).collect()
}
