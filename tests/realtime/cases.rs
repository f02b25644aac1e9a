//! Sound images, and cases whose right answers are known.

use crate::common::{self, find, image, xfsinspect};
use crate::patch::{Image, damage, look};
use std::collections::BTreeMap;
use xfsinspect::check::rt::Order;
use xfsinspect::format::rtbitmap::ByteOrder;
use xfsinspect::units::Device;
use xfsinspect::walk::rt::sizes_of;

fn rt(name: &str, words: &[&str]) -> (String, String, Option<i32>) {
    let mut args = vec!["rt".to_owned(), format!("@{name}")];
    args.extend(words.iter().map(|word| (*word).to_owned()));
    if let Some(device) = find(&format!("{name}.rt")) {
        args.extend(["--rtdev".to_owned(), device.display().to_string()]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let out = xfsinspect(&args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&out.stdout), text(&out.stderr), out.status.code())
}

fn json(name: &str, words: &[&str]) -> Vec<serde_json::Value> {
    let mut all = words.to_vec();
    all.push("--json");
    let (text, errors, code) = rt(name, &all);
    assert!(code.is_some(), "{errors}");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Written by kernels and unmounted cleanly; xfs_repair 7.2 finds nothing.
#[test]
fn nothing_is_found_on_sound_images() {
    for name in [
        "v4-rt-256k",
        "v5-rt-64k",
        "v5-rt-28k",
        "v5-rtgroups",
        "v5-rtgroups-16k",
        "v5-zoned",
        "c52-plus-t-is-not-realtime",
        "c53-rt-attached-by-growfs",
        "c63-classic-rt-recorder",
        "c64-rtgroups-64m",
        "v5-default",
        "v4-512b",
    ] {
        let (damage, other, report) = look(&common::volume(name));
        assert!(damage.is_empty(), "{name}: {damage:?}");
        // A user set both flags there; only online scrub minds.
        let expected: &[&str] = if ["v5-rt-28k", "v5-zoned"].contains(&name) { &["rtfile-filestream"] } else { &[] };
        assert_eq!(other.into_iter().collect::<Vec<_>>(), expected, "{name}");
        if let Some(report) = report.filter(|report| report.sizes.bitmap_blocks > 0) {
            assert_eq!(report.totals.differ, 0, "{name}");
            assert!(!matches!(report.order, Order::Assumed(_)), "{name}");
        }
        let (_, errors, code) = rt(name, &[]);
        assert_eq!(code, Some(0), "{name}: {errors}");
    }
}

#[test]
fn c32_needs_33_levels() {
    let (text, errors, code) = rt("c32-rextslog-32bit", &[]);
    assert!(errors.contains("sb-rextslog-mismatch") && errors.contains("rextslog is 4, expected 32"), "{errors}");
    assert!(text.contains("33 levels (the superblock says 5)") && text.contains("131073 blocks"), "{text}");
    assert_eq!(code, Some(1));
    let out = xfsinspect(&["preflight", "@c32-rextslog-32bit", "--kernel", "6.1.192", "--kernel", "7.2"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        text.contains("refused by every kernel asked about") && text.contains("33 levels (the superblock"),
        "{text}"
    );
}

#[test]
fn c33_is_shorter_than_an_extent() {
    let (_, errors, code) = rt("c33-runt-rt", &[]);
    assert!(errors.contains("sb-rextents-mismatch") && errors.contains("shorter than one extent"), "{errors}");
    assert_eq!(code, Some(1));
}

#[test]
fn c34_has_a_flag_without_a_section() {
    let (text, _, code) = rt("c34-rtflag-without-rtdev", &[]);
    assert!(text.contains("no realtime section") && text.contains("inode 131 at byte 67072"), "{text}");
    assert_eq!((damage(&common::volume("c34-rtflag-without-rtdev")), code), (vec!["rtfile-without-section"], Some(1)));
}

/// Zones have neither: that is no empty answer. What is used stands between what is free, and in the strip.
#[test]
fn zones_have_runs_and_a_strip_but_no_summary() {
    let (text, errors, code) = rt("v5-zoned", &["summary"]);
    assert!(text.is_empty() && errors.contains("there is no realtime summary to show"), "{text} {errors}");
    assert_eq!(code, Some(2));
    let runs = json("v5-zoned", &["bitmap"]);
    let runs: Vec<_> = runs.iter().filter(|line| line["type"] == "rt_run").collect();
    let sum = |state: &str| -> u64 {
        runs.iter().filter(|line| line["state"] == state).map(|line| line["extents"].as_u64().unwrap()).sum()
    };
    // 22 zones of 4096 blocks; 1697 are in use.
    assert_eq!((sum("used"), sum("free")), (1697, 22 * 4096 - 1697));
    let (text, _, _) = rt("v5-zoned", &["bitmap", "--map"]);
    assert!(text.lines().next().unwrap().contains('\u{2588}'), "{text}");
}

/// mkfs.xfs -N says the same of 1.6 TB.
#[test]
fn c36_sizes() {
    let s = sizes_of(1024, 390_703_446);
    assert_eq!((s.bitmap_blocks, s.levels, s.summary_blocks * 4096), (11_924, 29, 1_384_448));
}

/// The same as a superblock: 1.6 TB of 4 KiB extents, and the figures that `rt` and `preflight` give.
#[test]
fn c36_as_an_image() {
    let image = Image::new("v5-rt-64k");
    let volume = image.superblock_changed(|b| {
        b[16..24].copy_from_slice(&390_703_446u64.to_be_bytes());
        b[24..32].copy_from_slice(&390_703_446u64.to_be_bytes());
        b[80..84].copy_from_slice(&1u32.to_be_bytes());
        b[92..96].copy_from_slice(&11_924u32.to_be_bytes());
        b[125] = 28;
    });
    let (damage, _, report) = look(&volume);
    let sizes = report.unwrap().sizes;
    assert_eq!((sizes.bitmap_blocks, sizes.levels, sizes.summary_blocks), (11_924, 29, 338));
    // The files are those of a smaller section.
    assert!(damage.contains("rtbitmap-size-wrong") && damage.contains("rtsummary-size-wrong"), "{damage:?}");
    // 338 blocks hold the 1383184 bytes of 29 levels.
    assert_eq!((29 * 11_924 * 4, 338 * 4096), (1_383_184, 1_384_448));
}

/// Quotas with a section without groups: the mount works, and nothing is counted.
#[test]
fn c56_quotas_are_off() {
    let preflight = |name: &str| {
        let out = xfsinspect(&["preflight", &format!("@{name}"), "--kernel", "6.1.192", "--kernel", "7.2"]);
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let classic = preflight("c63-classic-rt-recorder");
    assert!(classic.contains("quotas are turned off at mount, whatever the mount options say"), "{classic}");
    let groups = preflight("c64-rtgroups-64m");
    assert!(!groups.contains("quotas are turned off") && groups.contains("6.1.192: refused"), "{groups}");
    // Quota on by the superblock: a row of its own.
    let image = Image::new("c63-classic-rt-recorder");
    let volume = image.superblock_changed(|b| b[177] |= 1);
    let asked =
        xfsinspect::hazard::Asked { logical_sector: None, log: xfsinspect::hazard::LogState::Clean, headers: true };
    let facts = xfsinspect::hazard::Facts::new(&volume, asked);
    let evaluation = xfsinspect::hazard::Evaluation::new(&facts);
    assert!(matches!(evaluation.answer("rt-quota-off"), Some(xfsinspect::hazard::Answer::Yes(_))));
}

#[test]
fn c42_cannot_be_judged_before_the_log_is_replayed() {
    let (text, errors, code) = rt("c42-rt-dirty-log", &[]);
    assert!(text.contains("before the log is recovered: what follows may be out of date"), "{text}");
    assert!(errors.contains("log-dirty") && errors.contains("tail at block 2, head at block 14"), "{errors}");
    assert_eq!(code, Some(3));
}

#[test]
fn c52_has_nothing_on_the_realtime_device() {
    let (text, _, code) = rt("c52-plus-t-is-not-realtime", &[]);
    assert!(text.contains("no realtime files") && text.contains("no directory hands the realtime flag down"), "{text}");
    let found = json("c52-plus-t-is-not-realtime", &[]);
    assert_eq!((&found[0]["use"]["free_extents"], &found[0]["files"]["files"]), (&16_384.into(), &0.into()));
    assert_eq!(code, Some(0));
}

#[test]
fn c53_is_all_free() {
    let found = &json("c53-rt-attached-by-growfs", &[])[0];
    let g = &found["geometry"];
    assert_eq!((&g["blocks"], &g["extent_size_blocks"], &g["extents"]), (&65_536.into(), &4.into(), &16_384.into()));
    assert_eq!((&found["use"]["free_extents"], &g["bitmap_blocks"]), (&16_384.into(), &1.into()));
}

#[test]
fn c63_has_the_runs_of_the_case() {
    let runs: Vec<(u64, u64)> = json("c63-classic-rt-recorder", &["free"])
        .iter()
        .map(|line| (line["start_extent"].as_u64().unwrap(), line["extents"].as_u64().unwrap()))
        .collect();
    let right = [(163, 4), (171, 4), (179, 4), (187, 4), (195, 4), (203, 4), (211, 4), (243, 3853)];
    assert_eq!(runs, right);
    let levels: Vec<(u64, u64)> = json("c63-classic-rt-recorder", &["summary"])
        .iter()
        .map(|line| (line["level"].as_u64().unwrap(), line["disk"].as_u64().unwrap()))
        .collect();
    assert_eq!(levels, [(2, 7), (11, 1)]);
    let group = &json("c63-classic-rt-recorder", &["groups"])[0];
    assert_eq!((&group["bitmap"]["first_byte"], &group["summary"]["first_byte"]), (&61_440.into(), &57_344.into()));
    let map = json("c63-classic-rt-recorder", &["map"]);
    let extents = |ino: u64| map.iter().filter(|line| line["ino"] == ino).count();
    assert_eq!((extents(132), extents(133), extents(134), extents(135)), (40, 40, 4, 3));
}

#[test]
fn c64_has_the_groups_of_the_case() {
    let groups = json("c64-rtgroups-64m", &["groups"]);
    let groups: Vec<_> = groups.iter().filter(|line| line["type"] == "rt_group").collect();
    assert_eq!(groups.len(), 7);
    assert_eq!((&groups[0]["superblock"], &groups[6]["blocks"]), (&true.into(), &4096.into()));
    let free: u64 = groups.iter().map(|g| g["free_extents"].as_u64().unwrap()).sum();
    assert_eq!(free, 83_709);
    let map = json("c64-rtgroups-64m", &["map"]);
    let shared: u64 =
        map.iter().filter(|line| line["shared"] == true).map(|line| line["blocks"].as_u64().unwrap()).sum();
    // a and a2 share 256 + 510 blocks: both records count.
    assert_eq!(shared, 2 * (256 + 510));
    assert!(map.iter().any(|line| line["group"] == 2 && line["start_bytes"] == 262_144 * 512));
}

/// A big-endian machine writes the words of bitmap and summary the other way round.
#[test]
fn big_endian_words_are_recognised() {
    for name in ["c63-classic-rt-recorder", "v5-rt-64k", "v4-rt-256k", "v5-rt-28k"] {
        let image = Image::new(name);
        let volume = swapped(&image);
        let (damage, _, report) = look(&volume);
        assert!(damage.is_empty(), "{name}: {damage:?}");
        let report = report.unwrap();
        assert_eq!(report.order, Order::Agrees(ByteOrder::Big), "{name}");
        let (.., right) = look(&image.volume);
        assert_eq!(report.totals, right.unwrap().totals, "{name}");
    }
}

/// The image with every word of bitmap and summary byte-swapped.
fn swapped(image: &Image) -> xfsinspect::volume::Volume {
    let sb = image.volume.superblock();
    let size = image.volume.context().block_size as usize;
    let mut patches = BTreeMap::new();
    for ino in [sb.rbmino.0, sb.rsumino.0] {
        let walk = xfsinspect::walk::Walk::new(&image.volume);
        let block = walk.inode(xfsinspect::units::Ino(ino)).unwrap();
        for extent in xfsinspect::walk::extents::extents(&walk, block.inode(), xfsinspect::format::dinode::Fork::Data) {
            let extent = extent.unwrap();
            for n in 0..u64::from(extent.blockcount) {
                let fsb = xfsinspect::units::FsBlock(extent.startblock.0 + n);
                let byte = image.volume.geometry().block_byte(fsb).unwrap().0;
                let bytes = image.read(byte, size).chunks(4).flat_map(|w| [w[3], w[2], w[1], w[0]]).collect();
                patches.insert(byte, bytes);
            }
        }
    }
    image.with(Device::Data, patches)
}

/// Bits set behind the last extent are damage, as `xfs_repair -n` has it ("discrepancy in bitmap"); a summary that counts
/// them is none.
#[test]
fn the_summary_may_count_bits_behind_the_last_extent() {
    let image = Image::new("v5-rt-64k");
    let (bitmap, summary) = crate::damage::classic_blocks(&image);
    // 2560 extents fill 80 words; the run at the end goes on into word 80: its class stays 2^11 (2434 + 32 extents),
    // then two bits alone are one more run of class 0.
    let mut bits = image.read(bitmap, 4096);
    bits[320..324].fill(0xff);
    let volume = image.with(Device::Data, BTreeMap::from([(bitmap, bits.clone())]));
    let (damage, _, report) = look(&volume);
    assert_eq!(damage.into_iter().collect::<Vec<_>>(), ["rtbitmap-tail-bits"]);
    assert_eq!(report.unwrap().totals.beyond, 32);
    bits[400] = 1;
    let mut counts = image.read(summary, 4096);
    counts[0] += 1;
    let volume = image.with(Device::Data, BTreeMap::from([(bitmap, bits.clone()), (summary, counts.clone())]));
    assert_eq!(look(&volume).0.into_iter().collect::<Vec<_>>(), ["rtbitmap-tail-bits"]);
    // Without that bit the same count is wrong.
    bits[400] = 0;
    let volume = image.with(Device::Data, BTreeMap::from([(bitmap, bits), (summary, counts)]));
    assert_eq!(look(&volume).0.into_iter().collect::<Vec<_>>(), ["rtbitmap-tail-bits", "rtsummary-mismatch"]);
}

#[test]
fn the_strip_shows_where_space_is_used() {
    let (text, _, code) = rt("c63-classic-rt-recorder", &["bitmap", "--map"]);
    let first = text.lines().next().unwrap();
    // 8 extents to a cell: 20 full ones (0 to 159), then halves.
    assert!(first.contains(&"\u{2588}".repeat(20)), "{text}");
    assert!(text.lines().nth(7).unwrap().ends_with(&".".repeat(64)), "{text}");
    assert_eq!(code, Some(0));
}

#[test]
fn a_question_without_an_answer_is_2() {
    let path = image("v5-default").display().to_string();
    let out = xfsinspect(&["rt", &path, "free"]);
    assert_eq!(out.status.code(), Some(2));
}

/// docs/realtime.md lists every rule as the catalogue has it; XFSINSPECT_BLESS=1 writes the list.
#[test]
fn the_documentation_lists_every_rule() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/realtime.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- rules -->\n").unwrap();
    let (listed, after) = rest.split_once("<!-- end of rules -->").unwrap();
    let mut right = String::from("\n| id | class | found when | checked by | since |\n|---|---|---|---|---|\n");
    for rule in xfsinspect::check::rt::rules::ALL.into_iter().flatten() {
        let row = [rule.id, rule.class.name(), rule.summary, rule.source, rule.since];
        right.push_str(&format!("| `{}` | {} | {} | {} | {} |\n", row[0], row[1], row[2], row[3], row[4]));
    }
    right.push_str(
        "\nThe fields of the superblock have rules of their own: `sb-rextsize-out-of-range`, `sb-rextents-mismatch`,\n",
    );
    right.push_str("`sb-rextslog-mismatch`, `sb-rbmblocks-mismatch`, `sb-rgcount-mismatch` and others that `explain sb-rt` offers.\n\n");
    if std::env::var_os("XFSINSPECT_BLESS").is_some() {
        std::fs::write(&path, format!("{before}<!-- rules -->\n{right}<!-- end of rules -->{after}")).unwrap();
    } else {
        assert_eq!(listed, right);
    }
}
