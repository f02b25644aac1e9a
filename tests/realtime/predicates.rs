//! The null dereference of old kernels, predicate by predicate, and what else inodes and maps decide:
//! `testimages/rt/predicates` has an image for each. None fires on an image that is sound.

#[path = "../common/cases.rs"]
pub mod cases;

use crate::common;
use crate::patch::Image;
use cases::make;
use std::collections::BTreeMap;
use std::sync::Arc;
use xfsinspect::check::context::Hooks;
use xfsinspect::check::{Options, Verdict, check};
use xfsinspect::format::bnobt;
use xfsinspect::format::btree_block::Shape;
use xfsinspect::hazard::{Answer, Asked, Deep, Evaluation, Facts, Kernel, LogState, Severity, arithmetic};
use xfsinspect::source::FileSource;
use xfsinspect::units::Device;
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::Walk;
use xfsinspect::walk::btree::{At, Blocks, Root};
use xfsinspect::walk::log;

/// The rows that a walk decides.
const ROWS: [&str; 23] = [
    "rt-inode-fork-hole",
    "rt-inode-block-outside",
    "rt-file-extent-outside",
    "metadata-block-outside",
    "btree-pointer-outside",
    "rt-inode-size",
    "rt-extsize-inherit",
    "rt-file-extsize",
    "rt-reflinked-file",
    "rt-extent-unaligned",
    "rtinherit-without-rt",
    "rt-flag-without-device",
    "rt-bitmap-end-scan",
    "metadata-block-hole",
    "inode-cluster-bad",
    "inode-at-mount-invalid",
    "inode-at-mount-foreign",
    "root-inode-record",
    "inode-at-mount-unlinked",
    "rt-inode-map-unreadable",
    "rt-bitmap-uncounted",
    "rt-superblock-bad",
    "dirty-log-beyond-eofs",
];

/// Rows that have tests of their own.
const ELSEWHERE: [&str; 2] = ["rt-bitmap-end-scan", "rt-superblock-bad"];

fn facts(volume: &Volume) -> Facts {
    let log = if log::state(volume).is_dirty() == Some(false) { LogState::Clean } else { LogState::Dirty };
    let mut facts = Facts::new(volume, Asked { logical_sector: Some(512), log, headers: true });
    facts.deep = Some(Deep::read(volume));
    facts
}

fn fired(volume: &Volume) -> BTreeMap<&'static str, String> {
    let facts = facts(volume);
    let evaluation = Evaluation::new(&facts);
    ROWS.into_iter()
        .filter_map(|id| match evaluation.answer(id).unwrap() {
            Answer::Yes(evidence) => {
                assert!(evidence.place.is_some(), "{id} has no place");
                Some((id, evidence.text.clone()))
            }
            _ => None,
        })
        .collect()
}

pub fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// A line of the list: row, image, bytes, commands.
type Line = (String, String, Vec<(u64, Vec<u8>)>, Vec<String>);

fn lines() -> Vec<Line> {
    let text = std::fs::read_to_string(common::images().join("rt/predicates")).unwrap();
    let own = |text: &str| text.to_owned();
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let [id, name, bytes, commands] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
            let words: Vec<&str> = bytes.split_whitespace().collect();
            let bytes = words.chunks(2).map(|pair| (pair[0].parse().unwrap(), hex(pair[1]))).collect();
            (own(id), own(name), bytes, commands.split("; ").map(own).collect())
        })
        .collect()
}

/// The image with the bytes of a line.
fn made(image: &Image, bytes: &[(u64, Vec<u8>)]) -> Volume {
    image.with(Device::Data, bytes.iter().cloned().collect())
}

#[test]
fn every_predicate_fires_on_its_image_and_on_no_other() {
    let mut images: BTreeMap<String, Image> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for (id, name, bytes, _) in lines() {
        let image = images.entry(name.clone()).or_insert_with(|| Image::new(&name));
        assert!(fired(&image.volume).is_empty(), "{name}: {:?}", fired(&image.volume));
        let found = fired(&made(image, &bytes));
        assert!(found.contains_key(id.as_str()), "{id} {name} {bytes:?}: {found:?}");
        let text = &found[id.as_str()];
        if ["metadata-block-outside", "btree-pointer-outside", "rt-inode-block-outside"].contains(&id.as_str()) {
            assert!(text.contains("oops on 2.6.37 to 3.7"), "{id} {name}: {text}");
        }
        if id == "dirty-log-beyond-eofs" {
            assert!(text.contains("/ 8192 = AG 3: no such AG, there are 3"), "{name}: {text}");
        }
        if id == "metadata-block-hole" {
            // AGs of a power of two: the hole is looked up in an AG that does not exist.
            assert!(text.contains("looked up as -2") && text.contains("AG 4294967295"), "{name}: {text}");
        }
        seen.insert(id);
    }
    let missing: Vec<_> = ROWS.iter().filter(|id| !seen.contains(**id) && !ELSEWHERE.contains(id)).collect();
    assert!(missing.is_empty(), "no image for {missing:?}");
}

/// Linux 6.18 grew this file system from 4 to 8 AGs, made directories in them, and was stopped with all of it in the log.
/// By xfs_logprint -t sector 524289 (AG 4) waits there; the superblock on disk has 4 AGs, its copies 8.
#[test]
fn grown_then_crashed() {
    let packed = common::images().join("rt/grown-then-crashed.img.zst");
    let path = common::unpacked(&packed, "grown-then-crashed");
    let data = Arc::new(FileSource::open(&path).unwrap());
    let volume = Volume::open(Devices::data_only(data), Choice::default()).unwrap();
    let found = fired(&volume);
    assert_eq!(found.keys().collect::<Vec<_>>(), [&"dirty-log-beyond-eofs"]);
    let text = &found["dirty-log-beyond-eofs"];
    assert!(
        text.contains("at sector 524289: sector >> 3 = block 65536, / 16384 = AG 4: no such AG, there are 4"),
        "{text}"
    );
    // No damage: recovery writes the superblock that the copies have already.
    let cancel = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let report = check(&volume, &Options::default(), Hooks { progress: &|_| {}, cancel: &cancel });
    assert_eq!(report.summary.verdict, Verdict::DirtyLog, "{:?}", report.findings);
    let out = common::xfsinspect(&["rt", &path.display().to_string()]);
    assert_eq!(out.status.code(), Some(3), "{}", String::from_utf8_lossy(&out.stderr));
}

/// The commands of the list, run by xfs_db, change what the list says.
#[test]
fn xfs_db_makes_the_same_images() {
    if common::oracle("xfs_db").is_none() {
        common::skip("xfs_db 7 or newer was not found: the recipes of testimages/rt/predicates were not run");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (id, name, bytes, commands) in lines() {
        let copy = folder.path().join("image");
        let status = std::process::Command::new("cp")
            .args(["--sparse=always", "--no-preserve=mode"])
            .args([common::image(&name), copy.clone()])
            .status()
            .unwrap();
        assert!(status.success());
        let mut command = common::oracle("xfs_db").unwrap();
        command.arg("-x");
        let device = folder.path().join("rt");
        if let Some(rt) = common::find(&format!("{name}.rt")) {
            std::fs::copy(rt, &device).unwrap();
            command.arg("-R").arg(&device);
        }
        for one in &commands {
            command.args(["-c", one.as_str()]);
        }
        let out = command.arg(&copy).output().unwrap();
        let file = std::fs::File::open(&copy).unwrap();
        for (at, right) in bytes {
            let mut found = vec![0; right.len()];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, at).unwrap();
            assert_eq!(found, right, "{id} {name} byte {at}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
}

/// A section larger than the data section, odd extent sizes, stripes, realtime groups, zones.
#[test]
fn neighbours_do_not_fire() {
    for name in [
        "v5-rt-64k",
        "v5-rt-28k",
        "v4-rt-256k",
        "v5-rtgroups",
        "v5-rtgroups-16k",
        "v5-zoned",
        "v5-stripe",
        "v5-1k-rmap",
        "v4-512b",
        "v5-64k",
        "c53-rt-attached-by-growfs",
        "c64-rtgroups-64m",
    ] {
        let found = fired(&common::volume(name));
        assert!(found.is_empty(), "{name}: {found:?}");
        let facts = facts(&common::volume(name));
        assert_eq!(facts.deep.as_ref().unwrap().unread, None, "{name}");
    }
}

/// P1: armed while the last extent is free, latent while it is not, and nothing with spare bits.
#[test]
fn the_end_of_the_bitmap_is_armed_or_latent() {
    let answer = |volume: &Volume| {
        let facts = facts(volume);
        let evaluation = Evaluation::new(&facts);
        let Some(Answer::Yes(evidence)) = evaluation.answer("rt-bitmap-end-scan") else { return None };
        let verdict = |name: &str| {
            let kernel = Kernel::parse(name).unwrap();
            let verdict = evaluation.verdict(&kernel);
            let all = verdict.reasons.iter().chain(&verdict.notes);
            all.filter(|a| a.row.id == "rt-bitmap-end-scan").map(|a| a.effect.severity).next()
        };
        Some((evidence.text.clone(), verdict("3.4"), verdict("4.14"), verdict("5.4"), verdict("5.10")))
    };
    let exact = make("v4-rt-exact");
    let (text, old, middle, late, fixed) = answer(&exact.volume()).expect("fires");
    assert!(text.contains("armed: the last 32768 extents are free"), "{text}");
    let danger = Some(Severity::Danger);
    assert_eq!((old, middle, late, fixed), (danger, danger, danger, None));
    // The last bit cleared.
    let volume = exact.volume();
    let walk = Walk::new(&volume);
    let block = walk.inode(volume.superblock().rbmino).unwrap();
    let mut extents = xfsinspect::walk::extents::extents(&walk, block.inode(), xfsinspect::format::dinode::Fork::Data);
    let first = extents.next().unwrap().unwrap().startblock;
    let byte = volume.geometry().block_byte(first).unwrap().0 + volume.geometry().block_size() - 1;
    let mut data = exact.data.clone();
    data.put(byte, &[0x7f]);
    let devices = xfsinspect::volume::Devices::data_only(Arc::new(data));
    let latent = Volume::open(devices, xfsinspect::volume::Choice::default()).unwrap();
    let (text, old, middle, late, fixed) = answer(&latent).expect("fires");
    assert!(text.contains("latent"), "{text}");
    let note = Some(Severity::Note);
    assert_eq!((old, middle, late, fixed), (note, note, note, None));
    assert_eq!(answer(&make("v4-rt-spare").volume()), None);
}

/// The recorder of the report: 32 AGs of 7380047 blocks. A hole there is an I/O error, garbage is an oops.
#[test]
fn the_arithmetic_is_filled_in() {
    let image = Image::new("v5-rt-64k");
    let text = arithmetic(&image.volume, 5 << 13);
    // 4 AGs of 8192 blocks: agblklog 13.
    assert_eq!(
        text,
        "block 40960 >> 13 = AG 5, block 0 of it; 5 * 8192 + 0 = 40960, / 8192 = AG 5: no such AG, there are 4: null \
         pointer oops on 2.6.37 to 3.7"
    );
    assert!(arithmetic(&image.volume, u64::MAX - 1).contains("AG 4294967295: no such AG"));
}

/// Every child of every sound btree lies within its AG: the walk finds pointers at all.
#[test]
fn pointers_are_there() {
    let image = Image::new("v5-1k-rmap");
    let walk = Walk::new(&image.volume);
    let agf = xfsinspect::walk::group::agf(&walk, xfsinspect::units::AgNumber(0), &mut |_| {}).unwrap();
    let shape: &'static Shape = &bnobt::SHAPE;
    let root = Root::Ag { ag: xfsinspect::units::AgNumber(0), block: agf.bno_root, levels: agf.bno_level };
    let mut blocks = Blocks::new(&walk, shape, root);
    assert!(matches!(blocks.next_block().unwrap().unwrap().at, At::Block(_)));
    let _ = Device::Data;
}
