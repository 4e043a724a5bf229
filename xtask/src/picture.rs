//! Draws the output of a command as an SVG of a terminal, for README.md.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

const CHAR_WIDTH: usize = 8;
const LINE_HEIGHT: usize = 19;
const MARGIN: usize = 16;
/// Longer lines are cut.
const MAX_COLUMNS: usize = 112;

#[derive(Args)]
pub struct PictureOptions {
    /// Command to show in the first line; its output is read from standard input
    #[arg(long)]
    command: String,
    /// SVG file to write
    #[arg(long)]
    out: PathBuf,
}

pub fn run(options: &PictureOptions) -> anyhow::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("failed to read standard input")?;
    let picture = draw(&options.command, &text);
    std::fs::write(&options.out, picture)
        .with_context(|| format!("failed to write {}", options.out.display()))
}

/// Steps on the way are left out but for the first ones: they repeat.
fn chosen_lines(text: &str) -> Vec<&str> {
    let is_step = |line: &&str| line.starts_with(['↻', '…']);
    let mut steps = 0;
    let mut keep = |line: &&str| {
        steps += usize::from(is_step(line));
        !is_step(line) || steps <= 4
    };
    text.lines().filter(|line| keep(line)).collect()
}

fn color(line: &str) -> &'static str {
    match line.chars().next() {
        Some('✓') => "#7ee787",
        Some('✗') => "#ff7b72",
        Some('»' | '$') => "#79c0ff",
        Some('↻' | '…') => "#8b949e",
        _ => "#e6edf3",
    }
}

fn draw(command: &str, text: &str) -> String {
    let prompt = format!("$ {command}");
    let lines: Vec<&str> = [prompt.as_str()].into_iter().chain(chosen_lines(text)).collect();
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0).min(MAX_COLUMNS);
    let (width, height) = (columns * CHAR_WIDTH + 2 * MARGIN, lines.len() * LINE_HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (index, line) in lines.iter().enumerate() {
        let line: String = line.chars().take(MAX_COLUMNS).collect();
        let escaped = line.replace('&', "&amp;").replace('<', "&lt;");
        let y = MARGIN + index * LINE_HEIGHT + 13;
        _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{}\" xml:space=\"preserve\">{escaped}</text>",
            color(&line)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_on_the_way_are_left_out() {
        let text = format!("» begin\n{}✓ done <1 & 2>\n", "↻ step\n".repeat(9));
        let svg = draw("tutti demo", &text);
        assert_eq!(svg.matches("↻ step").count(), 4);
        assert!(svg.contains("$ tutti demo") && svg.contains("✓ done &lt;1 &amp; 2>"), "{svg}");
    }
}
