//! The answer of `preflight`: verdicts by kernel, boot loaders and tools, the realtime section, advice. Text for a
//! person who is tired; [`super::preflight_json`] has the same for programs.

use super::text::size;
use super::wrap::{list, wrapped};
use crate::hazard::{
    About, Answer, Applied, Evaluation, Facts, GRUBS, Kernel, LogState, Modes, Mount, Row, Severity, Verdict, Version,
};
use comfy_table::{ContentArrangement, Table, presets};
use std::fmt::Write;

/// Columns of text.
pub(super) const WIDTH: usize = 110;

/// Names of versions in a row as `2.6.32 to 4.4, 5.10`, given all of them in order.
pub(super) fn ranges(all: &[&str], wanted: &[bool]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let run = wanted.iter().skip(at).take_while(|w| **w).count();
        match (run, all.get(at), all.get(at.saturating_add(run).saturating_sub(1))) {
            (1, Some(one), _) => parts.push((*one).to_owned()),
            (2, Some(first), Some(last)) => parts.extend([(*first).to_owned(), (*last).to_owned()]),
            (3.., Some(first), Some(last)) => parts.push(format!("{first} to {last}")),
            _ => {}
        }
        at = at.saturating_add(run.max(1));
    }
    parts.join(", ")
}

fn mount_text(verdict: &Verdict<'_>) -> &'static str {
    match verdict.mount {
        Mount::Rw => "rw",
        Mount::Hazard => "rw, HAZARD",
        Mount::Ro => "ro only",
        Mount::Refused if verdict.modes.meets(Modes::NOREC) => "refused (ro,norecovery works)",
        Mount::Refused => "refused",
    }
}

/// The reasons that matter for how it mounts: what refuses it, or else what restricts it and the dangers.
fn decisive<'a, 'b>(verdict: &'b Verdict<'a>) -> Vec<&'b Applied<'a>> {
    let worst = |severity| verdict.reasons.iter().any(|r| r.effect.severity == severity);
    let blocking = |r: &&Applied<'_>| {
        let modes = r.effect.modes;
        match verdict.mount {
            Mount::Refused => r.effect.severity == Severity::Refuse && modes.meets(Modes::RO),
            Mount::Ro => modes.meets(Modes::RW) || r.effect.severity == Severity::Danger,
            Mount::Hazard => r.effect.severity == Severity::Danger,
            Mount::Rw => false,
        }
    };
    let chosen: Vec<&Applied<'_>> = verdict.reasons.iter().filter(blocking).collect();
    if chosen.is_empty() && worst(Severity::Refuse) { verdict.reasons.iter().collect() } else { chosen }
}

fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(WIDTH).unwrap_or(110)).set_header(columns.iter().copied());
    table
}

/// A table without blanks at the ends of lines.
fn trimmed(table: &Table) -> String {
    let mut out = String::new();
    for line in table.to_string().lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// What the first line says about the table of kernels.
fn summary(kernels: &[Kernel], verdicts: &[Verdict<'_>]) -> String {
    let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
    let by = |mount| {
        let wanted: Vec<bool> = verdicts.iter().map(|v| v.mount == mount).collect();
        wanted.contains(&true).then(|| ranges(&names, &wanted))
    };
    let mut parts = Vec::new();
    if let Some(list) = by(Mount::Hazard) {
        parts.push(format!("rw with a HAZARD on {list}"));
    }
    if let Some(list) = by(Mount::Rw) {
        parts.push(format!("rw on {list}"));
    }
    if let Some(list) = by(Mount::Ro) {
        parts.push(format!("only ro on {list}"));
    }
    if let Some(list) = by(Mount::Refused) {
        let all = verdicts.iter().all(|v| v.mount == Mount::Refused);
        parts.push(if all { "refused by every kernel asked about".to_owned() } else { format!("refused by {list}") });
    }
    let open: Vec<bool> = verdicts.iter().map(Verdict::is_open).collect();
    if open.contains(&true) {
        parts.push(format!("not decided for {} (see below)", ranges(&names, &open)));
    }
    parts.join("; ")
}

fn version(major: u16, minor: u16) -> Version {
    crate::hazard::kernel::v(major, minor)
}

/// The whole answer as text. `asked`: were these kernels named, or is it the usual table?
pub fn text(name: &str, evaluation: &Evaluation<'_>, kernels: &[Kernel], asked: bool) -> String {
    let verdicts: Vec<Verdict<'_>> = kernels.iter().map(|kernel| evaluation.verdict(kernel)).collect();
    let mut out = String::new();
    if asked && kernels.len() == 1 {
        if let (Some(kernel), Some(verdict)) = (kernels.first(), verdicts.first()) {
            let _ = writeln!(out, "{name}: {}", headline(kernel, verdict));
        }
    } else {
        out.push_str(&wrapped(&format!("{name}: {}", summary(kernels, &verdicts)), WIDTH, "", "  "));
    }
    out.push_str(&wrapped(&what_it_is(evaluation.facts), WIDTH, "", "  "));
    out.push('\n');
    if asked {
        for (kernel, verdict) in kernels.iter().zip(&verdicts) {
            one_kernel(&mut out, kernel, verdict, kernels.len() > 1);
        }
    } else {
        by_kernel(&mut out, evaluation, kernels, &verdicts);
    }
    loaders(&mut out, evaluation);
    super::preflight_rt::realtime(&mut out, evaluation);
    unseen(&mut out, &verdicts);
    advice(&mut out, evaluation, kernels, &verdicts, asked);
    out
}

/// Ids of the refusals that are not decided.
fn open_rows(verdict: &Verdict<'_>) -> String {
    let ids: Vec<&str> = verdict.open().map(|undecided| undecided.row.id).collect();
    list(&ids)
}

/// `mounts rw`, and what is wrong with that.
fn headline(kernel: &Kernel, verdict: &Verdict<'_>) -> String {
    let ids: Vec<&str> = decisive(verdict).iter().map(|r| r.row.id).collect();
    let ids = ids.join(", ");
    let how = match verdict.mount {
        Mount::Rw => "mounts rw".to_owned(),
        Mount::Hazard => format!("mounts rw WITH A HAZARD: {ids}"),
        Mount::Ro => format!("mounts ro only: {ids}"),
        Mount::Refused if verdict.modes.meets(Modes::NOREC) => format!("refused, only ro,norecovery works: {ids}"),
        Mount::Refused => format!("refused: {ids}"),
    };
    if verdict.is_open() {
        return format!("{}: not decided; {how} unless one of these refuses: {}", kernel.name, open_rows(verdict));
    }
    format!("{}: {how}", kernel.name)
}

fn what_it_is(f: &Facts) -> String {
    let sb = &f.sb;
    let bytes = u128::from(sb.dblocks.0).saturating_mul(u128::from(sb.blocksize));
    let total = u64::try_from(bytes).map_or_else(|_| format!("{bytes} bytes"), size);
    let names: Vec<&str> = f
        .features
        .names()
        .filter(|bit| {
            f.v5() && matches!(bit.word.field(), "features_incompat" | "features_ro_compat" | "features_log_incompat")
        })
        .map(|bit| bit.name)
        .collect();
    let features = if names.is_empty() { String::new() } else { format!("; features {}", names.join(" ")) };
    let log = match f.log {
        LogState::Clean => "log clean",
        LogState::Dirty => "log DIRTY: the verdict is of the state before recovery",
        LogState::Unknown => "log not looked at",
    };
    let source = match &f.primary_lost {
        None => String::new(),
        Some(_) => format!("; the primary superblock is lost, figures are from {}", f.place.structure),
    };
    format!(
        "XFS V{}, {total} in {} AGs, blocks of {} bytes, sectors of {}{features}; {log}{source}",
        f.features.version(),
        sb.agcount,
        sb.blocksize,
        sb.sectsize
    )
}

fn one_kernel(out: &mut String, kernel: &Kernel, verdict: &Verdict<'_>, title: bool) {
    if title {
        out.push_str(&wrapped(&headline(kernel, verdict), WIDTH, "", "  "));
    }
    for applied in &verdict.reasons {
        reason(out, applied);
    }
    if verdict.reasons.is_empty() {
        out.push_str(if verdict.is_open() {
            "No obstacle found, but not everything was looked at (see \"Not decided\" below).\n"
        } else {
            "Nothing that was looked at speaks against it.\n"
        });
    }
    for applied in verdict.notes.iter().filter(|n| n.row.id != "rt-none") {
        let remark = applied.remark.as_ref().map_or(String::new(), |r| format!(" ({r})"));
        let text = format!("note {}: {}; {}{remark}", applied.row.id, applied.evidence.text, applied.effect.outcome);
        out.push_str(&wrapped(&text, WIDTH, "", "  "));
    }
    for line in kernel.assumptions() {
        out.push_str(&wrapped(&format!("assumed: {line}"), WIDTH, "", "  "));
    }
    out.push('\n');
}

fn reason(out: &mut String, applied: &Applied<'_>) {
    let Applied { row, effect, evidence, remark } = applied;
    let severity = match effect.severity {
        Severity::Danger => "DANGER",
        other => other.name(),
    };
    out.push_str(&wrapped(&format!("{severity} {}: {}", row.id, row.title), WIDTH, "", "  "));
    for (what, text) in [
        ("here", &*evidence.text),
        ("what happens", effect.outcome),
        ("why", row.explanation),
        ("what to do", row.advice),
    ] {
        let lead = format!("  {:<15}", format!("{what}:"));
        out.push_str(&wrapped(text, WIDTH, &lead, &" ".repeat(17)));
    }
    if let Some(remark) = remark {
        out.push_str(&wrapped(remark, WIDTH, "  stable:        ", &" ".repeat(17)));
    }
    if let Some(place) = &evidence.place {
        let _ = writeln!(out, "  where:         {place}");
    }
}

fn by_kernel(out: &mut String, evaluation: &Evaluation<'_>, kernels: &[Kernel], verdicts: &[Verdict<'_>]) {
    let mut rows = table(&["kernel", "mounts", "because of"]);
    let mut seen: Vec<&'static Row> = Vec::new();
    for (kernel, verdict) in kernels.iter().zip(verdicts) {
        let reasons = decisive(verdict);
        let ids: Vec<&str> = reasons.iter().map(|r| r.row.id).collect();
        for reason in reasons {
            if !seen.iter().any(|row| row.id == reason.row.id) {
                seen.push(reason.row);
            }
        }
        rows.add_row([kernel.name.clone(), mount_text(verdict).to_owned(), ids.join(", ")]);
    }
    out.push_str(&trimmed(&rows));
    if let Some(kernel) = kernels.last() {
        let c = &kernel.config;
        let text = match &c.from {
            Some(_) => kernel.assumptions().pop().unwrap_or_default(),
            None => "upstream releases, the first of each series, built with realtime, quota and ACLs for a 64-bit machine with \
                     pages of 4096 bytes; V4 and ascii-ci as that release has them by default (off from 6.18 on). Distributions \
                     port changes back. --kernel V asks about one, --kconfig FILE says how it is built"
                .to_owned(),
        };
        out.push_str(&wrapped(&text, WIDTH, "assumed: ", "  "));
    }
    out.push('\n');
    if !seen.is_empty() {
        out.push_str("Why (more with `xfsinspect explain ID`)\n");
        for row in seen {
            let Some(Answer::Yes(evidence)) = evaluation.answer(row.id) else { continue };
            let dangers = dangers(row, kernels, verdicts);
            let severity = if dangers.is_empty() { "" } else { "DANGER " };
            let text = format!("{severity}{}: {}: {}", row.id, row.title, evidence.text);
            out.push_str(&wrapped(&text, WIDTH, "  ", "    "));
            for danger in dangers {
                out.push_str(&wrapped(&danger, WIDTH, "    ", "      "));
            }
        }
        out.push('\n');
    }
    let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
    let noted: Vec<String> = evaluation
        .answers
        .iter()
        .filter(|(row, _)| row.id != "rt-none")
        .filter_map(|(row, _)| {
            let on = |v: &Verdict<'_>| v.notes.iter().any(|n| n.row.id == row.id);
            let wanted: Vec<bool> = verdicts.iter().map(on).collect();
            let last = verdicts.iter().rev().find_map(|v| v.notes.iter().find(|n| n.row.id == row.id))?;
            let where_ =
                if wanted.iter().all(|w| *w) { String::new() } else { format!(" [{}]", ranges(&names, &wanted)) };
            Some(format!("{}{where_}: {}; {}", row.id, last.evidence.text, last.effect.outcome))
        })
        .collect();
    if !noted.is_empty() {
        out.push_str("Notes\n");
        for note in noted {
            out.push_str(&wrapped(&note, WIDTH, "  ", "    "));
        }
        out.push('\n');
    }
}

/// The dangers of a row by kernel: `3.2, 3.4: what happens`.
fn dangers(row: &'static Row, kernels: &[Kernel], verdicts: &[Verdict<'_>]) -> Vec<String> {
    let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
    let mut found: Vec<(&'static str, Vec<bool>)> = Vec::new();
    for (i, verdict) in verdicts.iter().enumerate() {
        let applied = verdict.reasons.iter().find(|r| r.row.id == row.id && r.effect.severity == Severity::Danger);
        let Some(effect) = applied.map(|r| r.effect) else { continue };
        let at = match found.iter().position(|(outcome, _)| *outcome == effect.outcome) {
            Some(at) => at,
            None => {
                found.push((effect.outcome, vec![false; kernels.len()]));
                found.len().saturating_sub(1)
            }
        };
        if let Some(slot) = found.get_mut(at).and_then(|(_, on)| on.get_mut(i)) {
            *slot = true;
        }
    }
    found.into_iter().map(|(outcome, on)| format!("{}: {outcome}", ranges(&names, &on))).collect()
}

fn loaders(out: &mut String, evaluation: &Evaluation<'_>) {
    out.push_str("Boot loaders and tools (if they have to read it; distributions patch theirs)\n");
    let mut rows = table(&["  GRUB", "reads it", "because of"]);
    for (version, name) in GRUBS {
        let applied = evaluation.reader(About::Grub, version);
        let worst = applied.iter().map(|a| a.effect.severity).max();
        let answer = match worst {
            Some(Severity::Refuse | Severity::Ro) => "no",
            Some(Severity::Danger) => "WRONGLY",
            Some(Severity::Note) | None => "yes",
        };
        let refused = applied.iter().any(|a| a.effect.severity == Severity::Refuse);
        let answer = if refused { "no" } else { answer };
        let wanted = if refused { Severity::Refuse } else { Severity::Danger };
        let ids: Vec<&str> = applied.iter().filter(|a| a.effect.severity == wanted).map(|a| a.row.id).collect();
        rows.add_row([format!("  {name}"), answer.to_owned(), ids.join(", ")]);
    }
    out.push_str(&trimmed(&rows));
    for (row, answer) in evaluation.answers.iter().filter(|(row, _)| row.about == About::Tools) {
        if let Answer::Yes(evidence) = answer {
            let outcome = row.effects.first().map_or("", |e| e.outcome);
            out.push_str(&wrapped(&format!("{}: {}; {outcome}", row.id, evidence.text), WIDTH, "  ", "    "));
        }
    }
    out.push('\n');
}

fn unseen(out: &mut String, verdicts: &[Verdict<'_>]) {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for undecided in verdicts.iter().flat_map(|v| &v.undecided) {
        let (id, why) = (undecided.row.id, undecided.why);
        match groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, ids)) if ids.contains(&id) => {}
            Some((_, ids)) => ids.push(id),
            None => groups.push((why, vec![id])),
        }
    }
    if groups.is_empty() {
        return;
    }
    out.push_str("Not decided, and could change the verdict\n");
    for (why, ids) in groups {
        let why = why.strip_prefix("not looked at yet: ").unwrap_or(why);
        out.push_str(&wrapped(&format!("{}: {why}", list(&ids)), WIDTH, "  ", "    "));
    }
    out.push('\n');
}

fn advice(out: &mut String, evaluation: &Evaluation<'_>, kernels: &[Kernel], verdicts: &[Verdict<'_>], asked: bool) {
    let mut lines: Vec<String> = Vec::new();
    let mut say = |text: String| {
        if !lines.contains(&text) {
            lines.push(text);
        }
    };
    if !asked {
        let good = kernels.iter().zip(verdicts).find(|(_, v)| v.mount == Mount::Rw);
        if let Some((kernel, _)) = good {
            say(format!("The oldest of these kernels that mounts it rw without a known hazard is {}.", kernel.name));
        }
        let newest = verdicts.last().into_iter().flat_map(|v| &v.reasons);
        let hazards = verdicts.iter().flat_map(|v| &v.reasons).filter(|r| r.effect.severity == Severity::Danger);
        for applied in newest.chain(hazards) {
            say(format!("{}: {}", applied.row.id, applied.row.advice));
        }
    }
    let f = evaluation.facts;
    if f.log == LogState::Dirty {
        say("Mount it once on a kernel that takes it, and unmount, so that the log is recovered; then ask again."
            .into());
    }
    let mounts = |range: std::ops::Range<Version>| {
        kernels.iter().zip(verdicts).any(|(k, v)| v.mount != Mount::Refused && range.contains(&k.version))
    };
    let (old, scanning) = (mounts(version(3, 2)..version(3, 6)), mounts(version(2, 0)..version(5, 10)));
    let unit = size(f.bits_per_block().saturating_mul(f.rt_extent_bytes()));
    let exact = matches!(evaluation.answer("rt-bitmap-end-scan"), Some(Answer::Yes(_)));
    if f.classic_rt() && scanning && !exact {
        say(format!(
            "If the realtime section is grown for kernels before 5.10, keep its size off multiples of {unit} (rt-bitmap-end-scan)."
        ));
    }
    if !f.rt() && old {
        say("Do not add a realtime section for kernels 3.2 to 3.5: any realtime write or delete may oops in _xfs_buf_find or change a \
             foreign block (rt-uninitialised-nmap; no 3.2.y or 3.4.y release seen has the fix). First good: 3.6; 3.8 also refuses \
             wrong block numbers instead of crashing."
            .into());
    }
    if !f.rt() && scanning && (4096..=1 << 30).contains(&f.rt_extent_bytes()) {
        say(format!(
            "If one is added for kernels before 5.10, choose a size that is no multiple of 8 x blocksize x extent size (with the extent \
             size of this superblock: {unit}); 4.4.241, 4.9.241, 5.4.73 and others have the fix (rt-bitmap-end-scan). Its size against \
             the data section, stripe unit and width play no part."
        ));
    }
    if lines.is_empty() {
        return;
    }
    out.push_str("Advice\n");
    for line in lines {
        out.push_str(&wrapped(&line, WIDTH, "  ", "    "));
    }
}

/// One line for a warning of `info`.
pub fn warning(kernel: &Kernel, applied: &Applied<'_>) -> String {
    format!(
        "on the running kernel {}: {}: {}; {}. {}",
        kernel.name, applied.row.title, applied.evidence.text, applied.effect.outcome, applied.row.advice
    )
}
