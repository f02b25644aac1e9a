//! What an id means: hazards and rules of the check, as text, and the catalogue of hazards as a document.

use super::warning::Warning;
use super::wrap::wrapped;
use crate::check::RuleInfo;
use crate::hazard::{About, Effect, Row, iget, rows};
use std::fmt::Write;

const WIDTH: usize = 100;

/// The range of an effect; GRUB writes 2.06 for the sixth release.
pub fn range_of(about: About, effect: &Effect) -> String {
    let text = effect.range();
    if about != About::Grub {
        return text;
    }
    text.split(' ')
        .map(|word| match word.strip_prefix("2.") {
            Some(minor) if minor.len() == 1 => format!("2.0{minor}"),
            _ => word.to_owned(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// What versions mean in the ranges of a row.
fn subject(about: About) -> &'static str {
    match about {
        About::Kernel => "kernel",
        About::Grub => "GRUB",
        About::Tools => "xfsprogs",
    }
}

/// A paragraph behind a label.
fn part(out: &mut String, label: &str, text: &str) {
    let lead = format!("{label:<12}");
    out.push_str(&wrapped(text, WIDTH, &lead, &" ".repeat(12)));
}

/// A hazard in full.
pub fn hazard(row: &Row) -> String {
    let mut out = String::new();
    out.push_str(&wrapped(&format!("{}: {}", row.id, row.title), WIDTH, "", "  "));
    part(&mut out, "known as", row.refs);
    part(&mut out, "severity", row.severity().name());
    out.push('\n');
    part(&mut out, "why", row.explanation);
    let mut label = format!("{}s", subject(row.about));
    if row.about != About::Kernel {
        label = subject(row.about).to_owned();
    }
    for effect in row.effects {
        let condition = if effect.only.is_some() { ", under a further condition" } else { "" };
        let text = format!("{}{condition}: {}: {}", range_of(row.about, effect), effect.severity, effect.outcome);
        part(&mut out, &label, &text);
        label.clear();
    }
    part(&mut out, "what to do", row.advice);
    out.push('\n');
    part(&mut out, "source", row.source);
    part(&mut out, "confidence", row.confidence.name());
    part(&mut out, "example", row.fire);
    out
}

/// A rule of the check in full.
pub fn rule(info: &RuleInfo) -> String {
    let mut out = String::new();
    out.push_str(&wrapped(&format!("{}: {}", info.id, info.summary), WIDTH, "", "  "));
    part(&mut out, "class", info.class.name());
    part(&mut out, "field", &format!("{} of {}", info.field, info.structure));
    out.push('\n');
    part(&mut out, "meaning", info.explanation);
    let mut label = "kernels";
    for test in iget::tests_of(info) {
        part(&mut out, label, &format!("{}: {}, {}", test.releases(), test.what, test.at.name()));
        label = "";
    }
    if !label.is_empty() {
        let text = match info.since {
            "scrub" => "do not test it; online scrub does".to_owned(),
            "none" => "do not test it".to_owned(),
            since => format!("{since} and later test it at mount or when it is read"),
        };
        part(&mut out, label, &text);
    }
    part(&mut out, "source", info.source);
    out
}

/// A warning in full.
pub fn warning(warning: &Warning) -> String {
    let mut out = wrapped(&format!("{}: {}", warning.id, warning.summary), WIDTH, "", "  ");
    out.push('\n');
    part(&mut out, "meaning", warning.explanation);
    part(&mut out, "what to do", warning.advice);
    out
}

/// Text that stands in a cell or line of Markdown.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}

/// The catalogue of hazards, as Markdown.
pub fn catalogue() -> String {
    let mut out = String::from(
        "# Hazards\n\n\
         Generated from the registry in `src/hazard/`; do not edit. `XFSINSPECT_BLESS=1 cargo test --test hazards` writes it again.\n\n\
         Severity: `refuse` the mount is refused, `ro` only read-only works, `danger` oops, shutdown, corruption, lost or wrong data, \
         `note` worth knowing. Versions are upstream releases; a range ends before its second number, and stable releases that stand \
         out of it are named. Where ranges overlap, the first that applies counts.\n\n",
    );
    let groups = [(About::Kernel, "Kernels"), (About::Grub, "GRUB"), (About::Tools, "Tools of xfsprogs")];
    for (about, title) in groups {
        let _ = writeln!(out, "## {title}\n\n| id | known as | severity | condition |\n|---|---|---|---|");
        for row in rows().filter(|row| row.about == about) {
            let _ = writeln!(
                out,
                "| [{id}](#{id}) | {} | {} | {} |",
                row.refs,
                row.severity(),
                plain(row.title),
                id = row.id
            );
        }
        out.push('\n');
        for row in rows().filter(|row| row.about == about) {
            let _ = writeln!(out, "### {}\n\n{}. ({})\n", row.id, plain(row.title), row.refs);
            for effect in row.effects {
                let condition = if effect.only.is_some() { ", under a further condition" } else { "" };
                let _ = writeln!(
                    out,
                    "- {}{condition}: **{}**: {}",
                    range_of(about, effect),
                    effect.severity,
                    plain(effect.outcome)
                );
            }
            let _ = writeln!(
                out,
                "\n{}\n\nWhat to do: {}\n\nSource: {} ({}). Example: {}\n",
                plain(row.explanation),
                plain(row.advice),
                plain(row.source),
                row.confidence.name(),
                plain(row.fire)
            );
        }
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}
