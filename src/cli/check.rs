//! `check`: is the file system consistent?

use super::args::CheckArgs;
use super::session::{Outcome, Session};
use super::target;
use crate::check::context::{Hooks, Progress};
use crate::check::{CATALOGUE, Options, Report, RuleInfo, Verdict, check};
use crate::error::{Error, Result};
use crate::report;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value as Json};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Checks and reports.
pub fn run(session: &mut Session, args: &CheckArgs) -> Result<()> {
    let options = options(session, args)?;
    session.judge();
    let target = target::open(session, &args.target)?;
    let count = target.volume.geometry().ag_count;
    if let Some(ag) = args.ags.iter().find(|ag| **ag >= count) {
        return Err(Error::request(format!(
            "--ag {ag}: no such AG, there are {count} (0 to {})",
            count.saturating_sub(1)
        )));
    }
    target.keep_little();
    let cancel = stop_on_interrupt();
    let bar = Bar::new(session);
    let progress = |progress: Progress| bar.show(progress);
    let hooks = Hooks { progress: &progress, cancel: &cancel };
    let report = check(&target.volume, &options, hooks);
    bar.finish();
    session.outcome(match report.summary.verdict {
        Verdict::Clean => Outcome::Clean,
        Verdict::Damaged => Outcome::Findings,
        Verdict::DirtyLog => Outcome::DirtyLog,
        Verdict::Incomplete => Outcome::Incomplete,
    });
    if session.common.json {
        print_json(session, args, &report);
    } else {
        for finding in &report.findings {
            session.print(&report::check::finding(finding));
        }
        let bytes = target.volume.geometry().data_bytes().unwrap_or(0);
        session.print(&report::check::summary(&report, bytes));
    }
    target.close(session);
    Ok(())
}

/// Set by ^C; a second ^C ends the program at once.
fn stop_on_interrupt() -> Arc<AtomicBool> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    // Where no handler can be set, ^C ends the program as ever.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    cancel
}

/// The progress bar: on a terminal, for whatever takes longer than a moment.
struct Bar {
    bar: ProgressBar,
    step: Mutex<&'static str>,
}

impl Bar {
    fn new(session: &Session) -> Self {
        let shown = std::io::stderr().is_terminal() && !session.common.no_progress && !session.common.quiet;
        let bar = if shown { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{msg:18} [{bar:30}] {percent:>3} %  {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self { bar, step: Mutex::new("") }
    }

    fn show(&self, progress: Progress) {
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        if *step != progress.step {
            *step = progress.step;
            self.bar.reset();
            self.bar.set_length(progress.total);
            self.bar.set_message(progress.step);
        }
        self.bar.set_position(progress.done);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn options(session: &Session, args: &CheckArgs) -> Result<Options> {
    let known = |only: &str| {
        let fits = |rule: &RuleInfo| {
            let begins = rule.id.strip_prefix(only).is_some_and(|rest| rest.starts_with('-'));
            rule.id == only || rule.structure == only || begins
        };
        CATALOGUE.iter().flat_map(|rules| rules.iter()).any(fits)
    };
    if let Some(only) = args.only.iter().find(|only| !known(only)) {
        let only = report::text::escaped(only.as_bytes());
        return Err(Error::request(format!(
            "--only {only}: no rule has that id, no id begins so, and no structure is called so"
        )));
    }
    let mut options = Options { ags: args.ags.clone(), only: args.only.clone(), ..Options::default() };
    options.max_findings = args.max_findings;
    if let Some(threads) = session.common.threads {
        options.threads = threads.max(1);
    }
    Ok(options)
}

fn print_json(session: &mut Session, args: &CheckArgs, report: &Report) {
    for finding in &report.findings {
        session.print_json(report::json::finding(finding));
    }
    let summary = &report.summary;
    let mut object = Map::new();
    object.insert("type".into(), "summary".into());
    object.insert("verdict".into(), summary.verdict.name().into());
    object.insert("findings".into(), summary.findings.into());
    let classes: Map<String, Json> =
        summary.by_class.iter().map(|(class, count)| (class.name().to_owned(), (*count).into())).collect();
    object.insert("by_class".into(), classes.into());
    let rules: Map<String, Json> =
        summary.by_rule.iter().map(|(rule, count)| ((*rule).to_owned(), (*count).into())).collect();
    object.insert("by_rule".into(), rules.into());
    object.insert("shown".into(), report.findings.len().into());
    object.insert("folded".into(), summary.folded.into());
    object.insert("explained_by_log".into(), summary.explained.into());
    object.insert("stopped".into(), summary.cancelled.into());
    object.insert("inodes".into(), summary.inodes.into());
    object.insert("ags".into(), summary.ags.into());
    object.insert("only_ags".into(), args.ags.clone().into());
    object.insert("not_judged".into(), summary.unjudged.clone().into());
    object.insert("repair".into(), summary.repair.clone().into());
    object.insert("warnings".into(), session.take_warnings());
    session.print_json(object);
}
