//! A check of a whole file system, and what must hold of its report whatever lies on disk: for the fuzz target `check`
//! and tests/patches.rs.

#![allow(dead_code)] // print takes a part of it

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use xfsinspect::check::context::Hooks;
use xfsinspect::check::rt::{self, Depth, Sink, Unobserved};
use xfsinspect::check::{self, Class, Finding, Options, Verdict};
use xfsinspect::report;
use xfsinspect::volume::Volume;
use xfsinspect::walk::Walk;

/// Findings that are kept.
const KEPT: usize = 60;

/// Checks `volume`.
pub fn run(volume: &Volume) -> check::Report {
    let options = Options { threads: 1, max_findings: KEPT, ..Options::default() };
    let cancel = Arc::new(AtomicBool::new(false));
    let hooks = Hooks { progress: &|_| {}, cancel: &cancel };
    let found = check::check(volume, &options, hooks);
    let summary = &found.summary;
    assert!(found.findings.len() <= KEPT && found.findings.len() as u64 <= summary.findings);
    assert_eq!(summary.by_class.values().sum::<u64>(), summary.findings, "{summary:?}");
    assert_eq!(summary.by_rule.values().sum::<u64>(), summary.findings, "{summary:?}");
    assert!(summary.by_class.values().chain(summary.by_rule.values()).all(|&n| n > 0), "{summary:?}");
    let any = |classes: &[Class]| classes.iter().any(|class| summary.by_class.contains_key(class));
    let damage = any(&[Class::Corrupt, Class::XCorrupt]);
    assert_eq!(summary.verdict == Verdict::Damaged, damage, "{summary:?}");
    if summary.verdict == Verdict::Clean {
        assert!(!any(&[Class::XFailed, Class::Incomplete]), "{summary:?}");
    }
    for finding in &found.findings {
        assert!(summary.by_class.contains_key(&finding.rule.class), "{finding:?}");
        shown(finding);
    }
    printable(&report::check::summary(&found, 1 << 20));
    realtime(volume);
    found
}

/// The realtime check as the command `rt` runs it.
fn realtime(volume: &Volume) {
    let walk = Walk::new(volume);
    let (_, log) = check::journal::facts(volume);
    let explains = |finding: &Finding| log.explains(volume, finding);
    let mut findings: Vec<Finding> = Vec::new();
    let mut keep = |finding: Finding| findings.push(finding);
    let mut sink = Sink::new(&mut keep).with_log(&explains);
    rt::check(&walk, Depth::Everything, &mut Unobserved, &mut sink);
    let most = check::CATALOGUE.iter().map(|rules| rules.len()).sum::<usize>() * 200;
    assert!(findings.len() <= most);
    findings.iter().take(KEPT).for_each(shown);
}

/// A finding as text, one line or several: what it holds of the disk must not reach a terminal as it is.
fn shown(finding: &Finding) {
    assert!(!finding.rule.id.is_empty() && !finding.found.is_empty() && !finding.expected.is_empty(), "{finding:?}");
    printable(&report::check::finding(finding));
}

/// No control character but the end of a line.
pub fn printable(text: &str) {
    // Mostly plain ASCII, and long: one pass without branches says so.
    let plain = text.bytes().fold(true, |plain, byte| plain & (byte == b'\n' || (byte.wrapping_sub(32) < 95)));
    let bad = if plain { None } else { text.chars().find(|&c| c.is_control() && c != '\n') };
    assert!(bad.is_none(), "{bad:?} in {text:?}");
}
