//! `preflight --stream` and `--enable-rt`: the recorder of the report of 2012, and sections that would be added.

use crate::common;
use crate::predicates::cases::{Made, make};
use xfsinspect::hazard::enable::{Enabled, enable};
use xfsinspect::hazard::stream::{Advice, Workload, advise, touched};
use xfsinspect::hazard::{Asked, Facts, LogState, Severity};

fn facts(made: &Made) -> Facts {
    Facts::new(&made.volume(), Asked { logical_sector: Some(512), log: LogState::Clean, headers: false })
}

/// agcount=32, agsize=7380047 blks, bsize=4096 blocks=236161504, sunit=1 swidth=2 blks; no realtime section.
fn recorder(more: &str) -> Facts {
    let line = format!(
        "v4 sb.agcount=32 sb.agblocks=7380047 sb.agblklog=23 sb.dblocks=236161504 sb.unit=1 sb.width=2 \
         sb.versionnum|=0x100 sb.logblocks=115313 len=967317520384 {more}"
    );
    facts(&make(&line))
}

/// Three streams of 5.7 MB frames, 20 a second each, 50 ms for a frame.
fn workload() -> Workload {
    let number = |text: &str| text.parse().map_err(|_| text.to_owned());
    Workload { deadline_ms: Some(50), ..Workload::parse("5700000:20:3", number).unwrap() }
}

fn relation(advice: &Advice, of: &str, unit: &str) -> u64 {
    let found = advice.relations.iter().find(|r| r.of.0 == of && r.unit.0 == unit);
    found.unwrap_or_else(|| panic!("{of} of {unit}")).rest()
}

#[test]
fn the_recorder_of_the_report() {
    let facts = recorder("");
    assert_eq!((facts.sb.agcount.0, facts.sb.dblocks.0), (32, 236_161_504));
    let advice = advise(&facts, workload());
    // No section: what is said is about the data section, and a section is what would fit better.
    assert!(!advice.realtime);
    assert_eq!(advice.workload.bytes_per_second(), 342_000_000);
    assert_eq!(advice.deadline_rate, 342_000_000);
    // 5700000 bytes are 1391.6 blocks; stripe unit 4 KiB, width 8 KiB.
    assert_eq!(
        advice.stripes.map(|t| t.map(|t| (t.unit, t.least, t.most))),
        [Some((4096, 1392, 1393)), Some((8192, 696, 697))]
    );
    assert_eq!(advice.allocations.0, 60_000);
    // 236161504 * 4096 bytes at 342000000 a second.
    assert_eq!(advice.seconds.0, 236_161_504 * 4096 / 342_000_000);
    // 410.4 GB an hour and stream: 48 longest records of 2^21 - 1 blocks; a piece for each frame where streams take turns,
    // 1392 blocks long.
    assert_eq!((advice.per_hour.least, advice.per_hour.most), (48, 410_400_000_000_u64.div_ceil(1392 * 4096)));
    assert_eq!(relation(&advice, "frame", "block"), 5_700_000 % 4096);
    assert_eq!(relation(&advice, "frame", "stripe unit"), 5_700_000 % 4096);
    assert_eq!(relation(&advice, "AG", "stripe unit"), 0);
    // 7380047 is odd: AGs begin on alternate disks.
    assert_eq!(relation(&advice, "AG", "stripe width"), 4096);
    // 114 MB a second and stream: 128 MiB, a multiple of the width.
    assert_eq!(advice.hint, 128 << 20);
    let options: Vec<&str> = advice.options.iter().map(|o| o.option.as_str()).collect();
    assert!(options.contains(&"-r rtdev=DEVICE,extsize=134217728"), "{options:?}");
    assert!(options.contains(&"-d extszinherit=32768"), "{options:?}");
    assert!(options.contains(&"-d su=CHUNK,sw=DISKS"), "{options:?}");
    assert!(
        advice.notes.iter().any(|note| note.contains("O_DIRECT") && note.contains("5701632")),
        "{:?}",
        advice.notes
    );
    assert!(advice.notes.iter().any(|note| note.contains("not on the disk")), "{:?}", advice.notes);
}

#[test]
fn a_frame_that_fits_says_so() {
    let image = common::volume("v5-rt-64k");
    let facts = Facts::new(&image, Asked { logical_sector: None, log: LogState::Clean, headers: false });
    let number = |text: &str| text.parse().map_err(|_| text.to_owned());
    let advice = advise(&facts, Workload::parse("131072:10", number).unwrap());
    assert!(advice.realtime);
    assert_eq!((advice.extents, relation(&advice, "frame", "realtime extent")), (touched(131_072, 65_536), 0));
    assert_eq!(advice.extents.map(|t| (t.least, t.most)), Some((2, 2)));
    // One stream alone: 4.7 GB an hour are less than one longest record.
    assert_eq!((advice.per_hour.least, advice.per_hour.most), (1, 1));
    // 2453 free extents of 64 KiB.
    assert_eq!(advice.room.1, 2453 * 65_536);
}

/// mkfs.xfs 7.2 refuses extents of more than a block on zones, and with reflink; a bitmap of a group has no end to run off.
#[test]
fn options_that_mkfs_takes() {
    let number = |text: &str| text.parse().map_err(|_| text.to_owned());
    let options = |name: &str| {
        let volume = common::volume(name);
        let facts = Facts::new(&volume, Asked { logical_sector: None, log: LogState::Clean, headers: false });
        let advice = advise(&facts, Workload::parse("100000:25", number).unwrap());
        advice.options.into_iter().map(|option| option.option).collect::<Vec<_>>()
    };
    assert_eq!(options("v5-zoned"), ["-d rtinherit=1", "-d extszinherit=1024"]);
    assert_eq!(
        options("v5-rtgroups"),
        ["-r rtdev=DEVICE,extsize=4194304 -m reflink=0", "-d rtinherit=1", "-d extszinherit=1024"]
    );
    assert_eq!(
        options("v5-rt-64k"),
        ["-r rtdev=DEVICE,extsize=4194304", "-d rtinherit=1", "-d extszinherit=1024", "-r size=BYTES"]
    );
}

fn forbids(enabled: &Enabled, word: &str) -> bool {
    enabled.reasons.iter().any(|reason| reason.forbids && reason.text.contains(word))
}

/// V4, no features in the way: 128 MiB of 4 KiB extents fill the bitmap exactly (P1), one extent less does not.
#[test]
fn a_section_that_arms_the_end_of_its_bitmap() {
    let base = facts(&make("v4"));
    let enabled = enable(&base, 128 << 20, Some(4096));
    assert!(enabled.possible(), "{:?}", enabled.reasons);
    let g = enabled.geometry.unwrap();
    assert_eq!((g.extents, g.bitmap_blocks, g.levels, g.summary_blocks), (32_768, 1, 16, 1));
    let armed = enabled.brought.iter().find(|b| b.row.id == "rt-bitmap-end-scan").expect("armed");
    assert_eq!(armed.severity, Severity::Danger);
    assert!(armed.kernels.contains(&"5.4".to_owned()) && !armed.kernels.contains(&"5.10".to_owned()));
    assert_eq!(enabled.safe, Some(((128 << 20) - 4096, 4096)));
    let safe = enable(&base, (128 << 20) - 4096, Some(4096));
    assert!(safe.brought.iter().all(|b| b.row.id != "rt-bitmap-end-scan"));
    assert_eq!(safe.safe, Some(((128 << 20) - 4096, 4096)));
    // Without an extent size the superblock's is taken.
    assert!(enable(&base, 128 << 20, None).extent_is_given);
}

/// 1.6 TB with extents of 4 and of 64 KiB: the figures of case C36, which mkfs.xfs -N gives.
#[test]
fn sizes_of_case_c36() {
    let base = recorder("sb.fdblocks=1000000");
    let g = enable(&base, 390_703_446 * 4096, Some(4096)).geometry.unwrap();
    assert_eq!((g.extents, g.bitmap_blocks, g.levels, g.summary_blocks), (390_703_446, 11_924, 29, 338));
    assert_eq!(enable(&base, 390_703_446 * 4096, Some(65_536)).geometry.unwrap().bitmap_blocks, 746);
}

/// Kernel 7.2 grew a metadir file system of 160 MiB, without reflink, by `xfs_growfs -r -e 3` on a device of 200 MiB, and
/// mounted it again: rblocks 51200, rextents 17066, rbmblocks 8290, rgcount 1, rgextents 268435456, rgblklog 30 (28
/// before), 974848 bytes of summary in each group.
#[test]
fn a_section_with_groups_and_another_extent_size() {
    let volume = common::volume("v5-metaquota");
    let mut facts = Facts::new(&volume, Asked { logical_sector: None, log: LogState::Clean, headers: false });
    facts.features.ro_compat &= !4;
    (facts.sb.rgextents, facts.sb.rgblklog) = (268_435_456, 28);
    let enabled = enable(&facts, 200 << 20, Some(12_288));
    assert!(enabled.possible(), "{:?}", enabled.reasons);
    let g = enabled.geometry.unwrap();
    assert_eq!((g.blocks, g.extents, g.bitmap_blocks), (51_200, 17_066, 8290));
    assert_eq!((g.levels, g.summary_blocks * 4096, g.groups), (29, 974_848, Some(1)));
    assert!(enabled.brought.iter().all(|b| b.severity < Severity::Refuse), "{:?}", enabled.brought);
    assert_eq!(enabled.safe, Some((200 << 20, 12_288)));
}

/// What is proposed is possible: 17 TiB of one-block extents fit neither the data section nor half of the log.
#[test]
fn a_safe_size_is_possible() {
    let volume = common::volume("v5-default");
    let mut facts = Facts::new(&volume, Asked { logical_sector: None, log: LogState::Clean, headers: false });
    facts.features.ro_compat &= !6;
    let blocks = facts.sb.logblocks.0;
    for bytes in [17u64 << 40, 1 << 50, (1 << 63) - 1, 128 << 20, 4096] {
        let (size, extent) = enable(&facts, bytes, Some(4096)).safe.unwrap();
        let safe = enable(&facts, size, Some(extent));
        let g = safe.geometry.unwrap();
        assert!(size <= bytes && safe.possible(), "{bytes}: {:?}", safe.reasons);
        assert!(g.bitmap_blocks + g.summary_blocks <= facts.sb.fdblocks && g.summary_blocks <= u64::from(blocks) / 2);
        assert!(g.extents < 1 << 32 && !g.extents.is_multiple_of(8 * 4096), "{size}:{extent}");
        assert_eq!(safe.safe, Some((size, extent)));
    }
    // Where there is a section already there is nothing to propose.
    let volume = common::volume("v5-rt-64k");
    let facts = Facts::new(&volume, Asked { logical_sector: None, log: LogState::Clean, headers: false });
    assert_eq!(enable(&facts, 1 << 30, None).safe, None);
}

#[test]
fn what_forbids_a_section() {
    let of = |name: &str| {
        let volume = common::volume(name);
        Facts::new(&volume, Asked { logical_sector: None, log: LogState::Clean, headers: false })
    };
    let enabled = enable(&of("v5-default"), 1 << 30, Some(65_536));
    assert!(!enabled.possible() && forbids(&enabled, "rmapbt") && forbids(&enabled, "reflink"));
    assert!(enabled.reasons.iter().any(|r| !r.forbids && r.text.contains("metadir, which cannot be added later")));
    assert!(forbids(&enable(&of("v5-rt-64k"), 1 << 30, None), "already"));
    assert!(forbids(&enable(&of("v5-quota"), 1 << 30, None), "quotas are on"));
    // Metadir with reflink takes a section of extents of one block.
    let metadir = of("v5-metaquota");
    assert!(enable(&metadir, 1 << 30, Some(4096)).possible());
    assert!(forbids(&enable(&metadir, 1 << 30, Some(65_536)), "one block"));
    let base = facts(&make("v4"));
    for (bytes, extent, word) in [
        (1 << 30, 2048u64, "impossible"),
        (1 << 30, 2 << 30, "impossible"),
        (1 << 30, 5000, "impossible"),
        (1 << 20, 1 << 30, "hold no extent"),
    ] {
        assert!(forbids(&enable(&base, bytes, Some(extent)), word), "{bytes} {extent}");
    }
    // More blocks of the bitmap than rbmblocks counts: nothing is said of such a section.
    let huge = enable(&base, 1 << 62, Some(4096));
    assert!(forbids(&huge, "counts up to 2^32 - 1") && huge.brought.is_empty());
}

#[test]
fn the_command_line() {
    let run = |args: &[&str]| {
        let mut all = vec!["preflight", "@v5-rt-64k"];
        all.extend(args);
        common::xfsinspect(&all)
    };
    let out = run(&["--stream", "5700000:20:3", "--deadline-ms", "50", "--json"]);
    let line: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&line["type"], &line["bytes_per_second"]), (&"stream_advice".into(), &342_000_000.into()));
    assert_eq!(line["extents_touched"]["least"], 87);
    assert_eq!(out.status.code(), Some(0));
    let out = run(&["--enable-rt", "2g:64k", "--json"]);
    let line: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&line["possible"], out.status.code()), (&false.into(), Some(1)));
    for (bad, why) in [
        (["--stream", "5700000"], "expected BYTES_PER_FRAME:FPS"),
        (["--stream", "0:20"], "at least 1 byte"),
        (["--stream", "100:0"], "is no rate"),
        (["--stream", "1000000000000000000:1"], "expected up to 2147479552"),
        (["--stream", "9223372036854775808:1"], "expected up to 2147479552"),
        (["--stream", "2147479552:1000000:1000000"], "more than a file can have"),
        (["--enable-rt", "x"], "is no number"),
        (["--enable-rt", "0"], "expected 1 to 2^63 - 1 bytes"),
        (["--enable-rt", "8e"], "expected 1 to 2^63 - 1 bytes"),
        (["--enable-rt", "18446744073709551615"], "expected 1 to 2^63 - 1 bytes"),
        (["--enable-rt", "1g:0"], "expected 1 to 2^63 - 1 bytes"),
    ] {
        let out = run(&bad);
        let text = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{bad:?}");
        assert!(text.contains(why), "{bad:?}: {text}");
    }
    let out = run(&["--stream", "100:20", "--deadline-ms", "0"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(run(&["--deadline-ms", "5"]).status.code(), Some(2));
}
