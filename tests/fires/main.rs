//! Every rule of `check` fires on a damage of its own, and on nothing without it.
//!
//! `cases.jsonl` has a line for each rule that no line of `tests/damage` names: the image, the damage, the rules that fire
//! (the one that the line is for first, then what follows from the same damage), and what xfs_repair -n of 7.2 says, in
//! few words; `repair` is its exit status. A damage is bytes (`patch`), or edits by the names of the fields (`edit`):
//!
//! ```text
//! inode 133: core.nlinkv2=0; agf 1: freeblks=9 longest=3; dir3 @49152: +64=ffff
//! ```
//! `KIND @BYTE` is a structure by its place on the data device, `rt:KIND @BYTE` on the realtime device, `+N=` writes bytes from byte N of
//! the structure on, `nocrc` leaves the checksum wrong. `near` is an edit in the same way that does not fire: the nearest
//! legal value; without it the undamaged image is the neighbour. Where the image itself is the damage, `sound` names the
//! neighbour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;
mod edit;

use common::overlay::Overlay;
use edit::{Image, Patches};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use xfsinspect::check::context::Hooks;
use xfsinspect::check::{CATALOGUE, Options, check, rt, rule};
use xfsinspect::report::coverage::ANY_VALUE;
use xfsinspect::source::Source;
use xfsinspect::units::ByteOffset;
use xfsinspect::volume::{Choice, Devices, Volume};

/// Rules that no bytes on disk raise: the test that raises them instead. The list may only shrink.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    // A device with bad sectors.
    ("check-unreadable", "tests/check.rs", "unreadable_sectors_are_no_damage"),
    // The damage lies in a record whose own checksums have to be mended.
    ("check-not-looked-at", "tests/fires/main.rs", "a_device_that_died_is_not_looked_at"),
    // The shape of a list, on an image of its own.
    ("agfl-old-layout", "tests/advice.rs", "an_old_free_list"),
    ("log-item-damaged", "tests/check.rs", "items_that_make_no_sense"),
];

fn lines(path: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

fn cases() -> Vec<Value> {
    lines("tests/fires/cases.jsonl")
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("no {key}: {case}"))
}

/// Ids of the rules that fire.
fn fired(devices: Devices) -> BTreeSet<&'static str> {
    let volume = match Volume::open(devices, Choice::default()) {
        Ok(volume) => volume,
        Err(e) => panic!("{e:?}"),
    };
    let options = Options { threads: 2, ..Options::default() };
    let report = check(&volume, &options, Hooks { progress: &|_| {}, cancel: &Arc::new(AtomicBool::new(false)) });
    report.findings.iter().map(|finding| finding.rule.id).collect()
}

/// The damage of a line, or its neighbour.
fn patches(image: &Image, case: &Value, key: &str) -> Patches {
    let hex = |text: &str| edit::hex(text);
    match case["patch"].as_array().filter(|_| key == "edit") {
        Some(list) => {
            let one = |patch: &Value| {
                let bytes = hex(patch["hex"].as_str().unwrap()).repeat(patch["repeat"].as_u64().unwrap_or(1) as usize);
                (patch["offset"].as_u64().unwrap(), bytes)
            };
            let rt = case["device"].as_str() == Some("rt");
            list.iter().map(one).map(|(at, bytes)| ((rt, at), bytes)).collect()
        }
        None => case[key].as_str().map_or_else(Patches::new, |edits| image.edit(edits)),
    }
}

#[test]
fn each_damage_fires_its_rule_alone() {
    let mut sound: BTreeMap<String, (Image, BTreeSet<&str>)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in cases() {
        let name = text(&case, "image");
        let (image, before) = sound.entry(name.to_owned()).or_insert_with(|| {
            let image = Image::open(name);
            let before = fired(image.devices());
            (image, before)
        });
        let expected: Vec<&str> = case["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        let (mut found, mut near);
        if let Some(sound) = case["sound"].as_str() {
            (found, near) = (before.clone(), fired(Image::open(sound).devices()));
        } else {
            found = fired(image.with(patches(image, &case, "edit")));
            found.retain(|id| !before.contains(id));
            near = match case["near"].is_string() {
                true => fired(image.with(patches(image, &case, "near"))),
                false => before.clone(),
            };
        }
        near.retain(|id| expected[0] == *id);
        if found != expected.iter().copied().collect() || !near.is_empty() {
            wrong.push(format!("{} on {name}: {found:?}, neighbour {near:?}", case["ids"]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A device that answers some reads, then none.
struct Dying(Arc<dyn Source>, AtomicU32);

impl Source for Dying {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        match self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => self.0.read_at(offset, buf),
            Err(_) => Err(io::Error::other("dead")),
        }
    }
}

#[test]
fn a_device_that_died_is_not_looked_at() {
    let devices = Image::open("v5-default").devices();
    assert!(!fired(devices.clone()).contains("check-not-looked-at"));
    let found = fired(Devices { data: Arc::new(Dying(devices.data.clone(), 100.into())), ..devices });
    assert!(found.contains("check-not-looked-at"), "{found:?}");
}

/// Copies of images for xfs_repair, and how it ends on them.
struct Repair(BTreeMap<String, (Image, tempfile::TempDir)>);

impl Repair {
    /// Runs xfs_repair -n on an image damaged by `made`. `Err` has what it said unless it ends with `expected`.
    fn ends(&mut self, name: &str, made: impl FnOnce(&Image) -> Patches, expected: i64) -> Result<(), String> {
        let (image, folder) = self.0.entry(name.to_owned()).or_insert_with(|| {
            let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            for (device, packed) in edit::packed(name) {
                common::unpack(&packed, &mut File::create(folder.path().join(device)).unwrap());
            }
            (Image::open(name), folder)
        });
        let path = |device: &str| -> PathBuf { folder.path().join(device) };
        let file =
            |rt: bool| File::options().read(true).write(true).open(path(if rt { "rt" } else { "data" })).unwrap();
        let mut old = Vec::new();
        for ((rt, at), bytes) in made(image) {
            let mut was = vec![0; bytes.len()];
            file(rt).read_exact_at(&mut was, at).unwrap();
            file(rt).write_all_at(&bytes, at).unwrap();
            old.push((rt, at, was));
        }
        let mut command = common::oracle("xfs_repair").unwrap();
        command.args(["-n", "-f", "-P"]);
        for (device, option) in [("rt", "-r"), ("log", "-l")] {
            if path(device).exists() {
                command.arg(option).arg(path(device));
            }
        }
        let output = command.arg(path("data")).output().unwrap();
        for (rt, at, was) in old.iter().rev() {
            file(*rt).write_all_at(was, *at).unwrap();
        }
        let ended = output.status.code().map(i64::from);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if ended == Some(expected) { Ok(()) } else { Err(format!("{name}: {ended:?}\n{said}")) }
    }
}

/// xfs_repair -n of 7.2 ends as the lines say.
#[test]
fn xfs_repair_says_what_is_noted() {
    if common::oracle("xfs_repair").is_none() {
        return common::skip("xfs_repair_says_what_is_noted: no xfsprogs 7 in PATH or XFSPROGS");
    }
    let (mut repair, mut wrong) = (Repair(BTreeMap::new()), Vec::new());
    for case in cases() {
        let Some(expected) = case["repair"].as_i64() else { continue };
        let ended = repair.ends(text(&case, "image"), |image| patches(image, &case, "edit"), expected);
        wrong.extend(ended.err().map(|said| format!("{} on {said}", case["ids"])));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Fields that are said to be right with any value: `any_value.jsonl` sets each to others, and neither check nor
/// xfs_repair -n finds anything.
#[test]
fn any_value_is_right() {
    let repairs = common::oracle("xfs_repair").is_some();
    if !repairs {
        common::skip("any_value_is_right: xfs_repair is not asked: no xfsprogs 7 in PATH or XFSPROGS");
    }
    let (mut repair, mut wrong, mut tried) = (Repair(BTreeMap::new()), Vec::new(), BTreeSet::new());
    for line in lines("tests/fires/any_value.jsonl") {
        tried.insert((text(&line, "structure").to_owned(), text(&line, "fields").to_owned()));
        let name = text(&line, "image");
        let image = Image::open(name);
        let before = fired(image.devices());
        for edits in line["edits"].as_array().unwrap().iter().map(|edits| edits.as_str().unwrap()) {
            let found = fired(image.with(image.edit(edits)));
            if found != before {
                wrong.push(format!("{edits}: {found:?}"));
            }
            if repairs {
                wrong.extend(
                    repair.ends(name, |image| image.edit(edits), 0).err().map(|said| format!("{edits}: {said}")),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let listed: BTreeSet<_> =
        ANY_VALUE.iter().map(|(kind, fields, _)| ((*kind).to_owned(), (*fields).to_owned())).collect();
    assert_eq!(tried, listed);
}

/// Each rule has a line: here, in `tests/damage` (tests/check.rs), or a damage in tests/realtime (its
/// `every_rule_can_be_raised` goes over the lists of [`rt::rules::ALL`]).
#[test]
fn every_rule_has_a_damage() {
    let mut proven: BTreeSet<String> = cases().iter().map(|case| case["ids"][0].as_str().unwrap().to_owned()).collect();
    for case in &cases() {
        for id in case["ids"].as_array().unwrap() {
            assert!(rule(id.as_str().unwrap()).is_some(), "no rule {id}");
        }
    }
    for file in ["ag", "pile", "scrub", "tree"] {
        let lines = lines(&format!("tests/damage/{file}.jsonl"));
        proven.extend(lines.iter().map(|case| text(case, "id").to_owned()));
    }
    proven.extend(rt::rules::ALL.into_iter().flatten().map(|info| info.id.to_owned()));
    let all: BTreeSet<&str> = CATALOGUE.iter().flat_map(|rules| rules.iter()).map(|info| info.id).collect();
    for (id, file, test) in ELSEWHERE {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        assert!(all.contains(id), "no rule {id}");
        assert!(
            text.contains(&format!("\"{id}\"")) && text.contains(&format!("fn {test}(")),
            "{file} does not raise {id}"
        );
        assert!(proven.insert((*id).to_owned()), "strike {id} from ELSEWHERE");
    }
    let missing: Vec<&&str> = all.iter().filter(|id| !proven.contains(**id)).collect();
    assert!(missing.is_empty(), "{} rules without a damage: {missing:#?}", missing.len());
}
