//! Findings and summary of a check as text, for someone who is tired and has to decide what to do.

use super::coverage::{ANY_VALUE, NOT_COVERED, OTHER_CLASS};
use super::text::{escaped, size};
use crate::check::finding::Followed;
use crate::check::{CATALOGUE, Class, Finding, Report, Summary, Verdict};
use std::fmt::Write;

/// One finding: what, where, which value.
pub fn finding(finding: &Finding) -> String {
    let Finding { rule, place, found, expected, object, more, object_path, in_metadir, followed, cause: _ } = finding;
    let mut out = format!("{}[{}]: {}\n", rule.class, rule.id, rule.summary);
    let _ = writeln!(out, "    where     {} (byte {} of the {} device)", finding.path(), place.byte, place.device);
    let _ = writeln!(out, "    found     {}", escaped(found.as_bytes()));
    let _ = writeln!(out, "    expected  {}", escaped(expected.as_bytes()));
    if let (Some(ino), path) = (object.inode(), object_path) {
        match path {
            Some(path) => {
                let root = if *in_metadir { "(metadir)/" } else { "/" };
                let _ = writeln!(out, "    file      {root}{} (inode {ino})", escaped(path));
            }
            None => {
                let _ = writeln!(out, "    file      inode {ino}");
            }
        }
    }
    if *more > 0 {
        let _ = writeln!(out, "    and {more} more of this kind");
    }
    for Followed { rule, path, count } in followed {
        let times = if *count > 1 { format!(", {count} of them") } else { String::new() };
        let _ = writeln!(out, "    follows   {} at {}{times}", rule.id, escaped(path.as_bytes()));
    }
    out
}

/// The summary: verdict first, then figures, then what a repair would have to do.
pub fn summary(report: &Report, bytes: u64) -> String {
    let Summary { verdict, findings, by_class, explained, folded, cancelled, inodes, ags, unjudged, repair, .. } =
        &report.summary;
    let mut out = String::new();
    let groups = if *ags == 1 { "AG" } else { "AGs" };
    let looked = format!("{ags} {groups}, {inodes} inodes, {} of data section", size(bytes));
    let _ = match verdict {
        Verdict::Clean => writeln!(out, "clean: nothing wrong ({looked})"),
        Verdict::Damaged => {
            writeln!(out, "damaged: {findings} finding{} ({looked})", if *findings == 1 { "" } else { "s" })
        }
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
    if *folded > 0 {
        let _ = writeln!(out, "    {folded} more of the same kinds, or that follow from them, folded above");
    }
    if *explained > 0 {
        let s = if *explained == 1 { "" } else { "s" };
        let _ = writeln!(out, "    {explained} observation{s} left out, which recovery of the log may explain");
    }
    for what in unjudged {
        let _ = writeln!(out, "    not judged: {what}");
    }
    if !repair.is_empty() {
        let head = if *verdict == Verdict::Damaged { "a repair would have to" } else { "before anything else" };
        let _ = writeln!(out, "{head} (nothing was written):");
        for step in repair.iter().take(20) {
            let _ = writeln!(out, "    {step}");
        }
        if let Some(more) = repair.len().checked_sub(20).filter(|&more| more > 0) {
            let _ = writeln!(out, "    and {more} more");
        }
    }
    out
}

/// A source as it stands in a cell.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}

/// The catalogue of rules, as Markdown: docs/checks.md.
pub fn catalogue() -> String {
    let mut out = String::from(
        "# Checks\n\n\
         Generated from the rules in `src/check/`; do not edit. `XFSINSPECT_BLESS=1 cargo test --test check the_catalogue` writes it\n\
         again. `xfsinspect explain ID` prints a rule.\n\n\
         Classes: `corrupt` the object is damaged, `xcorrupt` it disagrees with another one that seems sound, `xfailed` it could not be\n\
         compared, `preen` valid but a repair would make it better, `warning` odd, `incomplete` could not be looked at. Sources are files\n\
         and functions of Linux 7.2 `fs/xfs` (`scrub/` below it) and of xfsprogs (`repair/`). Since: the first kernel that tests it at\n\
         mount or read; `scrub`: only its scrub does; `none`: no kernel does.\n\n",
    );
    let mut structures: Vec<&str> = Vec::new();
    for info in CATALOGUE.iter().flat_map(|rules| rules.iter()) {
        if !structures.contains(&info.structure) {
            structures.push(info.structure);
        }
    }
    for structure in structures {
        let _ = writeln!(
            out,
            "## {structure}\n\n| id | class | field | what | source | since |\n|---|---|---|---|---|---|"
        );
        for info in CATALOGUE.iter().flat_map(|rules| rules.iter()).filter(|info| info.structure == structure) {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                info.id,
                info.class,
                info.field,
                cell(info.summary),
                cell(info.source),
                info.since
            );
        }
        out.push('\n');
    }
    for (title, head, rows) in [
        (
            "Not covered\n\nWhat scrub, the kernel's verifiers or xfs_repair have and `check` does not.",
            "source | what",
            NOT_COVERED,
        ),
        ("Other classes than scrub's", "id | there", OTHER_CLASS),
        (
            "Fields that nothing can validate\n\nAny value is legal here, or any within the bounds of a rule, so that a wrong one \
             is not noticed.",
            "structure | fields",
            ANY_VALUE,
        ),
    ] {
        let _ = writeln!(out, "## {title}\n\n| {head} | reason |\n|---|---|---|");
        for (first, second, reason) in rows {
            let _ = writeln!(out, "| {} | {} | {} |", cell(first), cell(second), cell(reason));
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}
