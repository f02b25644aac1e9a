//! Every structure of an image against `print` of xfs_db 7.2: inodes, btree blocks, directory, attribute, symlink and
//! quota blocks, headers, realtime metadata.
//!
//! The oracle is a command line in `XFS_DB`, or `xfs_db` in the folder `XFSPROGS`, or in PATH; older than version 7 it
//! prints other lines and is no oracle. Without one the test says so and ends. `XFS_IMAGES` names a folder with one
//! folder for each image (`data.img` or `fs.img`, `rt.img`, `log.img`) to compare as well; `XFS_ONLY` (names, comma
//! separated) restricts the run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;

mod collect;
mod oracle;
mod paths;

use collect::{Collector, Question};
use oracle::{Image, Oracle};
use std::collections::BTreeMap;
use xfsinspect::format::{Type, layout};
use xfsinspect::report::print::{Style, print};
use xfsinspect::report::select::select;
use xfsinspect::report::value::View;
use xfsinspect::report::xfs_db::print_all;
use xfsinspect::volume::Volume;

/// Images that are compared by default: all kinds of file systems, all undamaged.
const IMAGES: &[&str] = &[
    "v4-512b",
    "v4-1k-ci",
    "v4-default",
    "v4-rt-256k",
    "v5-1k-rmap",
    "v5-4kn",
    "v5-64k",
    "v5-default",
    "v5-extlog",
    "v5-metaquota",
    "v5-old",
    "v5-parent",
    "v5-quota",
    "v5-rt-28k",
    "v5-rt-64k",
    "v5-rtgroups",
    "v5-rtgroups-16k",
    "v5-stripe",
    "v5-zoned",
];

/// What we print for the bytes of a question.
fn ours(volume: &Volume, question: &Question) -> String {
    let view = View { bytes: &question.bytes, context: volume.context() };
    let nodes = layout(question.kind, volume.context(), &question.bytes);
    let mut out = String::new();
    print_all(&mut out, question.kind, view, nodes, Style::default());
    out
}

/// The first lines that differ.
fn difference(theirs: &str, ours: &str) -> String {
    let (theirs, ours): (Vec<_>, Vec<_>) = (theirs.lines().collect(), ours.lines().collect());
    let at = theirs.iter().zip(&ours).position(|(a, b)| a != b).unwrap_or(theirs.len().min(ours.len()));
    let line =
        |lines: &[&str], n: usize| lines.get(n).map_or("(nothing)".into(), |l| l.chars().take(300).collect::<String>());
    (at..at + 3).map(|n| format!("\n    xfs_db {}\n    ours   {}", line(&theirs, n), line(&ours, n))).collect()
}

#[derive(Default)]
struct Score {
    asked: usize,
    equal: usize,
}

fn compare(oracle: &Oracle, image: &Image, failures: &mut Vec<String>) {
    let volume = image.volume();
    let questions = Collector::collect(&volume);
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    for batch in questions.chunks(250) {
        for (question, theirs) in batch.iter().zip(oracle.ask(image, batch)) {
            let score = scores.entry(question.kind.name()).or_default();
            score.asked += 1;
            let ours = ours(&volume, question);
            if theirs == ours.as_bytes() {
                score.equal += 1;
            } else {
                let theirs = String::from_utf8_lossy(&theirs);
                failures.push(format!("{}: {:?}: {}", image.name, question.commands, difference(&theirs, &ours)));
            }
        }
    }
    let line: Vec<String> = scores.iter().map(|(kind, s)| format!("{kind} {}/{}", s.equal, s.asked)).collect();
    println!("{}: {}", image.name, line.join("  "));
}

/// One structure of each make of an image (which fields it has), and for each some of its field paths.
fn path_questions(volume: &Volume) -> Vec<(Question, paths::Path)> {
    let mut makes = std::collections::HashSet::new();
    let mut list = Vec::new();
    for question in Collector::collect(volume) {
        let nodes = layout(question.kind, volume.context(), &question.bytes);
        let first = |node: &xfsinspect::format::Node| match &node.body {
            xfsinspect::format::Body::Group(parts) => parts.iter().map(|part| part.name).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let make: Vec<_> = nodes.iter().map(|node| (node.name, first(node))).collect();
        if !makes.insert((question.kind, make)) {
            continue;
        }
        if matches!(question.kind, Type::Data | Type::Text | Type::Rtbitmap | Type::Rtsummary) {
            continue; // xfs_db takes no field names for these
        }
        for path in paths::of(&nodes, volume.context(), &question.bytes) {
            let mut commands = question.commands.clone();
            commands.pop();
            commands.push(format!("print {}", path.0));
            let (kind, bytes) = (question.kind, question.bytes.clone());
            list.push((Question { commands, kind, bytes }, path));
        }
    }
    list
}

#[test]
fn selects_fields_as_xfs_db_does() {
    let Some(oracle) = Oracle::find() else {
        println!("SKIPPED: no xfs_db of version 7 or newer (set XFS_DB or XFSPROGS)");
        return;
    };
    let mut failures = Vec::new();
    for image in Image::all(IMAGES) {
        let volume = image.volume();
        let (questions, paths): (Vec<_>, Vec<_>) = path_questions(&volume).into_iter().unzip();
        let mut equal = 0;
        for (batch, names) in questions.chunks(250).zip(paths.chunks(250)) {
            for ((question, (path, hidden)), theirs) in batch.iter().zip(names).zip(oracle.ask(&image, batch)) {
                let view = View { bytes: &question.bytes, context: volume.context() };
                let nodes = layout(question.kind, volume.context(), &question.bytes);
                let mut ours = String::new();
                match select(&nodes, path, volume.context(), &question.bytes) {
                    Ok(node) => print(&mut ours, view, &[node], Style::default()),
                    Err(error) => ours = error.to_string(),
                }
                let unknown = *hidden && theirs.starts_with(b"field ") && theirs.ends_with(b" not found\n");
                let better = paths::we_know_better(question.kind, volume.context().has_crc(), path);
                if theirs == ours.as_bytes() || unknown || better {
                    equal += 1;
                } else {
                    let theirs = String::from_utf8_lossy(&theirs);
                    failures.push(format!("{}: {:?}: {}", image.name, question.commands, difference(&theirs, &ours)));
                }
            }
        }
        println!("{}: field paths {equal}/{}", image.name, questions.len());
    }
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} differ:\n{shown}", failures.len());
}

#[test]
fn prints_what_xfs_db_prints() {
    let Some(oracle) = Oracle::find() else {
        println!("SKIPPED: no xfs_db of version 7 or newer (set XFS_DB or XFSPROGS)");
        return;
    };
    let mut failures = Vec::new();
    let mut images = 0;
    for image in Image::all(IMAGES) {
        compare(&oracle, &image, &mut failures);
        images += 1;
    }
    assert!(images > 0, "no images to compare");
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} differ:\n{shown}", failures.len());
}
