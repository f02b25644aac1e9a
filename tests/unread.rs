//! What cannot be read, or was not looked at, is never damage: devices that fail in every way, runs that are stopped at every
//! read, parts that are asked for. A sound file system is never called damaged, and what is missing is named.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use xfsinspect::check::context::Hooks;
use xfsinspect::check::{CATALOGUE, Options, Report, Verdict, check};
use xfsinspect::source::Source;
use xfsinspect::units::{ByteOffset, Device};
use xfsinspect::volume::{Choice, Devices, Volume};

/// How reads fail. Reads of all devices are counted together, from 0 on.
#[derive(Clone, Debug)]
enum Fault {
    None,
    /// Those that touch these bytes of a device.
    Bytes(usize, Range<u64>),
    /// Those with these numbers.
    Reads(Range<u64>),
    /// From this one on so many of so many.
    Flaky(u64, u64, u64),
    /// None, but the run is stopped at this one.
    Stop(u64),
}

struct Disk {
    inner: Arc<dyn Source>,
    device: usize,
    shared: Arc<Shared>,
}

struct Shared {
    fault: Fault,
    count: AtomicU64,
    hits: AtomicU64,
    stop: Arc<AtomicBool>,
    seen: Mutex<BTreeSet<(usize, u64, u64)>>,
}

impl Source for Disk {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        let shared = &self.shared;
        let number = shared.count.fetch_add(1, Ordering::Relaxed);
        let (start, end) = (offset.0, offset.0 + buf.len() as u64);
        let fails = match &shared.fault {
            Fault::None => {
                shared.seen.lock().unwrap().insert((self.device, start, end));
                false
            }
            Fault::Bytes(device, bytes) => *device == self.device && start < bytes.end && bytes.start < end,
            Fault::Reads(numbers) => numbers.contains(&number),
            Fault::Flaky(from, count, of) => number >= *from && (number - from) % of < *count,
            Fault::Stop(at) => {
                shared.stop.fetch_or(number == *at, Ordering::Relaxed);
                false
            }
        };
        if fails {
            shared.hits.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::from_raw_os_error(5));
        }
        self.inner.read_at(offset, buf)
    }
}

fn shared(fault: Fault) -> Arc<Shared> {
    Arc::new(Shared { fault, count: 0.into(), hits: 0.into(), stop: Arc::default(), seen: Mutex::default() })
}

fn faulty(devices: &Devices, shared: &Arc<Shared>) -> Devices {
    let disk = |device: usize, inner: &Arc<dyn Source>| -> Arc<dyn Source> {
        Arc::new(Disk { inner: Arc::clone(inner), device, shared: Arc::clone(shared) })
    };
    Devices {
        data: disk(0, &devices.data),
        log: devices.log.as_ref().map(|log| disk(1, log)),
        rt: devices.rt.as_ref().map(|rt| disk(2, rt)),
    }
}

fn once(threads: usize) -> Options {
    Options { threads, ..Options::default() }
}

/// Opens and checks; `None` where it cannot even be opened.
fn run(devices: &Devices, fault: Fault) -> (Option<Report>, Arc<Shared>) {
    let shared = shared(fault);
    let report = Volume::open(faulty(devices, &shared), Choice::default()).ok().map(|volume| {
        // Where reading fails at the superblock, too, there is less to come.
        check(&volume, &once(1), Hooks { progress: &|_| {}, cancel: &shared.stop })
    });
    (report, shared)
}

fn devices(name: &str) -> Devices {
    let tiny = common::images().join("tiny").join(format!("{name}.img.zst"));
    if !tiny.exists() {
        return common::devices(name);
    }
    let one = |name: String| -> Option<Arc<dyn Source>> {
        let packed = common::images().join("tiny").join(format!("{name}.img.zst"));
        packed.exists().then(|| {
            let path = common::unpacked(&packed, &name);
            Arc::new(xfsinspect::source::Cached::new(xfsinspect::source::FileSource::open(&path).unwrap()))
                as Arc<dyn Source>
        })
    };
    Devices { data: one(name.to_owned()).unwrap(), log: None, rt: one(format!("{name}.rt")) }
}

/// How a sweep went: runs, and what was wrong with some of them.
#[derive(Default)]
struct Sweep {
    runs: BTreeMap<&'static str, u64>,
    wrong: Vec<String>,
}

impl Sweep {
    fn judge(&mut self, kind: &'static str, what: &str, report: Option<&Report>, whole: &Report, named: bool) {
        *self.runs.entry(kind).or_default() += 1;
        let Some(report) = report else { return };
        let summary = &report.summary;
        let damage: Vec<String> =
            report.findings.iter().filter(|f| f.rule.class.is_damage()).map(|f| format!("{f}")).collect();
        if summary.verdict == Verdict::Damaged && whole.summary.verdict != Verdict::Damaged {
            self.wrong.push(format!("{kind} {what}: damaged: {}", damage.join("; ")));
        } else if named && summary.verdict == Verdict::Clean {
            self.wrong.push(format!("{kind} {what}: clean"));
        } else if named
            && report.findings.iter().all(|f| f.rule.id == "log-not-replayed")
            && summary.unjudged.is_empty()
        {
            self.wrong.push(format!("{kind} {what}: what is missing is not named"));
        }
        if !named && summary.verdict != whole.summary.verdict {
            self.wrong.push(format!("{kind} {what}: {:?}, not {:?}", summary.verdict, whole.summary.verdict));
        }
    }
}

/// All sweeps over one image, each with at most `most` runs.
fn sweep(name: &str, most: usize) -> Sweep {
    let devices = devices(name);
    let (whole, seen) = run(&devices, Fault::None);
    let whole = whole.unwrap();
    let mut sweep = Sweep::default();
    if whole.summary.verdict == Verdict::Damaged {
        return sweep;
    }
    let block = Volume::open(devices.clone(), Choice::default()).unwrap().geometry().block_size();
    let mut blocks: BTreeSet<(usize, u64)> = BTreeSet::new();
    for &(device, start, end) in seen.seen.lock().unwrap().iter() {
        // Sectors of headers one by one, all else by blocks.
        let step = if end - start < block { 512 } else { block };
        blocks.extend((start / step * step..end).step_by(step as usize).map(|at| (device, at)));
    }
    let every = |count: usize| count.div_ceil(most).max(1);
    let nothing = vec![0u8; block as usize];
    let mut bytes = nothing.clone();
    let blocks: Vec<(usize, u64)> = blocks.into_iter().collect();
    let mut known: Vec<(usize, u64)> = Vec::new();
    for &(device, at) in &blocks {
        let source = [Some(&devices.data), devices.log.as_ref(), devices.rt.as_ref()][device].unwrap();
        let length = (source.len() - at).min(block) as usize;
        source.read_at(ByteOffset(at), &mut bytes[..length]).unwrap();
        // Of holes of the image one is as good as all.
        if bytes[..length] != nothing[..length] || known.is_empty() {
            known.push((device, at));
        }
    }
    let step = every(known.len());
    for &(device, at) in known.iter().step_by(step) {
        let length = if at % block == 0 && at > 4096 { block } else { 512 };
        let (report, disk) = run(&devices, Fault::Bytes(device, at..at + length));
        let hit = disk.hits.load(Ordering::Relaxed) > 0;
        sweep.judge("block", &format!("device {device} byte {at} (+{length})"), report.as_ref(), &whole, hit);
    }
    let reads = seen.count.load(Ordering::Relaxed);
    for n in (0..reads).step_by(every(reads as usize)) {
        let (report, disk) = run(&devices, Fault::Reads(n..u64::MAX));
        let hit = disk.hits.load(Ordering::Relaxed) > 0;
        sweep.judge("from", &format!("read {n} on"), report.as_ref(), &whole, hit);
        // Tried once more: the answer is the whole one.
        let (report, _) = run(&devices, Fault::Reads(n..n + 1));
        sweep.judge("single", &format!("read {n}"), report.as_ref(), &whole, false);
        let (report, _) = run(&devices, Fault::Reads(n..n + 8));
        let survived = report.as_ref().is_some_and(|report| report.summary.verdict == Verdict::Clean);
        sweep.judge("eight", &format!("reads {n} to {}", n + 7), report.as_ref(), &whole, !survived);
        let (report, disk) = run(&devices, Fault::Stop(n));
        let hit = disk.stop.load(Ordering::Relaxed);
        sweep.judge("stop", &format!("read {n}"), report.as_ref(), &whole, hit);
    }
    parts(&devices, &whole, most, &mut sweep);
    sweep
}

/// Parts that are asked for, and budgets.
fn parts(devices: &Devices, whole: &Report, most: usize, sweep: &mut Sweep) {
    let volume = Volume::open(devices.clone(), Choice::default()).unwrap();
    let go = |volume: &Volume, options: &Options| {
        check(volume, options, Hooks { progress: &|_| {}, cancel: &Arc::default() })
    };
    for ag in 0..volume.geometry().ag_count {
        let report = go(&volume, &Options { ags: vec![ag], ..once(1) });
        sweep.judge("ag", &ag.to_string(), Some(&report), whole, false);
        assert!(!report.summary.unjudged.is_empty());
    }
    let structures: BTreeSet<&str> =
        CATALOGUE.iter().flat_map(|rules| rules.iter()).map(|rule| rule.structure).collect();
    let step = structures.len().div_ceil(most).max(1);
    for only in structures.into_iter().step_by(step) {
        let report = go(&volume, &Options { only: vec![only.to_owned()], ..once(1) });
        sweep.judge("only", only, Some(&report), whole, false);
    }
    let step = 1usize.max(1 << 10 >> most.ilog2());
    for steps in (0..2000).step_by(step) {
        let limited = Volume::open(devices.clone(), Choice::default()).unwrap().limited(steps);
        let report = go(&limited, &once(1));
        let ended = report.findings.iter().any(|f| f.rule.id == "check-gave-up");
        sweep.judge("budget", &format!("{steps} steps"), Some(&report), whole, ended);
        if report.summary.verdict == whole.summary.verdict && steps > 200 && !ended {
            break;
        }
    }
    // Devices that were not given.
    for (what, devices) in [
        ("no rt", Devices { rt: None, ..devices.clone() }),
        ("no log", Devices { log: None, ..devices.clone() }),
        ("neither", Devices { rt: None, log: None, ..devices.clone() }),
    ] {
        let volume = Volume::open(devices, Choice::default()).unwrap();
        let (geometry, given) = (volume.geometry(), volume.devices());
        let external = geometry.log_start.is_none() && given.log.is_none();
        // The realtime superblock.
        let groups = geometry.realtime.as_ref().is_some_and(|rt| rt.groups.is_some() && rt.device == Device::Rt);
        let zoned = volume.context().features.has_zoned();
        let named = external || groups && !zoned && given.rt.is_none();
        sweep.judge("device", what, Some(&go(&volume, &once(1))), whole, named);
    }
}

fn tiny(name: &str) {
    let sweep = sweep(name, 10);
    assert!(sweep.wrong.is_empty(), "{name}: {} wrong\n{}", sweep.wrong.len(), sweep.wrong.join("\n"));
}

macro_rules! tiny {
    ($($test:ident $name:literal,)*) => { $(
        #[test]
        fn $test() {
            tiny($name);
        }
    )* };
}

tiny! {
    tiny_64k "tiny-64k",
    tiny_cut "tiny-cut",
    tiny_groups "tiny-groups",
    tiny_old "tiny-old",
    tiny_rmap_groups "tiny-rmap-groups",
    tiny_rt "tiny-rt",
    tiny_v4 "tiny-v4",
    tiny_v4_rt "tiny-v4-rt",
    tiny_v5 "tiny-v5",
    tiny_zoned "tiny-zoned",
}

fn unreadable(report: &Report) -> Vec<(u64, u64, &str)> {
    let unread = report.findings.iter().filter(|f| f.rule.id == "check-unreadable");
    unread.map(|f| (f.place.byte.0, f.place.length, f.place.structure.as_str())).collect()
}

/// A directory block that cannot be read is told once, with its length, the structure and its path; the first advice is a
/// copy of the device. By xfs_db: block 71 of AG 0 holds file blocks 4 to 7 of inode 79, /dirs/leaf.
#[test]
fn an_unreadable_block_is_told_once() {
    let (report, _) = run(&devices("tiny-v5"), Fault::Bytes(0, 71 * 1024..72 * 1024));
    let report = report.unwrap();
    assert_eq!(unreadable(&report), [(72704, 1024, "inode 79 › directory block 4 (/dirs/leaf)")]);
    assert_eq!(report.summary.verdict, Verdict::Incomplete);
    assert!(report.summary.repair[0].contains("ddrescue"), "{:?}", report.summary.repair);
    assert!(report.summary.unjudged.iter().any(|what| what.starts_with("1024 bytes in 1 place")));
}

/// Sector 0 that cannot be read is not clean, and no damage; when it can be read after all, nothing is wrong.
#[test]
fn an_unreadable_superblock() {
    for name in ["tiny-v5", "tiny-v4", "tiny-groups", "v5-quota", "v4-default"] {
        let (report, _) = run(&devices(name), Fault::Bytes(0, 0..512));
        let report = report.unwrap();
        assert_eq!(report.summary.verdict, Verdict::Incomplete, "{name}: {:#?}", report.findings);
        assert!(unreadable(&report).iter().any(|&(byte, length, _)| (byte, length) == (0, 512)), "{name}");
        assert!(report.summary.repair[0].contains("ddrescue"), "{name}");
        // Both tries at opening fail.
        let (report, _) = run(&devices(name), Fault::Reads(0..2));
        let report = report.unwrap();
        assert_eq!(
            (report.summary.verdict, report.findings.len()),
            (Verdict::Clean, 0),
            "{name}: {:#?}",
            report.findings
        );
    }
}

/// A disk that fails for a while, time and again.
#[test]
fn a_flaky_disk_makes_no_damage() {
    for (start, length, period) in [(10, 9, 40), (3, 25, 60), (30, 3, 7), (0, 200, 400)] {
        for name in ["tiny-v5", "tiny-groups"] {
            let (report, _) = run(&devices(name), Fault::Flaky(start, length, period));
            let Some(report) = report else { continue };
            let damage: Vec<_> = report.findings.iter().filter(|f| f.rule.class.is_damage()).collect();
            assert!(damage.is_empty(), "{name} {start} {length} {period}: {damage:#?}");
        }
    }
}

/// Inodes that were left on unlinked lists are one finding, not one for each list, and what to do is to free them.
#[test]
fn left_on_unlinked_lists() {
    let mut devices = devices("tiny-v4");
    let geometry = Volume::open(devices.clone(), Choice::default()).unwrap().geometry().clone();
    let mut patches = Vec::new();
    // /dirs/esc and /dirs/bad
    for ino in [140_741, 140_745].map(xfsinspect::units::Ino) {
        let (ag, agino) = geometry.split_inode(ino).unwrap();
        let head = geometry.ag_header(ag, 2).unwrap().0 + 40 + u64::from(agino.0 % 64) * 4;
        patches.push((head, agino.0.to_be_bytes().to_vec()));
        patches.push((geometry.inode_byte(ino).unwrap().0 + 16, vec![0; 4]));
    }
    devices.data = common::overlay::Overlay::new(devices.data, patches);
    let (report, _) = run(&devices, Fault::None);
    let report = report.unwrap();
    let left: Vec<_> = report.findings.iter().filter(|f| f.rule.id == "agi-unlinked-not-empty").collect();
    assert_eq!(left.len(), 1, "{:#?}", report.findings);
    assert_eq!((left[0].found.as_str(), left[0].more), ("2 inodes, the first of them 140741", 0));
    assert!(report.summary.repair.iter().any(|step| step == "free the inodes that were left on unlinked lists"));
}

/// Nothing but what was asked for is told, and what limits the answer always.
#[test]
fn a_filter_hides_no_gap() {
    let devices = devices("tiny-v5");
    let shared = shared(Fault::Bytes(0, 71 * 1024..72 * 1024));
    let volume = Volume::open(faulty(&devices, &shared), Choice::default()).unwrap();
    let options = Options { only: vec!["agfl".to_owned()], ..once(1) };
    let report = check(&volume, &options, Hooks { progress: &|_| {}, cancel: &shared.stop });
    assert_eq!((report.summary.verdict, unreadable(&report).len()), (Verdict::Incomplete, 1));
}

/// All sweeps with up to `XFSINSPECT_SWEEP` runs of each kind over every image whose name begins with
/// `XFSINSPECT_SWEEP_NAME`, with their counts.
#[test]
#[ignore = "takes an hour"]
fn all_images() {
    let most = std::env::var("XFSINSPECT_SWEEP").map_or(100, |n| n.parse().unwrap());
    let begin = std::env::var("XFSINSPECT_SWEEP_NAME").unwrap_or_default();
    let tiny = std::fs::read_dir(common::images().join("tiny")).unwrap();
    let tiny = tiny.filter_map(|entry| {
        entry.unwrap().file_name().into_string().unwrap().strip_suffix(".img.zst").map(str::to_owned)
    });
    let mut names: Vec<String> =
        common::names().into_iter().chain(tiny).filter(|name| !name.ends_with(".rt")).collect();
    names.sort();
    let mut wrong = 0;
    let mut runs: BTreeMap<&str, u64> = BTreeMap::new();
    for name in names.iter().filter(|name| name.starts_with(&begin)) {
        if Volume::open(devices(name), Choice::default()).is_err() {
            continue;
        }
        let sweep = sweep(name, most);
        println!("{name}: {:?}, {} wrong", sweep.runs, sweep.wrong.len());
        sweep.wrong.iter().take(40).for_each(|text| println!("    {text}"));
        wrong += sweep.wrong.len();
        for (kind, count) in sweep.runs {
            *runs.entry(kind).or_default() += count;
        }
    }
    println!("all: {runs:?}, {wrong} wrong");
    assert_eq!(wrong, 0);
}
