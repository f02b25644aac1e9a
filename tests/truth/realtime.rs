//! The realtime section: free ranges against the kernel's GETFSMAP, owners against FIEMAP of every realtime file.

use crate::images::{Image, lines};
use crate::ours::{Extent, extents_line, files, merge};
use crate::right;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn ranges(mut list: Vec<(u64, u64)>) -> Vec<String> {
    list.sort_unstable();
    // Groups side by side are one range to the kernel.
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, length) in list {
        match merged.last_mut() {
            Some((first, before)) if *first + *before == start => *before += length,
            _ => merged.push((start, length)),
        }
    }
    merged.iter().map(|(start, length)| format!("{start}:{length}")).collect()
}

/// Free ranges of the realtime section: first byte and length.
pub fn free(image: &Image) -> Vec<String> {
    let number = |line: &serde_json::Value, name: &str| line[name].as_u64().expect("a number");
    let found = lines(image, &["rt", "--json"], &["free".into()]);
    let runs = found.iter().filter(|line| line["type"] == "rt_run");
    let mut list: Vec<(u64, u64)> =
        runs.map(|line| (number(line, "start_bytes"), number(line, "length_bytes"))).collect();
    let report = &lines(image, &["rt", "--json"], &[])[0];
    if report["geometry"]["device"] == "data" {
        // The kernel ends its map of an internal section at rblocks, counted from the start of the device: too early.
        let end = number(&report["geometry"], "length_bytes");
        list.retain_mut(|(start, length)| {
            *length = (*start + *length).min(end).saturating_sub(*start);
            *length > 0
        });
    }
    ranges(list)
}

/// The same from `fsmap`: device 254:16 is the realtime device, 0x3 an internal section. `None` where there is none.
pub fn right_free(folder: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(folder.join("fsmap")).ok()?;
    let mut found = Vec::new();
    let mut any = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == "254:16" || *word == "0x3") else { continue };
        any = true;
        if words.get(at + 2..at + 4) == Some(&["free", "space"]) {
            let range = words[at + 1].trim_matches(|c| "[]:".contains(c));
            let (first, last) = range.split_once("..").expect("a range");
            let (first, last): (u64, u64) = (first.parse().expect("first"), last.parse().expect("last"));
            found.push((first * 512, (last + 1 - first) * 512));
        }
    }
    // 254:16 is the log device where there is no realtime section.
    let section = folder.join("lsattr");
    let attributes = std::fs::read(section).unwrap_or_default();
    let realtime = any && attributes.split(|&b| b == b'\n').any(|line| line.starts_with(b"r"));
    realtime.then(|| ranges(found))
}

/// Extents of realtime files by path, from `rt map`.
pub fn owners(image: &Image) -> Vec<String> {
    let mut found: BTreeMap<String, Vec<Extent>> = BTreeMap::new();
    for line in lines(image, &["rt", "--json"], &["map".into()]).iter().filter(|l| l["owner"] == "inode") {
        let number = |name: &str| line[name].as_u64().expect("a number");
        let flags = u64::from(line["state"] == "unwritten") << 11 | u64::from(line["shared"] == true) << 13;
        let extent = (number("offset_bytes"), number("start_bytes"), number("length_bytes"), flags);
        found.entry(line["ino"].to_string()).or_default().push(extent);
    }
    let mut out = Vec::new();
    for file in files(image) {
        let Some(extents) = found.get_mut(&file.ino) else { continue };
        // They come in the order of the section.
        extents.sort_unstable();
        let mut merged = Vec::new();
        extents.iter().for_each(|&extent| merge(&mut merged, extent));
        out.push(extents_line(&file.path, &merged));
    }
    out.sort();
    out
}

/// The same from `fiemap`, for the files that `lsattr` says are realtime files.
pub fn right_owners(folder: &Path) -> Option<Vec<String>> {
    let text = std::fs::read(folder.join("lsattr")).ok()?;
    let mut names: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut last: Option<Vec<u8>> = None;
    for line in text.split(|&b| b == b'\n') {
        match line.windows(8).position(|w| w == b" /mnt/m/").filter(|&at| at == 17) {
            Some(at) => {
                names.extend(last.take());
                if line.starts_with(b"r") {
                    last = Some(line[at + 8..].to_vec());
                }
            }
            // A name with a line break goes on.
            None => {
                if let Some(last) = &mut last {
                    last.push(b'\n');
                    last.extend_from_slice(line);
                }
            }
        }
    }
    names.extend(last);
    let shown: BTreeSet<String> =
        names.iter().map(|name| crate::ours::shown(name.strip_suffix(b" ").unwrap_or(name))).collect();
    if shown.is_empty() {
        return None;
    }
    let all = right::extents(folder)?;
    let of = |line: &String| {
        let (path, list) = line.split_once('\t').expect("a tab");
        shown.contains(path) && !list.is_empty()
    };
    Some(all.into_iter().filter(of).collect())
}
