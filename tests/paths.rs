//! The paths of inodes, by whichever way they are found, are those of the tree from the root down.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use xfsinspect::units::Ino;
use xfsinspect::walk::paths::{self, From, PathOf};
use xfsinspect::walk::tree::{self, Event, Options};
use xfsinspect::walk::{Walk, metadir};

fn check(name: &str) {
    let volume = common::volume(name);
    let walk = Walk::new(&volume);
    let mut right: BTreeMap<Ino, Vec<PathOf>> = BTreeMap::new();
    for (from, root) in [(From::Root, Some(volume.superblock().rootino)), (From::Metadata, metadir::root(&walk))] {
        let Some(root) = root else { continue };
        let _ = tree::for_each(&walk, (root, b""), Options::default(), &mut |e| panic!("{e}"), &mut |event| {
            if let Event::Name(item) = event {
                right.entry(item.ino).or_default().push(PathOf { from, path: item.path.to_vec() });
            }
            ControlFlow::Continue(())
        });
    }
    right.values_mut().for_each(|paths| paths.sort());
    assert!(right.values().any(|paths| paths.len() == 3), "{name}: a file with three names");
    let all: Vec<Ino> = right.keys().copied().collect();
    // Many at once: one pass from above.
    let found = paths::of_many(&walk, &all, &mut |e| panic!("{e}"));
    assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), right, "{name}");
    // One at a time: parent pointers, `..`, or a pass each.
    let several: Vec<Ino> = right.iter().filter(|(_, paths)| paths.len() > 1).map(|(&ino, _)| ino).collect();
    for ino in all.iter().step_by(all.len() / 60).chain(&several) {
        walk.refill();
        assert_eq!(paths::of(&walk, *ino, &mut |e| panic!("{e}")), right[ino], "{name}: inode {ino}");
    }
}

#[test]
fn with_parent_pointers() {
    check("v5-parent");
}

#[test]
fn with_a_metadata_directory() {
    check("v5-metaquota");
}

#[test]
fn without_parent_pointers() {
    check("v5-old");
}

#[test]
fn of_version_4() {
    check("v4-512b");
}

#[test]
fn of_an_inode_in_a_lost_directory() {
    // Case C51: the inodes of some files are lost, not their names; and no name leads to inode 191.
    let volume = common::volume("c51-inode-cluster-zeroed");
    let walk = Walk::new(&volume);
    let path = |name: &[u8]| vec![PathOf { from: From::Root, path: name.to_vec() }];
    assert_eq!(paths::of(&walk, Ino(152), &mut |_| {}), path(b"d/f21"));
    assert_eq!(paths::of(&walk, Ino(159), &mut |_| {}), path(b"d/f28"));
    assert_eq!(paths::of(&walk, Ino(1 << 40), &mut |_| {}), []);
}
