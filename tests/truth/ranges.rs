//! Ranges of the devices with their owners: `fsmap` against what the kernel's GETFSMAP said, as xfs_io prints it. Where
//! there is no reverse mapping btree the kernel knows only what is free, and only that is compared.

use crate::images::{Image, lines, run};
use std::path::Path;

/// Does the image have reverse mapping btrees?
fn names_owners(image: &Image) -> bool {
    lines(image, &["info", "--json"], &[])[0]["features"]["rmapbt"] == true
}

/// Device, first byte, length, owner, inode, fork, offset, state, extent map, shared.
pub fn ours(image: &Image) -> Vec<String> {
    let all = names_owners(image);
    let mut out = Vec::new();
    let mut ends = std::collections::BTreeMap::<String, u64>::new();
    for line in lines(image, &["fsmap", "--json"], &[]) {
        assert_eq!(line["type"], "range", "{line}");
        let text = |name: &str| line[name].to_string();
        let (start, length) = (line["start_bytes"].as_u64().unwrap(), line["length_bytes"].as_u64().unwrap());
        // Ranges follow each other without gaps; only shared blocks come more than once.
        let end = ends.entry(text("device")).or_default();
        assert!(start == *end || (start < *end && line["shared"] == true), "{}: {line}", image.name);
        *end = (start + length).max(*end);
        // Behind the place where the kernel stops in an internal realtime section.
        let beyond = image.name == "v5-zoned" && line["device"] == "rt" && start == 369_098_752;
        if !beyond && (all || line["owner"] == "free") {
            let names = ["device", "start_bytes", "length_bytes", "owner", "ino", "fork", "offset_bytes", "state"];
            out.push(
                [&names[..], &["bmbt", "shared"]].concat().iter().map(|name| text(name)).collect::<Vec<_>>().join(" "),
            );
        }
    }
    out
}

/// Owners as xfs_io prints them, and as JSON has them.
const OWNERS: [(&str, &str); 9] = [
    ("free space", "free"),
    ("unknown", "unknown"),
    ("static fs metadata", "fs"),
    ("journalling log", "log"),
    ("per-AG metadata", "ag"),
    ("inode btree", "inobt"),
    ("inodes", "inodes"),
    ("refcount btree", "refcount"),
    ("cow reservation", "cow"),
];

/// Device and the rest of each row.
fn rows(folder: &Path) -> Option<Vec<(&'static str, String)>> {
    let text = std::fs::read_to_string(folder.join("fsmap")).ok()?;
    // With three devices the realtime one comes before the log.
    let second = if text.contains(": 254:32 ") || text.contains("realtime =/dev/vdb") { "rt" } else { "log" };
    let second = match std::fs::read_to_string(folder.join("xfs_info")) {
        Ok(info) if info.contains("realtime =/dev/") => "rt",
        _ => second,
    };
    let named = text.contains("static fs metadata");
    let rows = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(": ")?;
        number.trim().parse::<u64>().ok()?;
        let (device, rest) = rest.trim_start().split_once(' ')?;
        let device = match device {
            "254:0" | "0x1" => "data",
            "0x3" => "rt",
            "254:16" => second,
            "254:32" => "log",
            other => panic!("{other}"),
        };
        (named || rest.contains("free space")).then(|| (device, rest.trim().to_owned()))
    });
    Some(rows.collect())
}

pub fn right(folder: &Path) -> Option<Vec<String>> {
    let mut out = Vec::new();
    for (device, row) in rows(folder)? {
        let (place, rest) = row.split_once("]:").expect("a range");
        let sectors = |text: &str| {
            let (first, last) = text.split_once("..").expect("a range");
            (first.parse::<u64>().expect("a number"), last.parse::<u64>().expect("a number"))
        };
        let (first, last) = sectors(place.trim_start_matches('['));
        let rest = rest.trim();
        let flags = rest.rsplit(' ').next().filter(|word| word.len() == 7 && word.bytes().all(|b| b"01".contains(&b)));
        let flag = |at: usize| flags.is_some_and(|flags| flags.as_bytes()[at] == b'1');
        let place = format!("\"{device}\" {} {}", first * 512, (last - first + 1) * 512);
        let special = OWNERS.iter().find(|(text, _)| rest.starts_with(text));
        out.push(match special {
            Some((_, name)) => format!("{place} \"{name}\" null null null null false false"),
            None => {
                let (ino, rest) = rest.split_once(' ').expect("an inode");
                let fork = if flag(0) { "attr" } else { "data" };
                match rest.trim_start().starts_with("extent map") {
                    true => format!("{place} \"inode\" {ino} \"{fork}\" null null true false"),
                    false => {
                        let (offset, _) = sectors(rest.split_whitespace().next().expect("an offset"));
                        let state = if flag(2) { "unwritten" } else { "written" };
                        let shared = flag(1);
                        format!("{place} \"inode\" {ino} \"{fork}\" {} \"{state}\" false {shared}", offset * 512)
                    }
                }
            }
        });
    }
    Some(out)
}

/// The rows of the table, words apart by one space.
pub fn our_table(image: &Image) -> Vec<String> {
    let all = names_owners(image);
    let words: &[&str] = if all { &["fsmap"] } else { &["fsmap", "--free"] };
    let out = run(image, words, &[]);
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    let rows = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(": ")?;
        number.trim().parse::<u64>().ok()?;
        Some(rest.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    rows.collect()
}

pub fn right_table(folder: &Path) -> Option<Vec<String>> {
    let rows = rows(folder)?;
    // The rows about the data device before an internal realtime section differ: they are in no group here.
    let zoned = rows.iter().any(|(_, row)| row.contains(" -1 (0.."));
    let line =
        |(device, row): &(&str, String)| format!("{device} {}", row.split_whitespace().collect::<Vec<_>>().join(" "));
    (!zoned).then(|| rows.iter().map(line).collect())
}
