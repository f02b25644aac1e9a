//! Every field of every structure, damaged with each of xfs_db's fuzz verbs: showing it never panics, ends, and stays
//! within bounds. The structures are cut from the images; damage is applied in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

#[allow(dead_code)]
#[path = "xfs_db/collect.rs"]
mod collect;

use collect::Collector;
use std::collections::{BTreeMap, HashSet};
use xfsinspect::format::attr_leaf::{self, Content};
use xfsinspect::format::btree_block::Shape;
use xfsinspect::format::dinode::{Fork, fork_range};
use xfsinspect::format::{
    Body, Context, Node, STRUCTURES, Type, attr_remote, attr_shortform, bmbt, bnobt, cntbt, da_node, dir_data,
    dir_free, dir_leaf, dir_shortform, dquot, finobt, guess, inobt, layout, refcountbt, rmapbt, rtbitmap, rtrefcountbt,
    rtrmapbt, symlink,
};
use xfsinspect::report::json;
use xfsinspect::report::print::{Style, print};
use xfsinspect::report::select::select;
use xfsinspect::report::value::View;
use xfsinspect::report::xfs_db::print_all;

/// Where structures are cut from: V4 and V5, 512 to 16384 byte blocks, realtime with and without groups, quota.
const IMAGES: &[&str] =
    &["v4-512b", "v4-rt-256k", "v5-1k-rmap", "v5-quota", "v5-rt-28k", "v5-rtgroups-16k", "v5-zoned"];

/// xfs_db's fuzz verbs.
const VERBS: &[&str] = &["zeroes", "ones", "firstbit", "middlebit", "lastbit", "add", "sub", "random"];

/// All indexes of btrees.
const TREES: &[&Shape] = &[
    &bnobt::SHAPE,
    &cntbt::SHAPE,
    &inobt::SHAPE,
    &finobt::SHAPE,
    &rmapbt::SHAPE,
    &refcountbt::SHAPE,
    &rtrmapbt::SHAPE,
    &rtrefcountbt::SHAPE,
    &bmbt::SHAPE,
    &bmbt::ATTR_SHAPE,
];

struct Sample {
    kind: Type,
    context: Context,
    bytes: Vec<u8>,
}

/// A source of numbers that is the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// One structure of each make (which fields it has) on V4 and on V5, and a block of nothing for the types that no
/// image has.
fn samples() -> Vec<Sample> {
    let mut list = Vec::new();
    let mut makes = HashSet::new();
    for name in IMAGES {
        let volume = common::volume(name);
        let v5 = volume.context().has_crc();
        for question in Collector::collect(&volume) {
            let nodes = layout(question.kind, volume.context(), &question.bytes);
            let names = |node: &Node| match &node.body {
                Body::Group(parts) => parts.iter().map(|part| part.name).collect(),
                _ => Vec::new(),
            };
            let make: Vec<_> = nodes.iter().map(|node| (node.name, names(node))).collect();
            if makes.insert((question.kind, v5, make)) {
                list.push(Sample { kind: question.kind, context: volume.context().clone(), bytes: question.bytes });
            }
        }
    }
    let seen: HashSet<Type> = list.iter().map(|sample| sample.kind).collect();
    for row in STRUCTURES.iter().filter(|row| !seen.contains(&row.kind)) {
        let context = Context::assumed(true);
        let mut bytes = vec![0x11; row.kind.size(&context) as usize];
        if let Some(shape) = TREES.iter().find(|shape| shape.kind == row.kind) {
            for level in [0u16, 1] {
                bytes[..4].copy_from_slice(&shape.magic[1].to_be_bytes());
                bytes[4..6].copy_from_slice(&level.to_be_bytes());
                bytes[6..8].copy_from_slice(&5u16.to_be_bytes());
                list.push(Sample { kind: row.kind, context: context.clone(), bytes: bytes.clone() });
            }
        } else {
            list.push(Sample { kind: row.kind, context, bytes });
        }
    }
    list
}

/// Bit ranges of the fields: every plain value, and of arrays the first, a middle and the last element.
fn ranges(nodes: &[Node], found: &mut Vec<(u64, u32)>) {
    for node in nodes {
        match &node.body {
            Body::Group(parts) => ranges(parts, found),
            Body::List { items, .. } => {
                let last = items.len().saturating_sub(1);
                for i in HashSet::from([0, last / 2, last]) {
                    items.get(i).into_iter().for_each(|item| ranges(&item.nodes, found));
                }
            }
            Body::Value { bits, count, .. } => {
                for i in HashSet::from([0, count / 2, count.saturating_sub(1)]) {
                    found.push((node.bit + u64::from(i) * u64::from(*bits), *bits));
                }
            }
            Body::Records { fields, stride, count, .. } => {
                for i in HashSet::from([0, count / 2, count.saturating_sub(1)]) {
                    let base = node.bit + u64::from(i) * u64::from(*stride);
                    found.extend(fields.iter().map(|field| (base + u64::from(field.bit), field.bits)));
                }
            }
            Body::Empty => {}
        }
    }
}

fn bit(bytes: &[u8], at: u64) -> Option<bool> {
    Some(bytes.get((at / 8) as usize)? >> (7 - at % 8) & 1 != 0)
}

fn put(bytes: &mut [u8], at: u64, on: bool) {
    if let Some(byte) = bytes.get_mut((at / 8) as usize) {
        let mask = 1 << (7 - at % 8);
        *byte = if on { *byte | mask } else { *byte & !mask };
    }
}

fn flip(bytes: &mut [u8], at: u64) {
    if let Some(on) = bit(bytes, at) {
        put(bytes, at, !on);
    }
}

/// Applies a verb to the bits `first .. first + width`.
fn damage(bytes: &mut [u8], (first, width): (u64, u32), verb: &str, random: &mut Random) {
    let width = u64::from(width);
    let low = width.min(64);
    let number = (0..low).fold(0u64, |n, i| n << 1 | u64::from(bit(bytes, first + width - low + i) == Some(true)));
    let store = |bytes: &mut [u8], n: u64| {
        (0..low).for_each(|i| put(bytes, first + width - 1 - i, n >> i & 1 != 0));
    };
    match verb {
        "zeroes" => (0..width).for_each(|i| put(bytes, first + i, false)),
        "ones" => (0..width).for_each(|i| put(bytes, first + i, true)),
        "firstbit" => flip(bytes, first),
        "middlebit" => flip(bytes, first + width / 2),
        "lastbit" => flip(bytes, first + width.saturating_sub(1)),
        "add" => store(bytes, number.wrapping_add(2017)),
        "sub" => store(bytes, number.wrapping_sub(2017)),
        _ => store(bytes, random.next()),
    }
}

/// Shows a structure in every way. Output must stay within what a block can hold.
fn show(kind: Type, context: &Context, bytes: &[u8]) {
    let view = View { bytes, context };
    let nodes = layout(kind, context, bytes);
    let mut out = String::new();
    print(&mut out, view, &nodes, Style { verbose: true });
    out.clear();
    print_all(&mut out, kind, view, nodes.clone(), Style::default());
    let bound = 4096 + bytes.len() * 300;
    assert!(out.len() < bound, "{}: {} bytes of text from {}", kind.name(), out.len(), bytes.len());
    let _ = json::nodes(view, &nodes);
    for path in ["core", "bu[0].name", "nvlist[0-3].name", "recs[1].startblock", "u3.bmx[0-2]", "hdr"] {
        let _ = select(&nodes, path, context, bytes);
    }
}

/// Runs every accessor over the bytes, whatever they are; each must end.
fn walk(context: &Context, bytes: &[u8]) -> usize {
    let mut steps = 0;
    for shape in TREES {
        steps += shape.records(context, bytes).count() + shape.children(context, bytes).count();
        for fork in [Fork::Data, Fork::Attr] {
            let fork = fork_range(bytes, fork).map(|(at, length)| &bytes[at..at + length]).unwrap_or_default();
            if let Some(root) = shape.root(fork) {
                steps += root.records().count() + root.children().count();
            }
            steps += dir_shortform::entries(context, fork).count() + attr_shortform::entries(fork).count();
        }
    }
    steps += dir_data::slots(context, bytes).count();
    steps += dir_leaf::entries(context, bytes).count() + dir_leaf::bests(bytes).count();
    steps += dir_free::bests(context, bytes).count() + da_node::entries(context, bytes).count();
    steps += attr_leaf::entries(context, bytes).filter(|entry| entry.content != Content::Outside).count();
    steps += dquot::records(bytes).count();
    steps += rtbitmap::words(context, bytes, rtbitmap::ByteOrder::Little).count();
    steps += attr_remote::payload(context, bytes).map_or(0, <[u8]>::len);
    steps += symlink::payload(context, bytes).map_or(0, <[u8]>::len);
    let _ = guess::by_magic(bytes);
    steps
}

#[test]
fn every_field_of_every_structure() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut cases = BTreeMap::new();
    for sample in samples() {
        let mut fields = Vec::new();
        ranges(&layout(sample.kind, &sample.context, &sample.bytes), &mut fields);
        fields.sort_unstable();
        fields.dedup();
        assert!(!fields.is_empty(), "{}: no fields", sample.kind.name());
        for &field in &fields {
            for verb in VERBS {
                let mut bytes = sample.bytes.clone();
                damage(&mut bytes, field, verb, &mut random);
                show(sample.kind, &sample.context, &bytes);
                let steps = walk(&sample.context, &bytes);
                assert!(steps < bytes.len() * 40 + 100_000, "{}: {steps} steps", sample.kind.name());
                *cases.entry(sample.kind.name()).or_insert(0usize) += 1;
            }
        }
    }
    println!("{cases:?}");
    assert_eq!(cases.len(), STRUCTURES.len(), "every structure of the list was damaged");
}

/// Bytes of any kind and length, as any structure, on any file system.
#[test]
fn any_bytes_as_any_structure() {
    let mut random = Random(42);
    let samples = samples();
    let contexts: Vec<Context> = IMAGES.iter().map(|name| common::volume(name).context().clone()).collect();
    for row in STRUCTURES {
        for context in &contexts {
            let size = row.kind.size(context) as usize;
            let noise: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
            for bytes in [vec![0; size], vec![0xff; size], noise] {
                for length in [0, 1, 3, 4, 8, 15, 16, 63, 64, 100, 176, size / 2, size - 1, size] {
                    let bytes = &bytes[..length.min(size)];
                    show(row.kind, context, bytes);
                    walk(context, bytes);
                }
            }
            // A structure of another file system, or of another type.
            for sample in samples.iter().filter(|sample| sample.bytes.len() <= 4096) {
                if sample.kind == row.kind || random.next().is_multiple_of(8) {
                    show(row.kind, context, &sample.bytes);
                }
            }
        }
    }
}
