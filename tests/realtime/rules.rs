//! Every rule about the realtime section, raised by one damage at least, and at the place where that damage is.

use crate::common;
use crate::damage::first_block;
use crate::patch::Image;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use xfsinspect::check::rt::{Depth, Part, Sink, Unobserved, check, rules};
use xfsinspect::check::{Finding, alone};
use xfsinspect::format::Structure;
use xfsinspect::source::{MemorySource, Source};
use xfsinspect::units::{ByteOffset, Device, Ino, RgNumber};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::metadir::GroupFile;
use xfsinspect::walk::{Inode, Walk, rt};

/// Where a finding is expected: device, and the bytes within which it lies.
type Where = (Device, std::ops::Range<u64>);

fn findings(volume: &Volume) -> Vec<Finding> {
    let walk = Walk::new(volume);
    let mut found = Vec::new();
    let mut keep = |finding: Finding| found.push(finding);
    check(&walk, Depth::Everything, &mut Unobserved, &mut Sink::new(&mut keep));
    found
}

/// Raised rules, so that none is left out in the end.
#[derive(Default)]
struct Seen(BTreeSet<&'static str>);

impl Seen {
    fn expect(&mut self, volume: &Volume, id: &str, (device, bytes): Where) {
        let found = findings(volume);
        let hit = found.iter().find(|f| f.rule.id == id && f.place.device == device && bytes.contains(&f.place.byte.0));
        let all: Vec<_> = found.iter().map(|f| (f.rule.id, f.place.device, f.place.byte.0)).collect();
        let hit = hit.unwrap_or_else(|| panic!("{id} at {device} {bytes:?}: {all:?}"));
        assert!(!hit.found.is_empty() && !hit.expected.is_empty() && !hit.place.structure.is_empty(), "{id}");
        self.0.insert(hit.rule.id);
    }
}

/// A device on which some bytes cannot be read.
struct Failing {
    beneath: Arc<dyn Source>,
    bad: std::ops::Range<u64>,
}

impl Source for Failing {
    fn len(&self) -> u64 {
        self.beneath.len()
    }
    fn read_at(&self, offset: ByteOffset, buf: &mut [u8]) -> io::Result<()> {
        if offset.0 < self.bad.end && offset.0 + buf.len() as u64 > self.bad.start {
            return Err(io::Error::other("bad sector"));
        }
        self.beneath.read_at(offset, buf)
    }
}

fn failing(name: &str, bad: std::ops::Range<u64>) -> Volume {
    let mut devices = common::devices(name);
    devices.data = Arc::new(Failing { beneath: devices.data, bad });
    Volume::open(devices, Choice::default()).unwrap()
}

/// What `rt` finds where inodes of the section are looked at by themselves, too.
fn verified(volume: &Volume) -> Vec<&'static str> {
    let walk = Walk::new(volume);
    let mut found = Vec::new();
    let mut keep = |finding: Finding| found.push(finding.rule.id);
    alone::with(&walk, |alone| {
        let alone = RefCell::new(alone);
        let verify = |inode: Inode<'_>, part: Part| match part {
            Part::Fields => alone.borrow().fields(inode),
            Part::Whole => alone.borrow_mut().whole(inode),
        };
        let mut sink = Sink::new(&mut keep).verifying(&verify);
        check(&walk, Depth::Everything, &mut Unobserved, &mut sink);
    });
    found
}

/// Each is refused by kernel 7.2 at mount (inodes of bitmap and summary, of a 1 KiB file system with a classic section),
/// except the count of blocks, which xfs_repair -n alone complains of.
#[test]
fn inodes_of_the_section_by_themselves() {
    let image = Image::new("v5-rt-64k");
    let sb = image.volume.superblock().clone();
    assert_eq!(verified(&image.volume), [""; 0]);
    let damages: [InodeDamage; 6] = [
        ("inode-bad-forkoff", |b| b[82] = 255),
        ("inode-bad-anextents", |b| b[79] = 5),
        ("inode-bad-flags2", |b| b[127] |= 2),
        ("inode-bad-cowextsize", |b| b[131] = 7),
        ("inode-bad-extsize", |b| b[75] = 5),
        ("inode-nblocks-mismatch", |b| b[71] = 99),
    ];
    for ino in [sb.rbmino.0, sb.rsumino.0] {
        for (id, change) in damages {
            let found = verified(&image.inode_changed(ino, change));
            assert!(found.contains(&id), "{id}: {found:?}");
        }
    }
    // A realtime file.
    let image = Image::new("c63-classic-rt-recorder");
    assert_eq!(verified(&image.volume), [""; 0]);
    let found = verified(&image.inode_changed(132, |b| b[90] |= 8));
    assert_eq!(found, ["inode-bad-extsize"]);
    assert_eq!(verified(&image.inode_changed(132, |b| b[71] ^= 1)), ["inode-nblocks-mismatch"]);
    // Groups: the files of each, with their btrees.
    let image = Image::new("c64-rtgroups-64m");
    assert_eq!(verified(&image.volume), [""; 0]);
    let rmap = group_file(&image, 3, GroupFile::Rmap);
    assert_eq!(verified(&image.inode_changed(rmap, |b| b[71] = 9)), ["inode-nblocks-mismatch"]);
}

fn inode_range(image: &Image, ino: u64) -> Where {
    let byte = image.volume.geometry().inode_byte(Ino(ino)).unwrap().0;
    (Device::Data, byte..byte + u64::from(image.volume.context().inode_size))
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn group_file(image: &Image, group: u32, file: GroupFile) -> u64 {
    let walk = Walk::new(&image.volume);
    rt::inode(&walk, RgNumber(group), file, &mut |e| panic!("{e}")).unwrap().ino().0
}

/// A change of an inode, and the rule that finds it there.
type InodeDamage = (&'static str, fn(&mut [u8]));

fn bitmap_and_summary(seen: &mut Seen) {
    let image = Image::new("v5-rt-64k");
    let sb = image.volume.superblock().clone();
    let damages: [InodeDamage; 7] = [
        ("inode-bad", |b| b[2] = 0x41),
        ("size-wrong", |b| put(b, 56, &0u64.to_be_bytes())),
        ("flags-wrong", |b| b[91] |= 1),
        ("hole", |b| put(b, 24, &0u64.to_be_bytes())),
        ("unwritten", |b| b[176] |= 0x80),
        ("block-outside", |b| put(b, 184, &(1u64 << 60 | 1).to_be_bytes())),
        ("mapped-beyond-size", |b| b[191] = 2),
    ];
    for (ino, file, name) in
        [(sb.rbmino.0, GroupFile::Bitmap, "rtbitmap"), (sb.rsumino.0, GroupFile::Summary, "rtsummary")]
    {
        for (id, change) in damages {
            let volume = image.inode_changed(ino, change);
            seen.expect(&volume, &format!("{name}-{id}"), inode_range(&image, ino));
        }
        let block = first_block(&image, 0, file).1;
        let volume = failing("v5-rt-64k", block..block + 4096);
        seen.expect(&volume, &format!("{name}-unreadable"), (Device::Data, block..block + 4096));
    }
    // Without groups the section is group 0 to kernel 6.13 and later, whose files are of project 0 and linked: 7.2 refuses
    // both mounts ("metadata inode 0x81 type 5 is corrupt", "Structure needs cleaning"), 6.1 mounts.
    for ino in [sb.rbmino.0, sb.rsumino.0] {
        let volume = image.inode_changed(ino, |b| b[21] = 1);
        seen.expect(&volume, "rtgroup-file-number", inode_range(&image, ino));
    }
    let volume = image.inode_changed(sb.rbmino.0, |b| put(b, 16, &0u32.to_be_bytes()));
    seen.expect(&volume, "rtbitmap-inode-bad", inode_range(&image, sb.rbmino.0));
    let volume = image.inode_changed(sb.rbmino.0, |b| b[91] &= !4);
    seen.expect(&volume, "rtbitmap-no-sequence", inode_range(&image, sb.rbmino.0));
    let volume = image.inode_changed(sb.rbmino.0, |b| put(b, 24, &0u64.to_be_bytes()));
    seen.expect(&volume, "rtsummary-not-compared", inode_range(&image, sb.rsumino.0));
    let (bitmap, summary) = crate::damage::classic_blocks(&image);
    let changed = |at: u64, change: &dyn Fn(&mut [u8])| image.changed(at, 4096, 0, |b| change(b));
    seen.expect(&changed(bitmap, &|b| b[322] = 1), "rtbitmap-tail-bits", inode_range(&image, sb.rbmino.0));
    seen.expect(&changed(summary, &|b| b[4] ^= 1), "rtsummary-mismatch", (Device::Data, summary + 4..summary + 8));
    let last = summary + 4092..summary + 4096;
    seen.expect(&changed(summary, &|b| b[4095] = 1), "rtsummary-tail-words", (Device::Data, last));
    let frextents = xfsinspect::format::superblock::Superblock::FIELDS.iter().find(|f| f.name == "frextents").unwrap();
    let volume = image.superblock_changed(|b| b[(frextents.bit / 8 + 7) as usize] ^= 1);
    seen.expect(&volume, "rtbitmap-free-count", (Device::Data, 0..1));
    // Extent 0 is in use, the last ones are free: 65536 bytes each.
    seen.expect(&changed(bitmap, &|b| b[0] |= 1), "rtbitmap-free-but-used", (Device::Rt, 0..1));
    let lost = (Device::Rt, 2558 * 65536..2559 * 65536);
    seen.expect(&changed(bitmap, &|b| b[319] &= !0x40), "rtbitmap-used-but-unowned", lost);
}

fn headers(seen: &mut Seen) {
    let image = Image::new("v5-rtgroups-16k");
    for (file, name) in [(GroupFile::Bitmap, "rtbitmap"), (GroupFile::Summary, "rtsummary")] {
        let (_, byte) = first_block(&image, 2, file);
        let place = (Device::Data, byte..byte + 4096);
        for (at, id) in [(0, "bad-magic"), (8, "bad-owner"), (16, "bad-blkno"), (32, "bad-uuid")] {
            let volume = image.changed(byte, 4096, 4, |b| b[at] ^= 1);
            seen.expect(&volume, &format!("{name}-{id}"), place.clone());
        }
        let volume = image.changed(byte, 4096, 0, |b| b[4] ^= 1);
        seen.expect(&volume, &format!("{name}-bad-crc"), place);
    }
}

fn files(seen: &mut Seen) {
    let image = Image::new("c63-classic-rt-recorder");
    let root = image.volume.superblock().rootino.0;
    let damages: [(u64, InodeDamage); 14] = [
        (root, ("rtfile-not-regular", |b| b[91] |= 1)),
        (132, ("rtfile-filestream", |b| b[90] |= 0x40)),
        (132, ("rtfile-rtinherit-no-directory", |b| b[90] |= 1)),
        (root, ("rtfile-inherited-extsize-misfit", |b| (b[75], b[90]) = (3, 0x11))),
        (132, ("rtfile-extsize-misfit", |b| (b[75], b[90]) = (3, b[90] | 8))),
        (132, ("rtfile-cowextsize-misfit", |b| b[131] = 3)),
        (132, ("rtfile-shared-flag", |b| b[127] |= 2)),
        (134, ("rtfile-extent-empty", |b| (b[189], b[190], b[191]) = (b[189] & 0xe0, 0, 0))),
        (134, ("rtfile-extent-beyond-section", |b| b[185] = 8)),
        // The second extent begins where the first does.
        (134, ("rtfile-extent-order", |b| b.copy_within(176..183, 192))),
        // One block on: 2^21 in the record.
        (134, ("rtfile-extent-not-aligned", |b| b[189] ^= 0x20)),
        (134, ("rtfile-extent-partial", |b| b[191] -= 1)),
        (134, ("rtfile-inode-damaged", |b| b[0] = 0)),
        // The first extent of the recorder's file: a place that inode 132 has.
        (134, ("rtfile-doubly-used", |b| (b[184], b[185], b[186], b[187], b[188]) = (0, 0, 0, 0, 0))),
    ];
    for (ino, (id, change)) in damages {
        seen.expect(&image.inode_changed(ino, change), id, inode_range(&image, ino));
    }
    let volume = image.inode_changed(132, |b| b[0] = 0);
    seen.expect(&volume, "rtbitmap-owners-unknown", (Device::Rt, 0..1));
    let (_, byte) = inode_range(&image, 132);
    let chunk = byte.start & !4095..(byte.start & !4095) + 4096;
    seen.expect(&failing("c63-classic-rt-recorder", chunk.clone()), "rtfile-unreadable", (Device::Data, 0..chunk.end));
    let image = Image::new("c34-rtflag-without-rtdev");
    seen.expect(&image.volume, "rtfile-without-section", inode_range(&image, 131));
    let image = Image::new("v5-default");
    let root = image.volume.superblock().rootino.0;
    let volume = image.inode_changed(root, |b| b[90] |= 1);
    seen.expect(&volume, "rtfile-rtinherit-without-section", inode_range(&image, root));
}

fn groups(seen: &mut Seen) {
    let image = Image::new("c64-rtgroups-64m");
    let (rmap, refcount) = (group_file(&image, 0, GroupFile::Rmap), group_file(&image, 0, GroupFile::Refcount));
    // Root: level and count of 2 bytes each at byte 176, then records: 24 bytes of the rmap, 12 of the refcount btree.
    let damages: [(u64, InodeDamage); 12] = [
        // The last record in two: its first block, and the rest.
        (
            rmap,
            ("rtrmap-mappings-touch", |b| {
                let last = 180 + 24 * (usize::from(b[179]) - 1);
                let number = |b: &[u8], at: usize| u32::from_be_bytes(b[at..at + 4].try_into().unwrap());
                let (start, blocks, offset) = (number(b, last), number(b, last + 4), number(b, last + 20));
                assert!(blocks > 1);
                b.copy_within(last..last + 24, last + 24);
                put(b, last + 4, &1u32.to_be_bytes());
                put(b, last + 24, &(start + 1).to_be_bytes());
                put(b, last + 28, &(blocks - 1).to_be_bytes());
                put(b, last + 44, &(offset + 1).to_be_bytes());
                b[179] += 1;
            }),
        ),
        (
            refcount,
            ("rtrefcount-extents-touch", |b| {
                let last = 180 + 12 * (usize::from(b[179]) - 1);
                let number = |b: &[u8], at: usize| u32::from_be_bytes(b[at..at + 4].try_into().unwrap());
                let (start, blocks) = (number(b, last), number(b, last + 4));
                assert!(blocks > 1);
                b.copy_within(last..last + 12, last + 12);
                put(b, last + 4, &1u32.to_be_bytes());
                put(b, last + 12, &(start + 1).to_be_bytes());
                put(b, last + 16, &(blocks - 1).to_be_bytes());
                b[179] += 1;
            }),
        ),
        (rmap, ("rtgroup-file-missing", |b| b[5] = 2)),
        (rmap, ("rtgroup-file-kind", |b| b[7] ^= 1)),
        (rmap, ("rtgroup-file-number", |b| b[21] ^= 1)),
        (rmap, ("rtrmap-block-damaged", |b| b[177] = 9)),
        (rmap, ("rtrmap-record-invalid", |b| put(b, 184, &0u32.to_be_bytes()))),
        (
            rmap,
            ("rtrmap-order", |b| {
                let first: Vec<u8> = b[204..228].to_vec();
                b.copy_within(228..252, 204);
                put(b, 228, &first);
                b[204] = 0x7f;
            }),
        ),
        (rmap, ("rtrmap-extra-mapping", |b| b[180 + 24 + 15] ^= 1)),
        (refcount, ("rtrefcount-record-invalid", |b| b[180 + 11] = 0)),
        (
            refcount,
            ("rtrefcount-order", |b| {
                let first: Vec<u8> = b[180..192].to_vec();
                b.copy_within(192..204, 180);
                put(b, 192, &first);
            }),
        ),
        (refcount, ("rtrefcount-extra-shared", |b| b[180 + 11] = 3)),
    ];
    for (ino, (id, change)) in damages {
        seen.expect(&image.inode_changed(ino, change), id, inode_range(&image, ino));
    }
    // The place is that of the block to which the root leads then: block 0.
    let volume = image.inode_changed(refcount, |b| b[177] = 9);
    seen.expect(&volume, "rtrefcount-block-damaged", (Device::Data, 0..1));
    // What is missing in a btree is told where the blocks, or their owner, lie.
    let volume = image.inode_changed(rmap, |b| b[178..180].fill(0));
    seen.expect(&volume, "rtrmap-lacks-mapping", (Device::Data, 0..image.volume.devices().data.len()));
    let volume = image.inode_changed(refcount, |b| b[178..180].fill(0));
    seen.expect(&volume, "rtrefcount-lacks-shared", (Device::Rt, 4096..4096 + 256 * 4096));
    let image = Image::new("v5-zoned");
    let zone = group_file(&image, 0, GroupFile::Rmap);
    let used = |n: u32| image.inode_changed(zone, |b| put(b, 128, &n.to_be_bytes()));
    seen.expect(&used(34), "rtgroup-zone-used-count", inode_range(&image, zone));
    seen.expect(&used(4097), "rtgroup-zone-used-beyond", inode_range(&image, zone));
}

fn devices(seen: &mut Seen) {
    let image = Image::new("c64-rtgroups-64m");
    let device = common::devices("c64-rtgroups-64m").rt.unwrap();
    let mut block = vec![0; 4096];
    device.read_at(ByteOffset(0), &mut block).unwrap();
    for (at, mend, id) in [
        (0, true, "rtsb-bad-magic"),
        (4, false, "rtsb-bad-crc"),
        (8, true, "rtsb-padding"),
        (12, true, "rtsb-wrong-label"),
        (24, true, "rtsb-wrong-uuid"),
        (40, true, "rtsb-wrong-meta-uuid"),
    ] {
        let mut bytes = block.clone();
        bytes[at] ^= 1;
        if mend {
            image.mend(&mut bytes, 4);
        }
        seen.expect(&image.with(Device::Rt, BTreeMap::from([(0, bytes)])), id, (Device::Rt, 0..1));
    }
    let mut bytes = block.clone();
    (bytes[24], bytes[40]) = (bytes[24] ^ 1, bytes[40] ^ 1);
    image.mend(&mut bytes, 4);
    seen.expect(&image.with(Device::Rt, BTreeMap::from([(0, bytes)])), "rtdev-of-another-fs", (Device::Rt, 0..1));
    let with = |name: &str, bytes: Vec<u8>| {
        let devices = Devices { rt: Some(Arc::new(MemorySource::new(bytes))), ..common::devices(name) };
        Volume::open(devices, Choice::default()).unwrap()
    };
    let mut bytes = vec![0; 8192];
    put(&mut bytes, 0, b"XFSB");
    let volume = with("v5-rt-64k", bytes);
    seen.expect(&volume, "rtdev-too-short", (Device::Rt, 0..1));
    seen.expect(&volume, "rtdev-holds-something-else", (Device::Rt, 0..1));
    seen.expect(&with("v5-default", vec![0; 4096]), "rtdev-not-needed", (Device::Rt, 0..1));
    seen.expect(&with("v5-zoned", vec![0; 4096]), "rtdev-not-needed", (Device::Rt, 0..1));
}

#[test]
fn every_rule_can_be_raised() {
    let mut seen = Seen::default();
    bitmap_and_summary(&mut seen);
    headers(&mut seen);
    files(&mut seen);
    groups(&mut seen);
    devices(&mut seen);
    let missing: Vec<_> =
        rules::ALL.into_iter().flatten().map(|rule| rule.id).filter(|id| !seen.0.contains(id)).collect();
    assert!(missing.is_empty(), "no damage raises {missing:?}");
}
