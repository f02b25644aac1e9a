//! What the program says of images against what a kernel said of them while they were mounted: every name with its
//! inode, the content of every file, every attribute, every extent, the tables of xfs_bmap, and every range of the
//! devices with its owner.
//!
//! `testimages/expected/kernel.tsv` holds, per image and kind of answer, how many lines the kernel's answer has and
//! their SHA-256. Where the environment variable XFSINSPECT_CORPUS names a folder with the answers themselves, they are
//! compared line by line, and XFSINSPECT_BLESS=1 rewrites the table from them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;
mod images;
mod ours;
mod ranges;
mod right;

use images::Image;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Ours = fn(&Image) -> Vec<String>;
type Right = fn(&Path) -> Option<Vec<String>>;

/// The kinds of answers.
const KINDS: [(&str, Ours, Right); 7] = [
    ("tree", ours::tree, right::tree),
    ("sha256", ours::sums, right::sums),
    ("xattr", ours::attributes, right::attributes),
    ("fiemap", ours::extents, right::extents),
    ("bmap", ours::tables, right::tables),
    ("fsmap", ranges::ours, ranges::right),
    ("fsmap-table", ranges::our_table, ranges::right_table),
];

fn table() -> PathBuf {
    common::images().join("expected/kernel.tsv")
}

fn digest(lines: &[String]) -> String {
    let mut sum = Sha256::new();
    for line in lines {
        sum.update(line.as_bytes());
        sum.update(b"\n");
    }
    sum.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn answers_have_the_sums_of_the_kernels() {
    let text = std::fs::read_to_string(table()).expect("the table");
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [name, kind, count, sum] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (_, ours, _) = KINDS.iter().find(|(k, ..)| *k == kind).expect("a kind");
        let lines = ours(&images::own(name));
        if lines.len().to_string() != count || digest(&lines) != sum {
            wrong.push(format!("{name} {kind}: {} lines, the kernel's {count}", lines.len()));
        }
    }
    assert!(wrong.is_empty(), "answers that are not the kernel's: {wrong:#?}");
}

#[test]
fn answers_equal_the_kernels_line_by_line() {
    let Some(folder) = std::env::var_os("XFSINSPECT_CORPUS") else {
        common::skip("XFSINSPECT_CORPUS names no folder with images and the answers of a kernel");
        return;
    };
    let mut wrong = 0;
    let mut sums: BTreeMap<(String, &str), (usize, String)> = BTreeMap::new();
    for image in images::outside(Path::new(&folder)) {
        let truth = image.truth.as_ref().expect("truth");
        for (kind, ours, right) in KINDS {
            let Some(right) = right(truth) else { continue };
            let ours = ours(&image);
            sums.insert((image.name.clone(), kind), (right.len(), digest(&right)));
            let (have, want): (BTreeSet<_>, BTreeSet<_>) = (ours.iter().collect(), right.iter().collect());
            let (extra, missing): (Vec<_>, Vec<_>) =
                (have.difference(&want).collect(), want.difference(&have).collect());
            println!(
                "{} {kind}: {} lines, {} only here, {} only there",
                image.name,
                right.len(),
                extra.len(),
                missing.len()
            );
            for (who, list) in [("here", &extra), ("there", &missing)] {
                list.iter()
                    .take(5)
                    .for_each(|line| println!("    only {who}: {}", line.chars().take(400).collect::<String>()));
            }
            wrong += extra.len() + missing.len() + usize::from(ours.len() != right.len());
        }
    }
    assert_eq!(wrong, 0, "lines that differ from the kernel's");
    if std::env::var_os("XFSINSPECT_BLESS").is_some() {
        let mut text = String::from("# image, kind of answer, lines of the kernel's answer, their SHA-256\n");
        for ((name, kind), (count, sum)) in &sums {
            text.push_str(&format!("{name}\t{kind}\t{count}\t{sum}\n"));
        }
        std::fs::write(table(), text).expect("the table");
    }
}
