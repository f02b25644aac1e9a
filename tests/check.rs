//! `check` over images of real kernels: sound ones, damaged ones, unreadable ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::overlay::Overlay;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use xfsinspect::check::context::Hooks;
use xfsinspect::check::{CATALOGUE, Finding, Options, Report, Verdict, check};
use xfsinspect::format::log_item::LogItem;
use xfsinspect::format::{checksum, log as log_format};
use xfsinspect::source::Source;
use xfsinspect::units::{ByteOffset, Device};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::log;

fn run_with(devices: Devices, options: &Options) -> Report {
    let volume = Volume::open(devices, Choice::default()).unwrap_or_else(|e| panic!("{e:?}"));
    let cancel = Arc::new(AtomicBool::new(false));
    check(&volume, options, Hooks { progress: &|_| {}, cancel: &cancel })
}

fn run(devices: Devices) -> Report {
    run_with(devices, &Options { threads: 2, ..Options::default() })
}

/// Ids of the findings that are damage.
fn damage(report: &Report) -> BTreeSet<&'static str> {
    report.findings.iter().filter(|f| f.rule.class.is_damage()).map(|f| f.rule.id).collect()
}

/// Images of file systems that were filled and unmounted by a kernel. xfs_repair -n of 7.2 finds nothing in them.
fn is_clean(name: &str) -> bool {
    (name.starts_with("v4-") || name.starts_with("v5-")) && !name.ends_with("-cut")
}

/// What is odd in them, though no damage: made so on purpose.
const ODD: &[(&str, &str)] = &[("v5-rt-28k", "rtfile-filestream"), ("v5-zoned", "rtfile-filestream")];

#[test]
fn sound_file_systems_are_clean() {
    let mut looked = 0;
    for name in common::names().into_iter().filter(|name| is_clean(name)) {
        let report = run(common::devices(&name));
        let odd = |id: &str| ODD.contains(&(name.as_str(), id));
        let findings: Vec<String> =
            report.findings.iter().filter(|f| !odd(f.rule.id)).map(ToString::to_string).collect();
        assert!(report.summary.verdict == Verdict::Clean && findings.is_empty(), "{name}: {findings:#?}");
        looked += 1;
    }
    assert!(looked >= 19, "only {looked} images");
}

#[test]
fn a_dirty_log_is_no_damage() {
    for name in ["v4-cut", "v5-cut", "v5-rt-cut", "c14-frozen-snapshot", "c15-dirty-log-stale-counters"] {
        let report = run(common::devices(name));
        assert_eq!(report.summary.verdict, Verdict::DirtyLog, "{name}: {:?}", report.findings);
        assert!(damage(&report).is_empty(), "{name}: {:?}", damage(&report));
        assert!(report.summary.unjudged.iter().any(|what| what.contains("icount")), "{name}");
    }
}

/// Items by xfs_logprint -t of 7.2: buffers, inodes, new chunks of inodes.
#[test]
fn what_waits_in_the_log() {
    let logs = [
        ("v5-cut", [1940, 6652, 87]),
        ("v4-cut", [1598, 6652, 0]),
        ("v5-rt-cut", [2036, 6954, 87]),
        ("c14-frozen-snapshot", [2, 0, 0]),
        ("c15-dirty-log-stale-counters", [9, 201, 3]),
        ("c42-rt-dirty-log", [10, 7, 0]),
    ];
    for (name, expected) in logs {
        let volume = common::volume(name);
        let state = log::state(&volume);
        let recovery = log::verify(&volume, &state).unwrap().unwrap();
        let mut found = [0; 3];
        let fails = log::items(&volume, &state, &recovery, &mut |_, item| match item {
            LogItem::Buffer { .. } => found[0] += 1,
            LogItem::Inode { .. } => found[1] += 1,
            LogItem::NewInodes { .. } => found[2] += 1,
            other => panic!("{name}: {other:?}"),
        });
        assert_eq!((fails, found), (Ok(None), expected), "{name}");
    }
}

/// `v5-cut` was cut off with everything in the log: by xfs_logprint -t the root inode (128) waits there, the bitmap inode
/// (129) does not. The same damage is put right by recovery in the one and stays in the other.
#[test]
fn recovery_explains_only_what_it_writes() {
    for (ino, verdict, ids) in [(128u64, Verdict::DirtyLog, vec![]), (129, Verdict::Damaged, vec!["inode-bad-forkoff"])]
    {
        let mut devices = common::devices("v5-cut");
        let mut inode = vec![0; 512];
        devices.data.read_at(ByteOffset(ino * 512), &mut inode).unwrap();
        inode[82] = 0xf0;
        let crc = checksum::compute(&inode, 100).unwrap();
        inode[100..104].copy_from_slice(&crc.to_le_bytes());
        devices.data = Overlay::new(devices.data, vec![(ino * 512, inode)]);
        let report = run(devices);
        assert_eq!(report.summary.verdict, verdict, "{ino}: {:?}", report.findings);
        assert_eq!(damage(&report).into_iter().collect::<Vec<_>>(), ids, "{ino}");
    }
}

/// A clean file system whose last record is no unmount record: the log is dirty, and nothing waits in it.
fn dirtied(name: &str) -> Devices {
    let mut devices = common::devices(name);
    let volume = common::volume(name);
    let state = log::state(&volume);
    let (area, ends) = (state.area.unwrap(), *state.ends().unwrap());
    let record = log::Records::new(&volume, area, ends.last, ends.head).next().unwrap().unwrap();
    let header = (record.header_blocks * 512) as usize;
    let at = area.byte(ends.last).unwrap().0;
    let mut whole = vec![0; header + record.header.len as usize];
    devices.data.read_at(ByteOffset(at), &mut whole).unwrap();
    whole[header + 9] = 0;
    let sums = log_format::checksums(&whole[..header], &whole[header..], true).unwrap();
    whole[32..36].copy_from_slice(&sums[0].to_le_bytes());
    devices.data = Overlay::new(devices.data, vec![(at, whole)]);
    devices
}

/// Puts bytes into a block; its checksum lies at `crc`, and is made anew where that is wanted.
fn patched(mut devices: Devices, at: u64, size: usize, edits: &[(usize, &[u8])], crc: Option<usize>) -> Devices {
    let mut bytes = vec![0; size];
    devices.data.read_at(ByteOffset(at), &mut bytes).unwrap();
    for (offset, new) in edits {
        bytes[*offset..offset + new.len()].copy_from_slice(new);
    }
    if let Some(crc) = crc {
        let sum = checksum::compute(&bytes, crc).unwrap();
        bytes[crc..crc + 4].copy_from_slice(&sum.to_le_bytes());
    }
    devices.data = Overlay::new(devices.data, vec![(at, bytes)]);
    devices
}

/// What a block says of itself stands. A block without the uuid may be data of a file: kernel 6.18 left directories on
/// disk whose blocks had been freed and written over, with nothing of that in the log any more.
#[test]
fn a_block_damaged_in_itself_is_damage_with_a_dirty_log() {
    let clean = dirtied("v5-default");
    assert_eq!(run(clean.clone()).summary.verdict, Verdict::DirtyLog);
    let mut block = vec![0; 4096];
    let mut at = 0;
    while block[..4] != *b"XDD3" || block[8..16] != (at / 512_u64).to_be_bytes() {
        at += 4096;
        clean.data.read_at(ByteOffset(at), &mut block).unwrap();
    }
    let bestfree: &[(usize, &[u8])] = &[(50, &[0x33, 0x38])];
    let written: &[(usize, &[u8])] = &[(4, &[0xd5; 4092])];
    for (edits, crc, ids) in [
        (bestfree, Some(4), vec!["dirdata-bad-bestfree"]),
        (&[(2048, &[0x77; 8])], None, vec!["da-bad-crc"]),
        (written, None, vec![]),
    ] {
        let report = run(patched(clean.clone(), at, 4096, edits, crc));
        assert_eq!(damage(&report).into_iter().collect::<Vec<_>>(), ids, "{:?}", report.findings);
    }
}

/// The log of `c14` names the primary superblock alone, that of `v5-cut` all headers of AGs and not the superblock.
#[test]
fn headers_and_superblock_with_a_dirty_log() {
    let (frozen, cut) = ("c14-frozen-snapshot", "v5-cut");
    // xfs_growfs: the copies are written when the transaction is in the log, the primary later.
    let grown = |blocks: u64| [(8, blocks.to_be_bytes().to_vec()), (88, 3u32.to_be_bytes().to_vec())];
    let alignment = [(180, vec![0, 0, 0, 5])];
    let agf = [(52, vec![1])];
    for (name, at, edits, crc, verdict) in [
        (frozen, 0, &grown(3 * 24_576)[..], Some(224), Verdict::DirtyLog),
        (cut, 0, &grown(3 * 8192), Some(224), Verdict::Damaged),
        (frozen, 0, &alignment, Some(224), Verdict::Damaged),
        (frozen, 512, &agf, None, Verdict::Damaged),
        (cut, 512, &agf, None, Verdict::DirtyLog),
    ] {
        let edits: Vec<(usize, &[u8])> = edits.iter().map(|(at, new)| (*at, new.as_slice())).collect();
        let report = run(patched(common::devices(name), at, 512, &edits, crc));
        assert_eq!(report.summary.verdict, verdict, "{name} {at} {edits:?}: {:?}", report.findings);
    }
}

/// Operations that make no transaction: recovery fails there, although the checksum of the record is right.
#[test]
fn items_that_make_no_sense() {
    let volume = common::volume("c15-dirty-log-stale-counters");
    let state = log::state(&volume);
    let record = log::Records::live(&volume, &state).unwrap().next().unwrap().unwrap();
    let at = state.area.unwrap().byte(record.at).unwrap().0;
    let header = (record.header_blocks * 512) as usize;
    // The first operation starts a transaction, the second holds its header: 12 + 0 + 12 bytes on, TRAN in host order.
    for (offset, bytes, field) in [
        (header + 24, vec![0; 4], "th_magic"),
        (header + 8, vec![0x11], "oh_clientid"),
        (header + 16, vec![0x7f], "oh_len"),
    ] {
        let mut devices = common::devices("c15-dirty-log-stale-counters");
        let mut whole = vec![0; header + record.header.len as usize];
        devices.data.read_at(ByteOffset(at), &mut whole).unwrap();
        whole[offset..offset + bytes.len()].copy_from_slice(&bytes);
        let sums = log_format::checksums(&whole[..header], &whole[header..], true).unwrap();
        whole[32..36].copy_from_slice(&sums[0].to_le_bytes());
        devices.data = Overlay::new(devices.data, vec![(at, whole)]);
        let report = run(devices);
        let finding = report.findings.iter().find(|f| f.rule.id == "log-item-damaged");
        assert_eq!(finding.map(|f| f.place.field), Some(Some(field)), "{:?}", report.findings);
    }
}

/// Cases from the field: the image, the findings that are damage, and a place that one of them must name.
const CASES: &[(&str, &[&str], &str)] = &[
    ("c01-first-sector-zeroed", &["sb-unusable"], "sb 0.magicnum"),
    ("c04-lv-reduced", &["sb-device-too-short"], "sb 0.dblocks"),
    ("c10-swidth-zero", &["sb-stripe-impossible"], "sb 0.width"),
    ("c13-agf-overcount", &["agf-freeblks-beyond-length"], "agf 3.freeblks"),
    ("c16-lsn-ahead", &["log-lsn-ahead"], "lsn"),
    ("c17-agf-agi-agfl-crc", &["agf-bad-crc", "agfl-bad-crc", "agi-bad-crc"], "agf 2.crc"),
    ("c18-nextents-mismatch", &["inode-nextents-mismatch"], "inode 131.nextents"),
    ("c25-external-log-wrong-uuid", &["log-of-another-fs"], "log block"),
    ("c26-primary-shrunk", &["sb-primary-differs"], "sb 0.agcount"),
    ("c30-needsrepair", &["sb-needs-repair"], "sb 0.features_incompat"),
    ("c31-dalign-bit-no-unit", &["sb-dalign-without-unit"], "sb 0.versionnum"),
    ("c33-runt-rt", &["sb-rextents-mismatch"], "sb 0.rextents"),
    ("c34-rtflag-without-rtdev", &["rtfile-without-section"], "inode 131.core.realtime"),
    ("c44-log-h_size-huge", &["log-record-damaged"], "log block 69.h_size"),
    ("c44-log-h_size-huge", &["log-record-damaged"], "log block 133.h_len"),
    ("c45-sb-absurd-shifts", &["sb-unusable"], "sb 0.magicnum"),
    ("c51-inode-cluster-zeroed", &["inobt-inode-block-zeroed"], "inodes 152 to 159 (fsblock 19)"),
];

#[test]
fn cases_from_the_field_are_named() {
    for (name, ids, place) in CASES {
        let report = run(common::devices(name));
        assert_eq!(report.summary.verdict, Verdict::Damaged, "{name}");
        let found = damage(&report);
        assert!(ids.iter().all(|id| found.contains(id)), "{name}: {found:?}");
        assert!(report.findings.iter().any(|f| f.path().contains(place)), "{name}: no finding at {place}");
    }
}

/// A log device beside an internal log: kernels refuse it, the file system is sound.
#[test]
fn a_log_device_that_is_not_needed_is_said() {
    let devices = Devices { log: common::devices("v5-extlog").log, ..common::devices("v5-default") };
    let report = run(devices);
    let found: Vec<_> = report.findings.iter().map(|f| (f.rule.id, f.found.as_str())).collect();
    // logstart by xfs_db.
    assert_eq!((report.summary.verdict, found), (Verdict::Clean, vec![("log-device-not-needed", "32775")]));
}

/// Values in case C13: the btrees hold 16374 free blocks, as its README says.
#[test]
fn the_right_count_is_told() {
    let report = run(common::devices("c13-agf-overcount"));
    let finding = report.findings.iter().find(|f| f.rule.id == "agf-freeblks-beyond-length").unwrap();
    assert_eq!(
        (finding.found.as_str(), finding.expected.starts_with("16374")),
        ("16432", true),
        "{}",
        finding.expected
    );
    // Record 69 of the log of C44: its h_size is the word at byte 320 (struct xlog_rec_header).
    let report = run(common::devices("c44-log-h_size-huge"));
    let bytes: Vec<u64> =
        report.findings.iter().filter(|f| f.place.field == Some("h_size")).map(|f| f.place.byte.0).collect();
    assert_eq!(bytes, [201_386_496 + 320]);
    let report = run(common::devices("c51-inode-cluster-zeroed"));
    let finding = report.findings.iter().find(|f| f.rule.id == "inobt-inode-block-zeroed").unwrap();
    assert_eq!((finding.place.byte.0, finding.object_path.as_deref()), (77_824, Some(&b"d/f21"[..])));
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// tests/damage/*.jsonl: one damaged field each, its checksum mended. xfs_repair -n of 7.2 finds all but those whose
/// `repair` is 0. The id is that of a finding that must be there, the path where it or another one must stand; one damage
/// is no more than 25 findings. `all`, where it is there, holds every finding: id, path, what was found and expected. A
/// finding that names the damaged field has its byte.
#[test]
fn single_fields_are_found() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/damage");
    let (mut looked, mut placed) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        for line in std::fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| case[key].as_str().unwrap();
            let mut devices = common::devices(text("image"));
            let patches = case["patch"].as_array().unwrap().iter().map(|patch| {
                let bytes = hex(patch["hex"].as_str().unwrap());
                (patch["offset"].as_u64().unwrap(), bytes.repeat(patch["repeat"].as_u64().unwrap_or(1) as usize))
            });
            let patches: Vec<(u64, Vec<u8>)> = patches.collect();
            let pieces: Vec<Range<u64>> = patches.iter().map(|(at, bytes)| *at..*at + bytes.len() as u64).collect();
            if case["device"].as_str() == Some("rt") {
                let inner = devices.rt.take().unwrap();
                devices.rt = Some(Overlay::new(inner, patches));
            } else {
                devices.data = Overlay::new(devices.data, patches);
            }
            let report = run(devices);
            let found = damage(&report);
            assert!(found.contains(text("id")), "{line}: {found:?}");
            let place = case["path"].as_str().unwrap_or_default();
            let places: Vec<String> = report.findings.iter().map(Finding::path).collect();
            assert!(places.iter().any(|path| path.starts_with(place)), "{line}: {places:?}");
            assert!(report.summary.findings <= 25, "{line}: {} findings", report.summary.findings);
            if let Some(all) = case["all"].as_array() {
                let says = |f: &Finding| format!("{}: {}, {} -> {}", f.rule.id, f.path(), f.found, f.expected);
                let said: Vec<String> = report.findings.iter().map(says).collect();
                assert_eq!(&said, all, "{line}");
            }
            assert_eq!(report.summary.verdict, Verdict::Damaged, "{line}");
            looked += 1;
            let name = text("field").rsplit('.').next().unwrap();
            let kind = text("structure").split('.').next().unwrap();
            let named = |f: &&Finding| {
                let within = f.place.structure.rsplit(" › ").find(|part| !part.contains('[')).unwrap();
                f.place.field == Some(name) && f.place.length <= 64 && within.starts_with(kind)
            };
            for finding in report.findings.iter().filter(named) {
                let field = finding.place.byte.0..finding.place.byte.0 + finding.place.length;
                let meets = pieces.iter().any(|piece| piece.start < field.end && field.start < piece.end);
                assert!(meets, "{line}: {}", finding.place);
                placed += 1;
            }
        }
    }
    assert!(looked >= 100 && placed >= 40, "only {looked} cases, {placed} of them placed");
}

/// Bytes to write, and where.
type Patches = Vec<(u64, Vec<u8>)>;

/// The cases of tests/damage/pile.jsonl, with their patches.
fn piles() -> Vec<(Value, Patches)> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/damage/pile.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let patch = |patch: &Value| (patch["offset"].as_u64().unwrap(), hex(patch["hex"].as_str().unwrap()));
    let patches = |case: &Value| case["patch"].as_array().unwrap().iter().map(patch).collect();
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.map(|case| (case.clone(), patches(&case))).collect()
}

/// What follows from a damage is told with it, and not counted.
#[test]
fn what_follows_is_folded() {
    for (case, patches) in piles() {
        let followed: Vec<(&str, u64)> = match (case["structure"].as_str().unwrap(), case["field"].as_str().unwrap()) {
            ("inode.dir-extents", "u3.bmx[0].blockcount") => {
                vec![("space-block-owned-twice", 1), ("dir-missing-block", 77)]
            }
            ("refcntbt.leaf-root", _) => vec![("inode-shared-without-flag", 6)],
            ("inode.root", _) => vec![("dir-disconnected", 1), ("parent-without-entry", 1)],
            _ => continue,
        };
        let mut devices = common::devices(case["image"].as_str().unwrap());
        devices.data = Overlay::new(devices.data, patches);
        let report = run_with(devices, &Options { threads: 1, ..Options::default() });
        let cause = report.findings.iter().find(|f| f.rule.id == case["id"].as_str().unwrap()).unwrap();
        let told: Vec<(&str, u64)> = cause.followed.iter().map(|one| (one.rule.id, one.count)).collect();
        assert_eq!(told, followed, "{case}");
        let counted: u64 = report.summary.by_rule.values().sum();
        assert_eq!(
            (counted, report.summary.folded >= followed.len() as u64),
            (report.summary.findings, true),
            "{case}"
        );
        assert!(followed.iter().all(|(id, _)| !report.summary.by_rule.contains_key(id)), "{case}");
    }
}

/// Dozens of damages at once: the report is the same every time, with any number of threads.
#[test]
fn order_and_choice_hang_on_no_thread() {
    let piles = piles();
    for name in ["v5-quota", "v5-default"] {
        let of = piles.iter().filter(|(case, _)| case["image"].as_str() == Some(name) && case["device"].is_null());
        let patches: Vec<(u64, Vec<u8>)> = of.flat_map(|(_, patches)| patches.clone()).collect();
        let mut devices = common::devices(name);
        devices.data = Overlay::new(devices.data, patches);
        let report = |threads| {
            let report = run_with(devices.clone(), &Options { threads, ..Options::default() });
            format!("{:#?} {:#?}", report.findings, report.summary)
        };
        let first = report(1);
        for threads in [1, 2, 4, 2, 4, 9] {
            assert!(report(threads) == first, "{name}, {threads} threads");
        }
    }
}

/// A fault that all superblocks share is told once; inodes that were left on unlinked lists are told once for the file
/// system, and their AGs are not called damaged.
#[test]
fn one_fault_is_one_finding() {
    let report = run(common::devices("c10-swidth-zero"));
    let told: Vec<_> = report.findings.iter().map(|f| (f.rule.id, f.path(), f.more)).collect();
    assert_eq!(told, [("sb-stripe-impossible", "sb 0.width".to_owned(), 3)]);
    assert_eq!(report.summary.repair, ["mend width of superblock 0", "mend width of superblocks 1 to 3"]);
}

/// Two damages of one image: neither hides the other.
#[test]
fn two_damages_are_both_named() {
    let piles = piles();
    let mut looked = 0;
    for (i, (one, patches)) in piles.iter().enumerate() {
        for (other, more) in &piles[i + 1..] {
            let rt = |case: &Value| case["device"].as_str() == Some("rt");
            // Inodes of a record that is lost are not found.
            let inobt = |case: &Value| case["structure"].as_str().unwrap().starts_with("inobt");
            if one["image"] != other["image"] || rt(one) || rt(other) || inobt(one) || inobt(other) {
                continue;
            }
            let mut devices = common::devices(one["image"].as_str().unwrap());
            devices.data = Overlay::new(devices.data, patches.iter().chain(more).cloned());
            let report = run(devices);
            for case in [one, other] {
                let all = case["all"].as_array().unwrap().iter().map(|said| said.as_str().unwrap());
                let id = case["id"].as_str().unwrap();
                let cause = all.into_iter().find(|said| said.starts_with(id)).unwrap();
                let place = cause.split(", ").next().unwrap();
                let said = |f: &Finding| format!("{}: {}", f.rule.id, f.path());
                assert!(report.findings.iter().any(|f| said(f) == place), "{place}: {:#?}", report.findings);
            }
            looked += 1;
        }
    }
    assert!(looked >= 10, "only {looked} pairs");
}

/// A device with a range that cannot be read.
struct Failing {
    inner: Arc<dyn Source>,
    bad: Range<u64>,
    hits: AtomicU64,
}

impl Source for Failing {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        if offset.0 < self.bad.end && offset.0 + buf.len() as u64 > self.bad.start {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::other("injected"));
        }
        self.inner.read_at(offset, buf)
    }
}

/// Unreadable sectors of v5-default: headers of AG 1, btree roots, an inode chunk. Each is a finding of class incomplete,
/// and nothing is called damaged.
#[test]
fn unreadable_sectors_are_no_damage() {
    let volume = common::volume("v5-default");
    let geometry = volume.geometry().clone();
    let ag1 = geometry.ag_start(xfsinspect::units::AgNumber(1)).unwrap().0;
    let block = |block: u64| ag1 + block * 4096..ag1 + (block + 1) * 4096;
    let header = |sector: u64| ag1 + sector * 512..ag1 + (sector + 1) * 512;
    let root = volume.geometry().inode_byte(volume.superblock().rootino).unwrap().0;
    let places = [header(0), header(1), header(2), header(3), block(1), block(2), block(3), block(4), root..root + 512];
    for bad in places {
        let mut devices = common::devices("v5-default");
        let failing = Arc::new(Failing { inner: devices.data, bad: bad.clone(), hits: AtomicU64::new(0) });
        devices.data = Arc::clone(&failing) as Arc<dyn Source>;
        let report = run(devices);
        assert!(failing.hits.load(Ordering::Relaxed) > 0, "{bad:?} was never read");
        assert!(damage(&report).is_empty(), "{bad:?}: {:?}", damage(&report));
        assert_eq!(report.summary.verdict, Verdict::Incomplete, "{bad:?}");
        let unreadable = report.findings.iter().find(|f| f.rule.id == "check-unreadable").expect("a finding");
        let place = &unreadable.place;
        assert_eq!(place.device, Device::Data);
        assert!(place.byte.0 < bad.end && place.byte.0 + place.length > bad.start, "{bad:?}: {place}");
    }
}

#[test]
fn findings_are_bounded_and_counted() {
    // Case C16: thousands of structures are ahead of the log, and one finding says so.
    let report = run(common::devices("c16-lsn-ahead"));
    assert_eq!(report.summary.findings, 1);
    // A file system whose uuid changed under it breaks a rule with every block; not all findings are kept.
    let mut devices = common::devices("v5-default");
    let uuid_of_primary = (32u64, vec![0x5a; 16]);
    let crc = {
        let mut sector = vec![0; 512];
        devices.data.read_at(ByteOffset(0), &mut sector).unwrap();
        sector[32..48].fill(0x5a);
        xfsinspect::format::checksum::compute(&sector, 224).unwrap().to_le_bytes().to_vec()
    };
    devices.data = Overlay::new(devices.data, [uuid_of_primary, (224, crc)]);
    let report = run_with(devices, &Options { threads: 1, max_findings: 10, ..Options::default() });
    assert!(report.findings.len() <= 10);
    assert_eq!(report.summary.verdict, Verdict::Damaged);
}

#[test]
fn a_part_can_be_asked_for() {
    let only = |ags: Vec<u32>, only: Vec<String>| Options { threads: 1, ags, only, ..Options::default() };
    let c17 = || common::devices("c17-agf-agi-agfl-crc");
    assert_eq!(run_with(c17(), &only(vec![1], vec![])).summary.verdict, Verdict::Clean);
    assert_eq!(damage(&run_with(c17(), &only(vec![2], vec![]))).len(), 3);
    assert_eq!(damage(&run_with(c17(), &only(vec![], vec!["agfl".to_owned()]))), BTreeSet::from(["agfl-bad-crc"]));
    assert_eq!(
        damage(&run_with(c17(), &only(vec![], vec!["agi-bad-crc".to_owned()]))),
        BTreeSet::from(["agi-bad-crc"])
    );
}

#[test]
fn a_run_can_be_stopped() {
    let volume = common::volume("v5-default");
    let cancel = Arc::new(AtomicBool::new(true));
    let report = check(&volume, &Options::default(), Hooks { progress: &|_| {}, cancel: &cancel });
    assert!(report.summary.cancelled);
    assert_eq!(report.summary.verdict, Verdict::Incomplete);
}

#[test]
fn json_is_as_promised() {
    let output = common::xfsinspect(&["check", "--json", "@c13-agf-overcount"]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys = [
        "type",
        "id",
        "class",
        "device",
        "byte",
        "structure",
        "field",
        "path",
        "found",
        "expected",
        "message",
        "object_path",
    ];
    let (summary, findings) = lines.split_last().unwrap();
    for finding in findings {
        assert!(keys.iter().all(|key| finding.get(key).is_some()), "{finding}");
    }
    assert_eq!((summary["type"].as_str(), summary["verdict"].as_str()), (Some("summary"), Some("damaged")));
    assert_eq!(summary["findings"].as_u64(), Some(findings.len() as u64));
    let dirty = common::xfsinspect(&["check", "--json", "@v5-cut"]);
    assert_eq!(dirty.status.code(), Some(3));
    let sound = common::xfsinspect(&["check", "@v5-default"]);
    assert_eq!(sound.status.code(), Some(0));
    assert_eq!(common::xfsinspect(&["check", "--only", "no-such-rule", "@v5-default"]).status.code(), Some(2));
    assert_eq!(common::xfsinspect(&["check", "--ag", "4", "@v5-default"]).status.code(), Some(2));
}

#[test]
fn the_catalogue_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/checks.md");
    let now = xfsinspect::report::check::catalogue();
    if std::env::var_os("XFSINSPECT_BLESS").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(now == before, "docs/checks.md is stale: XFSINSPECT_BLESS=1 cargo test --test check the_catalogue");
    let rules = CATALOGUE.iter().map(|rules| rules.len()).sum::<usize>();
    assert!(rules > 100, "only {rules} rules");
}
