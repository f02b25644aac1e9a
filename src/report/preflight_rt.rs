//! `preflight` about the realtime section: is it sound, and its figures.

use super::preflight::WIDTH;
use super::text::size;
use super::wrap::wrapped;
use crate::hazard::kernel::v;
use crate::hazard::{Answer, Evaluation, Evidence, Facts, Kernel, LogState, Row, Severity};
use std::fmt::Write;

/// Rows about the realtime section alone, by prefix of their ids.
fn about_realtime(row: &Row) -> bool {
    row.id.starts_with("rt-") || row.id.starts_with("rtgroups") || row.id.starts_with("zoned")
}

/// Of the inodes that a mount loads: does this one belong to the realtime section?
fn is_realtime_inode(f: &Facts, row: &Row, evidence: &Evidence) -> bool {
    let of_inodes = ["inode-cluster-bad", "inode-at-mount-invalid", "inode-at-mount-foreign"].contains(&row.id);
    f.rt() && of_inodes && !evidence.text.starts_with("root directory")
}

/// What is to be said of the realtime section.
pub(super) fn realtime(out: &mut String, evaluation: &Evaluation<'_>) {
    let f = evaluation.facts;
    // What the newest release still refuses is wrong with the section; what only older ones cannot cope with is not.
    let newest = Kernel::upstream(v(7, 2));
    let refused = |row| evaluation.effect(row, &newest).is_some_and(|e| e.severity >= Severity::Ro);
    let bad: Vec<String> = evaluation
        .answers
        .iter()
        .filter(|(row, _)| refused(row))
        .filter_map(|(row, answer)| match answer {
            Answer::Yes(evidence) if about_realtime(row) || is_realtime_inode(f, row, evidence) => {
                Some(format!("{}: {}", row.id, evidence.text))
            }
            _ => None,
        })
        .collect();
    if !f.rt() {
        let state = if bad.is_empty() { "none" } else { "none, but its figures are wrong" };
        let _ = writeln!(out, "Realtime section: {state}");
        let mut text = "no realtime section; nothing to trigger: files cannot be realtime".to_owned();
        if !f.v5() {
            text.push_str(
                ". If one is added, kernels 3.2 to 3.5 are unsafe for any realtime write (rt-uninitialised-nmap)",
            );
        }
        out.push_str(&wrapped(&text, WIDTH, "  ", "  "));
    } else {
        let armed = matches!(evaluation.answer("rt-bitmap-end-scan"), Some(Answer::Yes(_)));
        let state = match (bad.is_empty(), armed) {
            (false, _) => "NOT SOUND",
            (true, true) => "sound, but of a size that kernels before 5.10 cannot cope with (rt-bitmap-end-scan)",
            (true, false) => "sound",
        };
        let before = if f.log == LogState::Dirty {
            " by its figures; bitmap, summary and files cannot be judged before the log is recovered"
        } else {
            ""
        };
        let _ = writeln!(out, "Realtime section: {state}{before}");
        out.push_str(&wrapped(&section(f), WIDTH, "  ", "    "));
        let seen = match &f.deep {
            Some(_) => "whether bitmap, summary and files agree is what the command rt tells",
            None => "the bitmap and summary themselves, and realtime files, were not looked at",
        };
        let _ = writeln!(out, "  {seen}");
        if !f.features.has_metadir() || f.features.has_zoned() {
            out.push_str(&wrapped(QUOTA, WIDTH, "  ", "    "));
        }
    }
    for text in bad {
        out.push_str(&wrapped(&text, WIDTH, "  ", "    "));
    }
    out.push('\n');
}

/// Case C56: nothing fails, and nothing is counted.
const QUOTA: &str = "quotas are turned off at mount, whatever the mount options say: they need realtime groups without zones \
    (6.13, mkfs.xfs -m metadir=1)";

/// `1 block`, `2 blocks`.
fn count(blocks: u64) -> String {
    format!("{blocks} block{}", if blocks == 1 { "" } else { "s" })
}

/// Size, extents, bitmap and summary in numbers.
fn section(f: &Facts) -> String {
    let sb = &f.sb;
    let bytes = sb.rblocks.0.saturating_mul(f.block());
    let mut text = format!(
        "{} ({}), {} extents of {} ({})",
        count(sb.rblocks.0),
        size(bytes),
        sb.rextents,
        size(f.rt_extent_bytes()),
        count(sb.rextsize.into())
    );
    if f.features.has_zoned() {
        let place = if f.internal_rt() {
            format!("on the data device from block {}", f.zoned.0)
        } else {
            "on its own device".into()
        };
        let _ = write!(
            text,
            "; zoned, {place}, {} zones of {} extents, {} blocks kept back",
            sb.rgcount, sb.rgextents, f.zoned.1
        );
        return text;
    }
    if f.features.has_metadir() {
        let _ = write!(
            text,
            "; {} groups of {} extents, bitmap of {} each",
            sb.rgcount,
            sb.rgextents,
            count(sb.rbmblocks.0.into())
        );
        return text;
    }
    // By the extents; where the superblock says otherwise, that is the fault.
    let levels = u64::from(sb.rextents.0.checked_ilog2().unwrap_or(0)).saturating_add(1);
    let stated = u64::from(sb.rextslog).saturating_add(1);
    let wrong = if stated == levels { String::new() } else { format!(" (the superblock says {stated})") };
    let bitmap = sb.rextents.0.div_ceil(f.bits_per_block().max(1));
    let present = u64::from(sb.rbmblocks.0);
    let short = if present == bitmap { String::new() } else { format!(" (the superblock says {present})") };
    let summary = levels.saturating_mul(4).saturating_mul(bitmap);
    let blocks = summary.div_ceil(f.block().max(1));
    let _ = write!(
        text,
        "; bitmap {} ({}){short}, summary {levels} level{}{wrong}, {summary} bytes in {}",
        count(bitmap),
        size(bitmap.saturating_mul(f.block())),
        if levels == 1 { "" } else { "s" },
        count(blocks)
    );
    text
}
