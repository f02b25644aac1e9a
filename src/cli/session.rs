//! One run of the program: where output goes, what was flagged, and which exit status that makes.

use super::args::{Color, Common};
use crate::check::RuleInfo;
use crate::error::Error;
use crate::report::json;
use crate::report::text::visible;
use crate::report::warning::warning;
use crate::source::IoStats;
use serde_json::{Map, Value as Json, json};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// How a run ended. Where several hold, the first of 1, 3, 2, 0 counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered, nothing wrong.
    Clean,
    /// Something is damaged, or a danger applies.
    Findings,
    /// Not answered, or not wholly.
    Incomplete,
    /// The log is dirty; the verdict is of the state before recovery.
    DirtyLog,
}

impl Outcome {
    /// The one of two that counts.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let rank = |outcome| match outcome {
            Self::Findings => 3,
            Self::DirtyLog => 2,
            Self::Incomplete => 1,
            Self::Clean => 0,
        };
        if rank(other) > rank(self) { other } else { self }
    }

    /// The exit status.
    pub fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Incomplete => 2,
            Self::DirtyLog => 3,
        }
    }
}

/// Something to flag: a stable id and a sentence.
#[derive(Clone, Debug)]
pub struct Warning {
    /// Stable id, for `explain` and scripts.
    pub id: &'static str,
    /// What, where, what it means.
    pub message: String,
}

/// State of a run.
pub struct Session {
    /// Options of every command.
    pub common: Common,
    outcome: Outcome,
    warnings: Vec<Warning>,
    stats: Vec<(String, IoStats)>,
    broken_pipe: bool,
    /// Output that was not written yet.
    pending: Vec<u8>,
    /// Errors of walks so far.
    problems: usize,
    /// Does stdout go to a terminal?
    terminal: bool,
    /// Does the command judge the whole file system? Then its findings say what warnings at opening would.
    judges: bool,
    /// Did a walk meet damage? It counts unless something could not be read: then what looks damaged may follow from that.
    walk_damage: bool,
    /// Was everything read that was asked for?
    whole: bool,
    /// Does the command judge the realtime section and its device?
    judges_section: bool,
}

/// Does a check make a finding of what this warning says?
fn is_judged(id: &str) -> bool {
    warning(id).is_some_and(|warning| warning.judged) || crate::check::rule(id).is_some()
}

/// Writes a line to stderr, with nothing hidden in it. Where stderr cannot be written, the answer still is, and the exit
/// status tells the rest.
fn say(lead: &str, text: &str) {
    let _ = writeln!(std::io::stderr(), "{lead}{}", visible(text));
}

/// Output is written in pieces of this size, and at once on a terminal.
const PIECE: usize = 1 << 16;
/// Errors of walks that are shown, before they are only counted.
const SHOWN_PROBLEMS: usize = 1000;

impl Session {
    /// A new run.
    pub fn new(common: Common) -> Self {
        Self {
            common,
            outcome: Outcome::Clean,
            warnings: Vec::new(),
            stats: Vec::new(),
            broken_pipe: false,
            pending: Vec::new(),
            problems: 0,
            terminal: std::io::stdout().is_terminal(),
            judges: false,
            judges_section: false,
            walk_damage: false,
            whole: true,
        }
    }

    /// From here on the findings of a check say what is wrong, and how the run ends; warnings that would say the same are
    /// left out.
    pub fn judge(&mut self) {
        self.judges = true;
    }

    /// Does the command judge the whole file system?
    pub fn is_judging(&self) -> bool {
        self.judges
    }

    /// Something could not be read, so that no damage that a walk met is certain.
    pub fn not_wholly_read(&mut self) {
        self.whole = false;
        self.outcome(Outcome::Incomplete);
    }

    /// The same, for what is wrong with the realtime device.
    pub fn judge_section(&mut self) {
        self.judges_section = true;
    }

    /// Takes an outcome into account.
    pub fn outcome(&mut self, outcome: Outcome) {
        self.outcome = self.outcome.and(outcome);
    }

    /// Flags something: on stderr at once, in JSON with the answer.
    pub fn warn(&mut self, id: &'static str, message: impl Into<String>, outcome: Outcome) {
        let of_section = |rule: &RuleInfo| self.judges_section && ["rtsb", "rtdev"].contains(&rule.structure);
        if self.judges && is_judged(id) || crate::check::rule(id).is_some_and(of_section) {
            return;
        }
        let message = message.into();
        self.outcome(outcome);
        if !self.common.quiet {
            let (on, off) = if self.color_stderr() { ("\x1b[33m", "\x1b[0m") } else { ("", "") };
            say(&format!("{on}warning[{id}]{off}: "), &message);
        }
        self.warnings.push(Warning { id, message });
    }

    /// Reports an error; the run ends with 2 unless something worse was found.
    pub fn error(&mut self, error: &Error) {
        self.outcome(Outcome::Incomplete);
        let (on, off) = if self.color_stderr() { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
        say(&format!("{on}error{off}: "), &error.to_string());
    }

    /// The warnings since the last call, for the JSON of an answer.
    pub fn take_warnings(&mut self) -> Json {
        let list: Vec<Json> = self.warnings.drain(..).map(|w| json!({ "id": w.id, "message": w.message })).collect();
        list.into()
    }

    /// Reports an error that a walk goes on after: damage makes the run end with 1, anything else with 2. In JSON it
    /// is a line among the answers, too.
    pub fn problem(&mut self, error: &Error) {
        match error {
            Error::Corrupt { .. } => self.walk_damage = true,
            _ => self.outcome(Outcome::Incomplete),
        }
        self.problems = self.problems.saturating_add(1);
        if self.problems > SHOWN_PROBLEMS {
            return;
        }
        if self.common.json {
            self.print_json(json::error(error));
        }
        let (on, off) = if self.color_stderr() { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
        say(&format!("{on}error{off}: "), &error.to_string());
    }

    /// Writes the warnings so far as lines of JSON, for commands that answer with lines.
    pub fn warning_lines(&mut self) {
        if self.common.json {
            for warning in std::mem::take(&mut self.warnings) {
                let line = json!({ "type": "warning", "id": warning.id, "message": warning.message });
                self.print(&format!("{}\n", json::escape_hidden(line.to_string())));
            }
        }
    }

    /// A line on stderr, as it is.
    pub fn tell(&self, line: &str) {
        say("", line);
    }

    /// Says something about an answer that is no fault, on stderr.
    pub fn note(&self, text: &str) {
        if !self.common.quiet {
            say("note: ", text);
        }
    }

    /// Writes text to stdout. A closed pipe ends the output quietly.
    pub fn print(&mut self, text: &str) {
        self.print_bytes(text.as_bytes());
    }

    /// Writes bytes to stdout, as they are.
    pub fn print_bytes(&mut self, bytes: &[u8]) {
        if self.broken_pipe {
            return;
        }
        if self.pending.len().saturating_add(bytes.len()) > PIECE {
            self.flush();
        }
        if bytes.len() > PIECE {
            self.write(bytes);
        } else {
            self.pending.extend_from_slice(bytes);
            if self.terminal {
                self.flush();
            }
        }
    }

    /// Writes what is pending.
    pub fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.write(&pending);
        self.pending = pending;
        self.pending.clear();
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.broken_pipe {
            return;
        }
        let mut out = std::io::stdout().lock();
        if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
            self.broken_pipe = true;
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                say("error: cannot write the answer: ", &error.to_string());
                self.outcome(Outcome::Incomplete);
            }
        }
    }

    /// Writes an object as one line.
    pub fn print_json(&mut self, object: Map<String, Json>) {
        let line = format!("{}\n", crate::report::json::text(object));
        self.print(&line);
    }

    /// Is nobody reading any more?
    pub fn closed(&self) -> bool {
        self.broken_pipe
    }

    /// Remembers what was read from a device.
    pub fn add_stats(&mut self, name: &str, stats: IoStats) {
        self.stats.push((name.to_owned(), stats));
    }

    fn color_stderr(&self) -> bool {
        match self.common.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    /// Ends the run: figures of I/O if asked for, and the exit status.
    pub fn finish(mut self) -> ExitCode {
        self.flush();
        if self.walk_damage && self.whole {
            self.outcome(Outcome::Findings);
        }
        if let Some(more) = self.problems.checked_sub(SHOWN_PROBLEMS).filter(|&more| more > 0) {
            say("error: ", &format!("{more} more errors of this kind are not shown"));
        }
        if self.common.io_stats {
            for (name, s) in &self.stats {
                let micros = s.time.as_micros();
                say(
                    "io-stats: ",
                    &format!(
                        "{name}: {} reads, {} bytes, {} to {} bytes each, {micros} us",
                        s.reads, s.bytes, s.smallest, s.largest
                    ),
                );
            }
        }
        ExitCode::from(self.outcome.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_before_dirty_before_incomplete_before_clean() {
        use Outcome::{Clean, DirtyLog, Findings, Incomplete};
        assert_eq!(Clean.and(Incomplete).and(DirtyLog).and(Findings).code(), 1);
        assert_eq!(Incomplete.and(DirtyLog).and(Clean).code(), 3);
        assert_eq!(Incomplete.and(Clean).code(), 2);
        assert_eq!(Clean.and(Clean).code(), 0);
    }
}
