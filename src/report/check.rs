//! Findings and summary of a check as text, for someone who is tired and has to decide what to do.

use super::text::{escaped, size};
use crate::check::{Class, Finding, Report, Summary, Verdict};
use std::fmt::Write;

/// One finding: what, where, which value.
pub fn finding(finding: &Finding) -> String {
    let Finding { rule, place, found, expected, object, object_path } = finding;
    let mut out = format!("{}[{}]: {}\n", rule.class, rule.id, rule.summary);
    let _ = writeln!(out, "    where     {} (byte {} of the {} device)", finding.path(), place.byte, place.device);
    let _ = writeln!(out, "    found     {}", escaped(found.as_bytes()));
    let _ = writeln!(out, "    expected  {}", escaped(expected.as_bytes()));
    if let (Some(ino), path) = (object.inode(), object_path) {
        match path {
            Some(path) => {
                let _ = writeln!(out, "    file      /{} (inode {ino})", escaped(path));
            }
            None => {
                let _ = writeln!(out, "    file      inode {ino}");
            }
        }
    }
    out
}

/// The summary: verdict first, then figures, then what a repair would have to do.
pub fn summary(report: &Report, bytes: u64) -> String {
    let Summary { verdict, findings, by_class, explained, cancelled, inodes, ags, unjudged, repair, .. } =
        &report.summary;
    let mut out = String::new();
    let looked = format!("{ags} AGs, {inodes} inodes, {} of data section", size(bytes));
    let _ = match verdict {
        Verdict::Clean => writeln!(out, "clean: nothing wrong ({looked})"),
        Verdict::Damaged => writeln!(out, "damaged: {findings} findings ({looked})"),
        Verdict::DirtyLog => writeln!(
            out,
            "dirty log: the verdict is of the state before recovery ({looked}). Mount and unmount, then check again."
        ),
        Verdict::Incomplete => {
            writeln!(out, "incomplete: no damage found, but not everything was looked at ({looked})")
        }
    };
    if *cancelled {
        let _ = writeln!(out, "    stopped before the end: this is what was found so far");
    }
    for class in Class::ALL {
        if let Some(count) = by_class.get(&class) {
            let _ = writeln!(out, "    {:<10} {count}", class.name());
        }
    }
    let shown = u64::try_from(report.findings.len()).unwrap_or(u64::MAX);
    if shown < *findings {
        let _ = writeln!(out, "    {} of them not shown (--max-findings)", findings.saturating_sub(shown));
    }
    if *explained > 0 {
        let _ = writeln!(out, "    {explained} observations left out, which recovery of the log may explain");
    }
    for what in unjudged {
        let _ = writeln!(out, "    not judged: {what}");
    }
    if !repair.is_empty() {
        let _ = writeln!(out, "a repair would have to (nothing was written):");
        for step in repair.iter().take(20) {
            let _ = writeln!(out, "    {step}");
        }
        if let Some(more) = repair.len().checked_sub(20).filter(|&more| more > 0) {
            let _ = writeln!(out, "    and {more} more");
        }
    }
    out
}
