//! Generates `docs/reference/cli.md` from the command definitions, for `cargo xtask docs`.

pub mod fields;

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command};

const HEADER: &str = "# Commands\n\nWritten by `cargo xtask docs` from the definitions in `src/cli`; a test holds it equal to them.\n";

/// All visible commands with their arguments.
pub fn markdown(mut command: Command) -> String {
    // Completes names of subcommands and global arguments.
    command.build();
    let mut text = HEADER.to_owned();
    write_command(&mut text, &command);
    text
}

fn write_command(text: &mut String, command: &Command) {
    let root = command.get_bin_name().is_none_or(|name| !name.contains(' '));
    let name = command.get_bin_name().unwrap_or(command.get_name());
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n## {name}");
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = writeln!(text, "{}", as_sentence(&about.to_string()));
    }
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(text, "\n```text\n{}\n```", usage.trim_start_matches("Usage: ").trim());
    let visible = |arg: &&Arg| {
        let is_about_us = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !arg.is_hide_set() && !is_about_us && (root || !arg.is_global_set())
    };
    let arguments: Vec<String> = command.get_arguments().filter(visible).map(argument_line).collect();
    if !arguments.is_empty() {
        let _ = writeln!(text, "\n{}", arguments.join("\n"));
    }
    for subcommand in command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
        write_command(text, subcommand);
    }
}

/// `- `-o, --output <OUTPUT>`: what it is about. One of `table`, `json`. Default: `table`. Variable: `NAME`.`
fn argument_line(arg: &Arg) -> String {
    let mut line = format!("- `{}`", argument_usage(arg));
    if let Some(help) = arg.get_long_help().or(arg.get_help()) {
        let _ = write!(line, ": {}", as_sentence(&help.to_string()));
    }
    let takes_value = arg.get_action().takes_values();
    let values = arg.get_possible_values();
    let values: Vec<String> =
        values.iter().filter(|it| !it.is_hide_set()).map(|it| format!("`{}`", it.get_name())).collect();
    if takes_value && !values.is_empty() {
        let _ = write!(line, " One of {}.", values.join(", "));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|it| it.to_string_lossy()).collect();
    if takes_value && !defaults.is_empty() {
        let _ = write!(line, " Default: `{}`.", defaults.join(","));
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(line, " Variable: `{}`.", variable.to_string_lossy());
    }
    line
}

fn argument_usage(arg: &Arg) -> String {
    let value = arg.to_string();
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(_)) => format!("-{short}, {value}"),
        _ => value,
    }
}

fn as_sentence(help: &str) -> String {
    let line = help.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.ends_with(['.', ':', '!', '?']) { line } else { line + "." }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_md_matches_the_commands() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/cli.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        let now = markdown(super::super::command());
        assert!(kept == now, "docs/reference/cli.md is of other commands: `cargo xtask docs` writes it anew");
    }

    #[test]
    fn command_is_written_with_its_arguments() {
        let run = Command::new("run")
            .about("Reconcile")
            .arg(Arg::new("repo").long("repo").env("REPO").value_name("URL").help("The repository"))
            .arg(Arg::new("secret").long("secret").hide(true))
            .arg(Arg::new("file").required(true).help("One file"))
            .arg(
                Arg::new("output")
                    .short('o')
                    .long("output")
                    .value_parser(["table", "json"])
                    .default_value("table"),
            );
        let command = Command::new("tutti")
            .about("It reconciles")
            .version("1")
            .arg(Arg::new("verbose").short('v').action(ArgAction::Count).global(true).help("More"))
            .subcommand(run)
            .subcommand(Command::new("inner").hide(true));
        let expected = "
## tutti
It reconciles.

```text
tutti [OPTIONS] [COMMAND]
```

- `-v...`: More.

## tutti run
Reconcile.

```text
tutti run [OPTIONS] <file>
```

- `--repo <URL>`: The repository. Variable: `REPO`.
- `<file>`: One file.
- `-o, --output <output>` One of `table`, `json`. Default: `table`.
";
        assert_eq!(markdown(command).strip_prefix(HEADER), Some(expected));
    }
}
