//! The registry of hazards against images: every row fires on one and not on its neighbour, verdicts equal what real
//! kernels answered, and docs/hazards.md is what the registry says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "common/cases.rs"]
mod cases;
mod common;

use cases::{Made, Sparse, cases, make};
use std::collections::BTreeSet;
use std::sync::Arc;
use xfsinspect::hazard::{
    About, Answer, Asked, Config, Evaluation, Facts, GRUBS, KERNELS, Kernel, LogState, Modes, Mount, Severity, Version,
    kernel::v, rows,
};
use xfsinspect::volume::{Choice, Devices, Volume};

fn kernel(text: &str) -> Kernel {
    Kernel::parse(text).unwrap()
}

/// Kernels at and between all bounds of all rows.
fn every_kernel() -> BTreeSet<Version> {
    let bounds =
        rows().filter(|row| row.about == About::Kernel).flat_map(|row| row.effects).flat_map(|e| [e.from, e.until]);
    let real = bounds.filter(|version| (2..100).contains(&version.series[0]));
    KERNELS.into_iter().chain(real).collect()
}

/// Does the row apply somewhere?
fn fires(id: &str, made: &Made) -> bool {
    let facts = made.facts();
    let evaluation = Evaluation::new(&facts);
    let row = rows().find(|row| row.id == id).unwrap();
    match row.about {
        About::Kernel => every_kernel().into_iter().any(|version| {
            let mut kernel = Kernel::upstream(version);
            kernel.config = made.config.clone().unwrap_or_default();
            let verdict = evaluation.verdict(&kernel);
            verdict.reasons.iter().chain(&verdict.notes).any(|applied| applied.row.id == id)
        }),
        About::Grub => GRUBS.iter().any(|(v, _)| evaluation.reader(row.about, *v).iter().any(|a| a.row.id == id)),
        About::Tools => evaluation.reader(row.about, v(4, 4)).iter().any(|a| a.row.id == id),
    }
}

#[test]
fn every_row_fires_on_an_image_and_not_on_its_neighbour() {
    let list = cases();
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for case in &list {
        assert!(rows().any(|row| row.id == case.id), "{}: no such row", case.id);
        assert!(seen.insert(case.id.clone()), "{} twice", case.id);
        match &case.images {
            Ok((one, other)) => {
                if !fires(&case.id, &make(one)) {
                    wrong.push(format!("{} does not fire on {one}", case.id));
                }
                if fires(&case.id, &make(other)) {
                    wrong.push(format!("{} fires on {other}", case.id));
                }
            }
            Err(base) => {
                let facts = make(base).facts();
                let evaluation = Evaluation::new(&facts);
                if !matches!(evaluation.answer(&case.id), Some(Answer::Unknown(_))) {
                    wrong.push(format!("{}: {:?} on {base}", case.id, evaluation.answer(&case.id)));
                }
            }
        }
    }
    wrong.extend(rows().filter(|row| !seen.contains(row.id)).map(|row| format!("{} has no image", row.id)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each bound of `xfs_agf_verify` and `xfs_agi_verify`, and the last value that it lets pass.
#[test]
fn headers_that_kernels_refuse() {
    for (id, refused, accepted) in [
        ("agf-bad", "v5 agf1.bnolevel=10", "v5 agf1.bnolevel=1"),
        ("agf-bad", "v5 agf1.longest=0xffffffff", "v5"),
        ("agf-bad", "v5 agf1.refcntblocks=4000000", "v5 agf1.refcntblocks=2"),
        ("agf-bad", "v5 agf1.rmapblocks=4000000", "v5 agf1.rmapblocks=2"),
        ("agi-bad", "v5 agi1.level=10", "v5 agi1.level=2"),
    ] {
        assert!(fires(id, &cases::make(refused)), "{refused}");
        assert!(!fires(id, &cases::make(accepted)), "{accepted}");
    }
}

#[test]
fn rows_are_whole() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        assert!(seen.insert(row.id), "{} twice", row.id);
        let kebab = row.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        assert!(kebab && !row.id.starts_with('-'), "{}", row.id);
        for (what, text) in [
            ("refs", row.refs),
            ("title", row.title),
            ("explanation", row.explanation),
            ("advice", row.advice),
            ("source", row.source),
            ("fire", row.fire),
        ] {
            assert!(!text.trim().is_empty(), "{}: {what}", row.id);
        }
        assert!(!row.effects.is_empty(), "{}", row.id);
        for effect in row.effects {
            assert!(effect.from < effect.until, "{}: {}", row.id, effect.range());
            assert!(!effect.outcome.is_empty(), "{}", row.id);
            for stable in effect.fixed {
                let series = stable.version.first();
                assert!(
                    effect.from <= series && series < effect.until && stable.version != series,
                    "{}: {}",
                    row.id,
                    stable.version
                );
            }
            for stable in effect.also {
                assert!(stable.version < effect.from && stable.version.stable > 0, "{}: {}", row.id, stable.version);
            }
            let blocks = effect.modes != Modes::NONE;
            assert!(blocks, "{}", row.id);
        }
    }
    assert!(seen.len() >= 130, "{} rows", seen.len());
}

/// Images in which the kernel stopped over what superblock, AG headers and log geometry do not show, with the row that
/// says it was not looked at.
const UNSEEN: [(&str, &str); 4] = [
    ("c16-lsn-ahead", "sb-lsn-ahead"),
    ("c25-external-log-wrong-uuid", "log-contents-bad"),
    ("c44-log-h_size-huge", "log-contents-bad"),
    ("c51-inode-cluster-zeroed", "inode-cluster-bad"),
];

fn facts_of(volume: &Volume) -> Facts {
    Facts::new(volume, Asked { logical_sector: Some(512), log: LogState::Unknown, headers: true })
}

#[test]
fn verdicts_equal_what_kernels_answered() {
    let text = std::fs::read_to_string(common::images().join("expected/mounts")).unwrap();
    let kernels = ["7.2.13", "6.12.117", "6.1.176", "5.10.223"];
    let (mut cells, mut wrong) = (0, Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let (name, answers) = (words[0], &words[1..]);
        let volume = Volume::open(common::devices(name), Choice::default()).ok();
        let facts = volume.as_ref().map(facts_of);
        let evaluation = facts.as_ref().map(Evaluation::new);
        for (release, answer) in kernels.iter().zip(answers) {
            cells += 1;
            // Where no superblock was found at all there is an error and no verdict: no kernel mounts that either.
            let Some(evaluation) = &evaluation else {
                assert_eq!(*answer, "---", "{name}");
                continue;
            };
            let verdict = evaluation.verdict(&kernel(release));
            let sign = |mode| if verdict.modes.meets(mode) { '+' } else { '-' };
            let ours: String = [Modes::NOREC, Modes::RO, Modes::RW].into_iter().map(sign).collect();
            if let Some((_, row)) = UNSEEN.iter().find(|(unseen, _)| *unseen == name) {
                assert!(verdict.undecided.iter().any(|u| u.row.id == *row), "{name} on {release}");
            } else if name == "c32-rextslog-32bit" && *release == "5.10.223" {
                // Refused for want of the realtime device of 16 TiB; with it this kernel mounts, and that is the danger.
                assert_eq!((verdict.mount, *answer), (Mount::Hazard, "---"));
                assert!(verdict.notes.iter().any(|n| n.row.id == "rt-device-needed"));
            } else if ours != **answer {
                wrong.push(format!("{name} on {release}: kernel {answer}, preflight {ours}"));
            }
        }
    }
    assert_eq!(cells, 252);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_danger_on_clean_images_with_the_newest_kernel() {
    for name in common::names().into_iter().filter(|name| name.starts_with('v')) {
        let volume = common::volume(&name);
        let facts = facts_of(&volume);
        let evaluation = Evaluation::new(&facts);
        let verdict = evaluation.verdict(&kernel("7.2"));
        let dangers: Vec<&str> =
            verdict.reasons.iter().filter(|r| r.effect.severity == Severity::Danger).map(|r| r.row.id).collect();
        assert_eq!(dangers, [""; 0], "{name}");
    }
}

/// How an image mounts on a kernel, and the reasons.
fn verdict(facts: &Facts, kernel: &Kernel) -> (Mount, Vec<&'static str>) {
    let evaluation = Evaluation::new(facts);
    let verdict = evaluation.verdict(kernel);
    (verdict.mount, verdict.reasons.iter().map(|r| r.row.id).collect())
}

fn notes(facts: &Facts, release: &str) -> Vec<&'static str> {
    Evaluation::new(facts).verdict(&kernel(release)).notes.iter().map(|r| r.row.id).collect()
}

fn image(name: &str) -> Facts {
    facts_of(&common::volume(name))
}

/// The cases from public reports, as their answers stand in testimages/README.md.
#[test]
fn cases_from_the_field() {
    use Mount::{Hazard, Refused, Ro, Rw};
    let on = |name: &str, release: &str| verdict(&image(name), &kernel(release));

    // A file system of 512-byte sectors on a device of 4096: no kernel. V4 by configuration.
    let volume = common::volume("c05-v4-512-on-4kn");
    let large = Facts::new(&volume, Asked { logical_sector: Some(4096), log: LogState::Unknown, headers: true });
    for release in ["2.6.32", "4.4", "6.1", "7.2"] {
        let (mount, reasons) = verdict(&large, &kernel(release));
        assert_eq!(mount, Refused, "{release}");
        assert!(reasons.contains(&"sector-larger-than-fs-sector"), "{release}");
    }
    assert_eq!(on("c05-v4-512-on-4kn", "6.1"), (Rw, vec![]));
    assert_eq!(on("c05-v4-512-on-4kn", "7.2"), (Refused, vec!["v4-support-off"]));

    assert_eq!(on("c08-incompat-0x20-on-515", "5.15"), (Refused, vec!["incompat-nrext64-unknown"]));
    assert_eq!(on("c08-incompat-0x20-on-515", "6.1"), (Rw, vec![]));
    let c09 = ["incompat-exchange-unknown", "incompat-parent-unknown"];
    assert_eq!(on("c09-incompat-0xc0-new-mkfs", "6.1"), (Refused, c09.to_vec()));
    assert_eq!(on("c09-incompat-0xc0-new-mkfs", "6.10"), (Rw, vec![]));
    let facts = image("c09-incompat-0xc0-new-mkfs");
    let evaluation = Evaluation::new(&facts);
    let grub = |release| evaluation.reader(About::Grub, release).iter().map(|a| a.row.id).collect::<Vec<_>>();
    assert!(
        grub(v(2, 12)).contains(&"grub-no-exchange-parent") && !grub(v(2, 14)).contains(&"grub-no-exchange-parent")
    );
    assert!(!grub(v(2, 12)).contains(&"grub-no-nrext64") && grub(v(2, 6)).contains(&"grub-no-nrext64"));

    for release in ["4.18", "5.10", "6.1", "7.2"] {
        for (name, id) in
            [("c10-swidth-zero", "stripe-geometry-bad"), ("c31-dalign-bit-no-unit", "dalign-bit-mismatch")]
        {
            let (mount, reasons) = on(name, release);
            assert!(mount == Refused && reasons.contains(&id), "{name} on {release}: {mount:?} {reasons:?}");
        }
    }
    assert!(!on("c10-swidth-zero", "4.12").1.contains(&"stripe-geometry-bad"));
    assert_eq!(on("c11-odd-swidth-10752", "7.2"), (Rw, vec![]));
    assert!(notes(&image("c11-odd-swidth-10752"), "7.2").contains(&"stripe-width-implausible"));

    assert_eq!(on("c19-v4-no-lazycount", "6.1"), (Rw, vec![]));
    assert_eq!(on("c19-v4-no-lazycount", "6.18"), (Refused, vec!["v4-support-off"]));
    assert!(notes(&image("c19-v4-no-lazycount"), "6.1").contains(&"timestamps-end-2038"));
    let mut with = kernel("7.2");
    with.config = Config { v4: Some(true), ..Config::default() };
    assert_eq!(verdict(&image("c19-v4-no-lazycount"), &with), (Rw, vec![]));

    // 9216 blocks are a multiple of the inode alignment of 8: the bug of runt AGs cannot come up.
    assert_eq!(on("c22-runt-last-ag", "6.1"), (Rw, vec![]));
    assert!(!notes(&image("c22-runt-last-ag"), "6.6").contains(&"sparse-inode-runt-ag"));

    let c30 = image("c30-needsrepair");
    assert_eq!(verdict(&c30, &kernel("5.10")).0, Refused);
    for (release, norecovery) in
        [("6.1", false), ("6.13", false), ("6.12.25", false), ("6.12.26", true), ("6.14", true), ("7.2", true)]
    {
        let evaluation = Evaluation::new(&c30);
        let verdict = evaluation.verdict(&kernel(release));
        assert_eq!((verdict.mount, verdict.modes.meets(Modes::NOREC)), (Refused, norecovery), "{release}");
    }
    assert_eq!(on("c32-rextslog-32bit", "5.10"), (Hazard, vec!["rt-extents-over-32bit"]));
    for (release, refused) in [
        ("6.1", false),
        ("6.1.131", false),
        ("6.1.132", true),
        ("6.6.23", false),
        ("6.6.24", true),
        ("6.8", true),
        ("7.2", true),
    ] {
        let (mount, reasons) = on("c32-rextslog-32bit", release);
        assert_eq!((mount == Refused, reasons.contains(&"rt-geometry-mismatch")), (refused, refused), "{release}");
    }
    for release in ["5.7", "6.1", "7.2"] {
        assert_eq!(on("c33-runt-rt", release).0, Refused, "{release}");
        assert!(on("c33-runt-rt", release).1.contains(&"rt-runt"), "{release}");
        assert_eq!(on("c45-sb-absurd-shifts", release).0, Refused, "{release}");
    }
    // Classic realtime with shared extents, and the form that works.
    let c57 = make("v5-rt sb.features_ro_compat|=4").facts();
    for (release, mount) in [("4.4", Refused), ("5.10", Refused), ("6.13", Refused), ("7.2", Refused)] {
        assert_eq!(verdict(&c57, &kernel(release)).0, mount, "{release}");
    }
    assert!(verdict(&c57, &kernel("5.10")).1.contains(&"rt-reflink"));
    assert_eq!(on("c64-rtgroups-64m", "6.13").0, Refused);
    assert_eq!(on("c64-rtgroups-64m", "6.14"), (Rw, vec![]));
    // A kernel without realtime support.
    let mut without = kernel("7.2");
    without.config = Config { rt: false, ..Config::default() };
    assert_eq!(verdict(&image("c63-classic-rt-recorder"), &without), (Refused, vec!["kernel-without-rt"]));
    assert_eq!(on("c63-classic-rt-recorder", "7.2"), (Rw, vec![]));
    assert_eq!(on("c13-agf-overcount", "5.10").0, Ro);
}

/// A superblock made of numbers alone, on a device of that many bytes.
fn numbers(base: &str, bytes: u64, edits: &str) -> Facts {
    let made = make(&format!("{base} len={bytes} {edits}"));
    let devices =
        Devices { data: Arc::new(made.data), log: None, rt: made.rt.map(|n| Arc::new(Sparse::zeros(n)) as _) };
    let volume = Volume::open(devices, Choice::default()).unwrap();
    Facts::new(&volume, Asked { logical_sector: Some(512), log: LogState::Clean, headers: false })
}

/// The xfs_info of the recorder that this program was written for: no realtime section, so nothing to trigger.
fn recorder(more: &str) -> Facts {
    let edits = "sb.inodesize=256 sb.inodelog=8 sb.inopblock=16 sb.inopblog=4 sb.agcount=32 sb.agblocks=7380047 sb.agblklog=23 \
                 sb.dblocks=236161504 sb.unit=1 sb.width=2 sb.versionnum|=0x100 sb.logblocks=115313 sb.logsunit=4096 sb.imax_pct=25";
    numbers("v4", 967_317_520_384, &format!("{edits} {more}"))
}

#[test]
fn the_geometry_of_the_recorder() {
    let facts = recorder("");
    assert_eq!(verdict(&facts, &kernel("3.2.22")), (Mount::Rw, vec![]));
    assert_eq!(verdict(&facts, &kernel("3.2.22-rt34")), (Mount::Rw, vec![]));
    assert!(notes(&facts, "3.2.22").contains(&"rt-none"));
    // The same disk with a realtime section of its own size: in danger for no reason of size.
    let rt = "sb.features2|=0x80 sb.rblocks=236161504 sb.rextents=236161504 sb.rbmblocks=7208 sb.rextslog=27 rt=967317520384";
    let facts = recorder(rt);
    for release in ["3.2", "3.2.22", "3.4.112", "3.5.7"] {
        assert_eq!(verdict(&facts, &kernel(release)), (Mount::Hazard, vec!["rt-uninitialised-nmap"]), "{release}");
    }
    for release in ["2.6.39", "3.0", "3.6", "3.10", "6.1"] {
        assert_eq!(verdict(&facts, &kernel(release)), (Mount::Rw, vec![]), "{release}");
    }
    // The first direct write of a realtime file hangs there, whatever the geometry.
    assert_eq!(verdict(&facts, &kernel("2.6.37")), (Mount::Hazard, vec!["rt-first-allocation-deadlock"]));
    // 7207 x 32768 extents: the bitmap ends where the section does. On this AG size that is an I/O error, no oops.
    let exact = "sb.features2|=0x80 sb.rblocks=236158976 sb.rextents=236158976 sb.rbmblocks=7207 sb.rextslog=27 rt=967317520384";
    let facts = recorder(exact);
    let evaluation = Evaluation::new(&facts);
    let outcome = |release: &str| {
        let verdict = evaluation.verdict(&kernel(release));
        verdict.reasons.iter().find(|r| r.row.id == "rt-bitmap-end-scan").map(|r| r.effect.outcome)
    };
    assert!(outcome("3.2.22").unwrap().contains("EIO") && outcome("3.6").unwrap().contains("EIO"));
    assert!(outcome("5.9").is_some() && outcome("5.10").is_none());
    for (release, fixed) in [
        ("5.4.72", false),
        ("5.4.73", true),
        ("4.19.152", false),
        ("4.19.153", true),
        ("4.4.240", false),
        ("4.4.241", true),
        ("5.9.1", false),
        ("5.9.2", true),
    ] {
        assert_eq!(outcome(release).is_none(), fixed, "{release}");
    }
}

#[test]
fn a_bitmap_without_a_spare_bit_oopses_by_ag_size() {
    let outcome = |base: &str, release: &str| {
        let facts = make(base).facts();
        let evaluation = Evaluation::new(&facts);
        let verdict = evaluation.verdict(&kernel(release));
        verdict.reasons.iter().find(|r| r.row.id == "rt-bitmap-end-scan").map(|r| r.effect.outcome.contains("oops"))
    };
    // AGs of 65536 blocks: a power of two.
    assert_eq!(outcome("v4-rt-exact", "3.0"), Some(true));
    assert_eq!(outcome("v4-rt-exact", "3.7.5"), Some(true));
    assert_eq!(outcome("v4-rt-exact", "3.7.6"), Some(false));
    assert_eq!(outcome("v4-rt-exact", "4.4"), Some(false));
    assert_eq!(outcome("v4-rt-exact", "5.10"), None);
    // One block less: only where a hole is -2.
    assert_eq!(outcome("v4-rt-exact sb.agblocks=65535 sb.dblocks=262140", "3.0"), Some(false));
    assert_eq!(outcome("v4-rt-exact sb.agblocks=65535 sb.dblocks=262140", "3.2"), Some(true));
    assert_eq!(outcome("v4-rt-spare", "3.2"), None);
}

#[test]
fn cases_made_of_numbers() {
    // 1280 AGs of 80 MiB: many, and no kernel minds.
    let many = numbers(
        "v5-61",
        107_374_182_400,
        "sb.agcount=1280 sb.agblocks=20480 sb.agblklog=15 sb.dblocks=26214400 sb.logblocks=16384",
    );
    assert_eq!(verdict(&many, &kernel("6.1")), (Mount::Rw, vec![]));
    assert!(notes(&many, "6.1").contains(&"many-ags"));
    // 390703446 extents of 4 KiB: 11924 bitmap blocks, log2 28.
    let edits =
        "sb.rextsize=1 sb.rblocks=390703446 sb.rextents=390703446 sb.rbmblocks=11924 sb.rextslog=28 rt=1600321314816";
    let large = numbers("v5-rt", 100_663_296, edits);
    assert_eq!(verdict(&large, &kernel("7.2")), (Mount::Rw, vec![]));
    let evaluation = Evaluation::new(&large);
    assert_eq!(evaluation.answer("rt-bitmap-end-scan"), Some(&Answer::No));
    assert_eq!(evaluation.answer("rt-geometry-mismatch"), Some(&Answer::No));
    // 597 TiB: fine on 64 bits, too large for 32.
    let edits =
        "sb.agcount=597 sb.agblocks=268435455 sb.agblklog=28 sb.dblocks=160255966635 sb.imax_pct=1 sb.logblocks=521728";
    let huge = numbers("v5-61", 160_255_966_635 * 4096, edits);
    assert_eq!(verdict(&huge, &kernel("6.1")), (Mount::Rw, vec![]));
    let mut small = kernel("6.1");
    small.config.bits64 = false;
    assert_eq!(verdict(&huge, &small), (Mount::Refused, vec!["too-large-for-32bit"]));
}

/// Minimum log sizes, in blocks, by an independent calculation that agreed with `logres` of xfs_db 7.2 on 11 file
/// systems (its buffer size put in place of the kernel's) and with where a real 7.2 drew the line on 6.
#[test]
fn minimum_log_sizes() {
    for (name, blocks) in [
        ("v4-1k-ci", 2924),
        ("v4-512b", 4746),
        ("v4-default", 844),
        ("v5-1k-rmap", 4803),
        ("v5-4kn", 1635),
        ("v5-64k", 1126),
        ("v5-default", 1985),
        ("v5-old", 847),
        ("v5-stripe", 2208),
        ("v5-rt-64k", 1985),
        ("c08-incompat-0x20-on-515", 3049),
        ("c12-1k-blocks-log-su-clamped", 4416),
        ("c14-frozen-snapshot", 1338),
        ("c42-rt-dirty-log", 4036),
    ] {
        assert_eq!(xfsinspect::hazard::minimum_log_blocks(&image(name)), Some(blocks), "{name}");
    }
}

#[test]
fn the_document_is_what_the_registry_says() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/hazards.md");
    let text = xfsinspect::report::explain::catalogue();
    if std::env::var_os("XFSINSPECT_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/hazards.md is stale: XFSINSPECT_BLESS=1 cargo test --test hazards");
}

fn lines(args: &[&str]) -> (Vec<serde_json::Value>, Option<i32>) {
    let output = common::xfsinspect(args);
    let text = String::from_utf8(output.stdout).unwrap();
    (text.lines().map(|line| serde_json::from_str(line).expect(line)).collect(), output.status.code())
}

#[test]
fn json_lines() {
    let (lines, code) =
        lines(&["preflight", "@c08-incompat-0x20-on-515", "--json", "--kernel", "5.15", "--kernel", "6.1"]);
    assert_eq!(code, Some(1));
    let verdicts: Vec<&serde_json::Value> = lines.iter().filter(|l| l["type"] == "verdict").collect();
    assert_eq!(verdicts.len(), 2);
    assert_eq!((&verdicts[0]["kernel"], &verdicts[0]["mount"]), (&"5.15".into(), &"refused".into()));
    assert_eq!(verdicts[0]["reasons"], serde_json::json!(["incompat-nrext64-unknown"]));
    assert_eq!((&verdicts[1]["kernel"], &verdicts[1]["mount"]), (&"6.1".into(), &"rw".into()));
    let hazards: Vec<&serde_json::Value> = lines.iter().filter(|l| l["type"] == "hazard").collect();
    let kernels = rows().filter(|row| row.about == About::Kernel).count();
    assert_eq!(hazards.len(), 2 * kernels + rows().count() - kernels);
    let one =
        |id: &str, kernel: serde_json::Value| *hazards.iter().find(|h| h["id"] == id && h["kernel"] == kernel).unwrap();
    let fired = one("incompat-nrext64-unknown", "5.15".into());
    assert_eq!(
        (&fired["applies"], &fired["ref"], &fired["severity"]),
        (&true.into(), &"F-12".into(), &"refuse".into())
    );
    assert_eq!((&fired["place"]["byte"], &fired["place"]["field"]), (&216.into(), &"features_incompat".into()));
    assert_eq!(one("incompat-nrext64-unknown", "6.1".into())["applies"], serde_json::json!(false));
    // Decided by the inodes; and one that no image decides.
    assert_eq!(one("metadata-block-outside", "6.1".into())["applies"], serde_json::json!(false));
    assert!(one("removed-mount-options", "6.1".into())["applies"].is_null());
    assert_eq!(one("grub-no-nrext64", serde_json::Value::Null)["applies"], serde_json::json!(true));
    for line in hazards {
        for field in ["id", "ref", "severity", "applies", "kernel", "outcome", "evidence", "place"] {
            assert!(line.get(field).is_some(), "{line}");
        }
    }
}

#[test]
fn exit_status() {
    let code = |args: &[&str]| common::xfsinspect(args).status.code();
    assert_eq!(code(&["preflight", "@v5-default"]), Some(0));
    assert_eq!(code(&["preflight", "@v5-default", "--kernel", "7.2"]), Some(0));
    assert_eq!(code(&["preflight", "@v5-default", "--kernel", "5.4"]), Some(1));
    assert_eq!(code(&["preflight", "@v5-default", "--kernel", "no"]), Some(2));
    assert_eq!(code(&["preflight", "@v5-default", "--logical-sector", "1000"]), Some(2));
    assert_eq!(code(&["preflight", "@v5-default", "--kconfig", "/nonexistent"]), Some(2));
    assert_eq!(code(&["preflight", "@c23-gpt-partition"]), Some(2));
    assert_eq!(code(&["explain", "rt-uninitialised-nmap", "sb-bad-crc", "P1"]), Some(0));
    assert_eq!(code(&["explain", "no-such-id"]), Some(2));
    assert_eq!(code(&["explain"]), Some(0));
}

#[test]
fn info_warns_of_the_running_kernel_and_does_not_fail() {
    let run = |release: &str, name: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_xfsinspect"));
        let output =
            command.env("XFSINSPECT_HOST_KERNEL", release).arg("info").arg(common::image(name)).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name} on {release}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(run("5.15.0-91-generic", "c08-incompat-0x20-on-515").contains("warning[incompat-nrext64-unknown]"));
    assert_eq!(run("6.1", "c08-incompat-0x20-on-515"), "");
    assert!(run("7.2", "v4-default").contains("warning[v4-support-off]"));
    assert_eq!(run("7.2", "v5-default"), "");
}
