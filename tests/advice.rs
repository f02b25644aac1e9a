//! Which superblock is believed, and what a repair is advised to do: never a step that costs data which another keeps.
//! What is right was tried with kernels and with xfs_repair 7.2 on copies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::overlay::Overlay;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use xfsinspect::check::context::Hooks;
use xfsinspect::check::{Options, Report, Verdict, check};
use xfsinspect::format::checksum;
use xfsinspect::source::Source;
use xfsinspect::units::ByteOffset;
use xfsinspect::volume::{Choice, Devices, OpenError, Volume};

const GROWN: &str = "c27-growfs-secondaries-stale";
/// Bytes of an AG of that image: 25600 blocks of 4 KiB.
const AG: u64 = 25600 * 4096;

fn volume(name: &str, patches: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Volume {
    let devices = common::devices(name);
    let data = Overlay::new(devices.data, patches);
    Volume::open(Devices { data, ..devices }, Choice::default()).unwrap()
}

fn judged(volume: &Volume) -> Report {
    check(volume, &Options::default(), Hooks { progress: &|_| {}, cancel: &Arc::new(AtomicBool::new(false)) })
}

fn rules(report: &Report) -> Vec<(&'static str, u64)> {
    report.summary.by_rule.iter().map(|(id, count)| (*id, *count)).collect()
}

fn bytes(name: &str, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    common::devices(name).data.read_at(ByteOffset(at), &mut bytes).unwrap();
    bytes
}

/// Six AGs; the copies in AG 1, 2 and 3 are from when there were four. Linux 6.1 and 7.2 mount it and show all files;
/// xfs_repair 6.1 and 7.2 write four AGs to the primary and junk the entries d5 and d6.
#[test]
fn an_interrupted_grow() {
    let report = judged(&volume(GROWN, []));
    assert_eq!(rules(&report), [("sb-copies-before-grow", 2)]);
    assert_eq!((report.summary.verdict, report.summary.ags, report.summary.inodes), (Verdict::Damaged, 6, 384));
    let [step] = report.summary.repair.as_slice() else { panic!("{:?}", report.summary.repair) };
    assert!(step.starts_with("not be done by xfs_repair") && step.contains("xfs_growfs"), "{step}");
}

/// The same, and sector 0 wiped: xfs_repair would take the three copies for right.
#[test]
fn an_interrupted_grow_and_no_primary() {
    let volume = volume(GROWN, [(0, vec![0; 512])]);
    assert_eq!((volume.superblock().agcount.0, volume.superblock().dblocks.0), (6, 133_120));
    let report = judged(&volume);
    assert_eq!(rules(&report), [("sb-copies-before-grow", 2), ("sb-unusable", 1)]);
    let [step] = report.summary.repair.as_slice() else { panic!("{:?}", report.summary.repair) };
    assert!(step.contains("write sector 0 from a copy that tells of the whole size"), "{step}");
}

/// The primary from before the grow, as most copies; the headers of AG 4 and 5 and their copies tell the rest.
#[test]
fn a_primary_from_before_the_grow() {
    let report = judged(&volume(GROWN, [(0, bytes(GROWN, AG, 512))]));
    assert_eq!(report.summary.ags, 6, "{:?}", rules(&report));
    assert!(report.summary.by_rule.contains_key("sb-primary-differs"), "{:?}", rules(&report));
    assert!(!report.summary.by_rule.contains_key("dir-entry-without-inode"), "{:?}", rules(&report));
    assert!(!report.summary.repair.iter().any(|step| step.contains("clear inode")), "{:?}", report.summary.repair);
}

/// A primary that tells of two AGs which are not there: here the copies are right, and a repair that believes them.
#[test]
fn a_size_without_headers_is_not_believed() {
    let gone = (4..6).map(|ag| (ag * AG, vec![0; 4 * 512]));
    let report = judged(&volume(GROWN, gone));
    assert_eq!(report.summary.ags, 4, "{:?}", rules(&report));
    assert!(report.summary.by_rule.contains_key("sb-primary-differs"), "{:?}", rules(&report));
}

/// One copy from before the grow, outvoted by the others: xfs_repair writes it from the primary, and loses nothing.
#[test]
fn a_single_old_copy() {
    let new = bytes(GROWN, 4 * AG, 512);
    let report = judged(&volume(GROWN, [(AG, new.clone()), (2 * AG, new)]));
    assert_eq!(rules(&report), [("sb-copy-differs", 2)]);
    assert_eq!(report.summary.repair, ["write superblock copy 3 from the primary"]);
}

/// The last AG grew within itself: only its headers tell.
#[test]
fn the_length_of_the_last_ag_decides() {
    let name = "v5-default";
    let old = volume(name, []);
    let (count, blocks) = (u64::from(old.geometry().ag_count), old.superblock().dblocks.0);
    let ag = u64::from(old.geometry().ag_blocks) * 4096;
    let shorter = |at: u64| {
        let mut sector = bytes(name, at, 512);
        sector[8..16].copy_from_slice(&(blocks - 100).to_be_bytes());
        sector[224..228].fill(0);
        let sum = checksum::compute(&sector, 224).unwrap().to_le_bytes();
        sector[224..228].copy_from_slice(&sum);
        (at, sector)
    };
    // All copies tell of less than the AGF and AGI of the last AG: the primary is right.
    let patches: BTreeMap<u64, Vec<u8>> = (1..count).map(|n| shorter(n * ag)).collect();
    let report = judged(&volume(name, patches.clone()));
    assert_eq!(rules(&report), [("sb-copies-before-grow", 1)]);
    // The primary alone: the copies are.
    let report = judged(&volume(name, [shorter(0)]));
    assert!(report.summary.by_rule.contains_key("sb-primary-differs"), "{:?}", rules(&report));
    assert!(!report.summary.by_rule.contains_key("sb-copies-before-grow"), "{:?}", rules(&report));
}

/// The log was moved to a device of its own in the primary alone, and is dirty there. Linux 6.18 recovers it with logdev=;
/// xfs_repair 6.1 and 7.2 make the old log the log again, and what waited in the new one is gone.
#[test]
fn a_log_that_was_moved() {
    let name = "d09-log-moved-to-external";
    let report = judged(&volume(name, []));
    assert_eq!(rules(&report), [("log-not-replayed", 1), ("sb-copies-before-log-moved", 1)]);
    let [step] = report.summary.repair.as_slice() else { panic!("{:?}", report.summary.repair) };
    assert!(step.starts_with("not be done by xfs_repair"), "{step}");
    // Without the device it cannot be told, and nothing is advised that would lose what may wait there.
    let data = Overlay::new(common::devices(name).data, []);
    let report = judged(&Volume::open(Devices::data_only(data), Choice::default()).unwrap());
    let [step] = report.summary.repair.as_slice() else { panic!("{:?}", report.summary.repair) };
    assert!(step.starts_with("wait: was the log moved"), "{step}");
}

/// A block of quota records is zeros. xfs_repair 7.2 writes 30 records, and keeps the file; the limits are gone.
#[test]
fn lost_quota_records() {
    let name = "d42-quota-block-of-zeros";
    let report = judged(&volume(name, []));
    let right = "write empty quota records in place of the damaged ones of inode 131 (their limits must be set again)";
    assert_eq!(report.summary.repair, [right]);
    let program = |args: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_xfsinspect")).args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let image = common::image(name).display().to_string();
    let (code, stdout, stderr) = program(&["quota", "--kind", "user", &image]);
    assert_eq!(code, Some(1), "{stderr}");
    let row: Vec<&str> = stdout.lines().find(|line| line.starts_with("5000")).unwrap().split_whitespace().collect();
    assert_eq!(row, ["5000", "?", "512", "?", "?", "?", "1", "?", "?"]);
    assert!(stderr.contains("records of ids 4980 to 5009 are lost"), "{stderr}");
    assert!(!stderr.contains("usage-mismatch"), "{stderr}");
    let (_, json, _) = program(&["quota", "--kind", "user", "--id", "5000", "--json", &image]);
    let line: serde_json::Value =
        serde_json::from_str(json.lines().find(|line| line.contains("\"id\":5000")).unwrap()).unwrap();
    assert_eq!(
        (&line["lost"], &line["blocks"]["hard"], &line["agrees"]),
        (&true.into(), &serde_json::Value::Null, &serde_json::Value::Null)
    );
}

/// AG 2: slots 116 to 1 and four blocks, as kernels before 4.5 wrote it with 118 slots; the last slot is null. Linux 6.1 and
/// 7.2 mount it.
#[test]
fn an_old_free_list() {
    let old = "c20-agfl-rhel7-layout";
    let report = judged(&volume(old, []));
    assert_eq!(rules(&report), [("agfl-old-layout", 1)]);
    assert_eq!((report.summary.verdict, report.summary.repair.len()), (Verdict::Clean, 0));

    // A block in the last slot: then it is a list of 119 slots, and its count is wrong.
    let at = 2 * 24576 * 4096 + 3 * 512;
    let mut list = bytes(old, at, 512);
    let last = 36 + 118 * 4;
    assert_eq!(list[last..last + 4], [0xff; 4]);
    list[last..last + 4].copy_from_slice(&100u32.to_be_bytes());
    list[32..36].fill(0);
    let sum = checksum::compute(&list, 32).unwrap().to_le_bytes();
    list[32..36].copy_from_slice(&sum);
    let report = judged(&volume(old, [(at, list)]));
    assert!(report.summary.by_rule.contains_key("agf-flcount-mismatch"), "{:?}", rules(&report));
    assert!(!report.summary.by_rule.contains_key("agfl-old-layout"), "{:?}", rules(&report));
}

/// A file system that begins at byte 1 MiB of a disk without a partition table, and one whose first AG is missing.
#[test]
fn where_else_it_begins() {
    let data = common::devices("v5-default").data;
    let searched = |shift: i64| {
        let source: Arc<dyn Source> = Arc::new(Shifted { data: Arc::clone(&data), shift });
        match Volume::open(Devices::data_only(source), Choice::default()) {
            Err(OpenError::NoSuperblock { searched, .. }) => searched,
            other => panic!("{other:?}"),
        }
    };
    // xfs_db opens it behind losetup -o 1048576; it has 4 AGs.
    let text = searched(1 << 20);
    assert!(
        text.ends_with(
            "; but XFS begins at byte 1048576 (4 sound superblocks with AG headers): inspect it with --offset 1048576"
        ),
        "{text}"
    );
    let text = searched(-(1 << 20));
    assert!(
        text.contains("3 sound superblocks with AG headers of an XFS that begins 1048576 bytes before the first byte"),
        "{text}"
    );
}

/// A device behind zeros, or without its first bytes.
struct Shifted {
    data: Arc<dyn Source>,
    shift: i64,
}

impl Source for Shifted {
    fn len(&self) -> u64 {
        self.data.len().checked_add_signed(self.shift).unwrap()
    }

    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> std::io::Result<()> {
        let skipped = usize::try_from(self.shift.saturating_sub_unsigned(offset.0)).unwrap_or(0).min(buf.len());
        let (zeros, rest) = buf.split_at_mut(skipped);
        zeros.fill(0);
        let at = offset.0 + zeros.len() as u64;
        if rest.is_empty() {
            Ok(())
        } else {
            self.data.read_at(ByteOffset(at.checked_add_signed(-self.shift).unwrap()), rest)
        }
    }
}
