//! Single damages, made by field writes, and the rule that finds each.

use crate::patch::{Image, damage, look};
use std::collections::BTreeMap;
use xfsinspect::format::Structure;
use xfsinspect::format::dinode::Fork;
use xfsinspect::units::{Device, RgNumber};
use xfsinspect::walk::Walk;
use xfsinspect::walk::extents::extents;
use xfsinspect::walk::metadir::GroupFile;
use xfsinspect::walk::rt;

/// First byte of the first block of a metadata file.
pub fn first_block(image: &Image, group: u32, file: GroupFile) -> (u64, u64) {
    let walk = Walk::new(&image.volume);
    let block = rt::inode(&walk, RgNumber(group), file, &mut |e| panic!("{e}")).unwrap();
    let extent = extents(&walk, block.inode(), Fork::Data).next().unwrap().unwrap();
    (block.ino().0, image.volume.geometry().block_byte(extent.startblock).unwrap().0)
}

/// First blocks of bitmap and summary.
pub fn classic_blocks(image: &Image) -> (u64, u64) {
    (first_block(image, 0, GroupFile::Bitmap).1, first_block(image, 0, GroupFile::Summary).1)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// `xfs_db -x -c 'addr rbmino' -c 'write -d core.size 0'` and its like, on both inodes.
#[test]
fn inodes_of_bitmap_and_summary() {
    let image = Image::new("v5-rt-64k");
    let sb = image.volume.superblock();
    for (ino, name) in [(sb.rbmino.0, "rtbitmap"), (sb.rsumino.0, "rtsummary")] {
        let one = |change: &dyn Fn(&mut [u8])| damage(&image.inode_changed(ino, |bytes| change(bytes)));
        let has = |found: Vec<&str>, id: &str| {
            assert!(found.contains(&format!("{name}-{id}").as_str()), "{name}-{id}: {found:?}");
        };
        // Less than needed, and no whole block; one block more is legal.
        has(one(&|b| put(b, 56, &0u64.to_be_bytes())), "size-wrong");
        has(one(&|b| put(b, 56, &4097u64.to_be_bytes())), "size-wrong");
        assert!(one(&|b| put(b, 56, &8192u64.to_be_bytes())).is_empty());
        // Realtime and extsize flags.
        has(one(&|b| b[91] |= 1), "flags-wrong");
        has(one(&|b| b[90] |= 0x08), "flags-wrong");
        // A directory, and a file whose content is local.
        has(one(&|b| b[2] = 0x41), "inode-bad");
        has(one(&|b| b[5] = 1), "inode-bad");
        // The only extent: unwritten, gone, outside, too long.
        has(one(&|b| b[176] |= 0x80), "unwritten");
        // di_big_nextents at 24: these inodes have nrext64.
        has(one(&|b| put(b, 24, &0u64.to_be_bytes())), "hole");
        has(one(&|b| put(b, 184, &(1u64 << 60 | 1).to_be_bytes())), "block-outside");
        has(one(&|b| b[191] = 2), "mapped-beyond-size");
    }
    let found = look(&image.inode_changed(sb.rbmino.0, |b| b[91] &= !4)).1;
    assert!(found.contains("rtbitmap-no-sequence"), "{found:?}");
    // No inode at all.
    let found = damage(&image.superblock_changed(|b| put(b, 64, &99_999_999u64.to_be_bytes())));
    assert!(found.contains(&"rtbitmap-inode-bad"), "{found:?}");
}

#[test]
fn counts_that_differ() {
    let image = Image::new("v5-rt-64k");
    let volume = image.superblock_changed(|b| {
        let at = xfsinspect::format::superblock::Superblock::FIELDS.iter().find(|f| f.name == "frextents").unwrap();
        b[(at.bit / 8 + 7) as usize] ^= 1;
    });
    assert_eq!(damage(&volume), ["rtbitmap-free-count"]);
}

/// Headers of bitmap and summary blocks of groups (`xfs_rtbuf_verify`).
#[test]
fn headers_of_groups() {
    let image = Image::new("v5-rtgroups-16k");
    let size = image.volume.context().block_size as usize;
    for (file, name) in [(GroupFile::Bitmap, "rtbitmap"), (GroupFile::Summary, "rtsummary")] {
        for group in [0, 5] {
            let (_, byte) = first_block(&image, group, file);
            for (at, id) in [(0, "bad-magic"), (8, "bad-owner"), (16, "bad-blkno"), (32, "bad-uuid")] {
                let volume = image.changed(byte, size, 4, |b| b[at] ^= 1);
                assert_eq!(damage(&volume), [format!("{name}-{id}")], "group {group}");
            }
            let volume = image.changed(byte, size, 0, |b| b[4] ^= 1);
            assert_eq!(damage(&volume), [format!("{name}-bad-crc")], "group {group}");
        }
    }
}

/// Files of groups that are of the wrong kind, belong elsewhere, or are not there.
#[test]
fn files_of_groups() {
    let image = Image::new("c64-rtgroups-64m");
    for file in [GroupFile::Bitmap, GroupFile::Summary, GroupFile::Rmap, GroupFile::Refcount] {
        let walk = Walk::new(&image.volume);
        let ino = rt::inode(&walk, RgNumber(3), file, &mut |e| panic!("{e}")).unwrap().ino().0;
        let found = damage(&image.inode_changed(ino, |b| b[7] = 1));
        assert_eq!(found, ["rtgroup-file-kind"], "{file:?}");
        // di_projid_lo at 20.
        let found = damage(&image.inode_changed(ino, |b| b[21] ^= 1));
        assert_eq!(found, ["rtgroup-file-number"], "{file:?}");
        let found = damage(&image.inode_changed(ino, |b| b[0] = 0));
        let missing = |id: &&str| ["rtgroup-file-missing", "rtbitmap-inode-bad", "rtsummary-inode-bad"].contains(id);
        assert!(found.iter().any(missing), "{file:?}: {found:?}");
    }
}

/// The realtime superblock (`xfs_rtsb_verify_all`).
#[test]
fn the_realtime_superblock() {
    let image = Image::new("c64-rtgroups-64m");
    let device = crate::common::devices("c64-rtgroups-64m").rt.unwrap();
    let mut block = vec![0; 4096];
    device.read_at(xfsinspect::units::ByteOffset(0), &mut block).unwrap();
    let one = |at: usize, mend: bool| {
        let mut bytes = block.clone();
        bytes[at] ^= 1;
        if mend {
            image.mend(&mut bytes, 4);
        }
        damage(&image.with(Device::Rt, BTreeMap::from([(0, bytes)])))
    };
    for (at, id) in [
        (0, "rtsb-bad-magic"),
        (8, "rtsb-padding"),
        (12, "rtsb-wrong-label"),
        (24, "rtsb-wrong-uuid"),
        (40, "rtsb-wrong-meta-uuid"),
        (4000, "rtsb-padding"),
    ] {
        assert_eq!(one(at, true), [id]);
    }
    assert_eq!(one(4, false), ["rtsb-bad-crc"]);
}

/// Devices that are too short, or something else.
#[test]
fn devices_that_do_not_belong() {
    use std::sync::Arc;
    use xfsinspect::source::MemorySource;
    use xfsinspect::volume::{Choice, Volume};
    let mut devices = crate::common::devices("v5-rt-64k");
    let mut bytes = vec![0u8; 8192];
    bytes[..4].copy_from_slice(b"XFSB");
    devices.rt = Some(Arc::new(MemorySource::new(bytes)));
    let (damage, other, _) = look(&Volume::open(devices, Choice::default()).unwrap());
    assert_eq!(damage.into_iter().collect::<Vec<_>>(), ["rtdev-too-short"]);
    assert!(other.contains("rtdev-holds-something-else"));
    let mut devices = crate::common::devices("v5-default");
    devices.rt = Some(Arc::new(MemorySource::new(vec![0; 4096])));
    let (_, other, _) = look(&Volume::open(devices, Choice::default()).unwrap());
    assert!(other.contains("rtdev-not-needed"));
}

/// Flags and hints of files and directories: case C34 made on other images, RT-18 to RT-20.
#[test]
fn flags_and_hints() {
    let image = Image::new("c63-classic-rt-recorder");
    let one = |ino: u64, change: &dyn Fn(&mut [u8])| look(&image.inode_changed(ino, |b| change(b)));
    // extsize 3 blocks with the flag, where a realtime extent has 16; 32 is fine.
    let hint = |blocks: u32| {
        move |b: &mut [u8]| {
            put(b, 72, &blocks.to_be_bytes());
            b[90] |= 0x08;
        }
    };
    assert!(one(132, &hint(3)).0.contains("rtfile-extsize-misfit"));
    assert!(one(132, &hint(32)).0.is_empty());
    assert!(one(132, &|b| b[127] |= 2).0.contains("rtfile-shared-flag"));
    let root = image.volume.superblock().rootino.0;
    let inherit = |blocks: u32| {
        move |b: &mut [u8]| {
            put(b, 72, &blocks.to_be_bytes());
            b[90] |= 0x11;
        }
    };
    assert!(one(root, &inherit(3)).1.contains("rtfile-inherited-extsize-misfit"));
    assert!(one(root, &inherit(16)).1.is_empty());
    assert!(one(root, &|b| b[91] |= 1).0.contains("rtfile-not-regular"));
    assert!(one(132, &|b| b[90] |= 1).0.contains("rtfile-rtinherit-no-directory"));
    // No section: RT-05 and RT-06.
    let image = Image::new("v5-default");
    let root = image.volume.superblock().rootino.0;
    assert!(look(&image.inode_changed(root, |b| b[90] |= 1)).1.contains("rtfile-rtinherit-without-section"));
}

/// Extents of realtime files.
#[test]
fn extents_of_files() {
    let image = Image::new("c63-classic-rt-recorder");
    // sparse.dat, inode 134: 4 extents in the inode from byte 176 on.
    let (_, bytes) = image.inode(134);
    let record = |n: usize| u128::from_be_bytes(bytes[176 + 16 * n..192 + 16 * n].try_into().unwrap());
    let with =
        |n: usize, value: u128| damage(&image.inode_changed(134, |b| put(b, 176 + 16 * n, &value.to_be_bytes())));
    let (first, second) = (record(0), record(1));
    let block = |n: u128| n << 21;
    // One block on: neither offset nor place fit any more.
    assert!(with(0, first + block(1)).contains(&"rtfile-extent-not-aligned"));
    // A realtime extent on: another file's, or a free one.
    let moved = with(0, first + block(16));
    assert!(moved.contains(&"rtfile-doubly-used") || moved.contains(&"rtbitmap-free-but-used"), "{moved:?}");
    assert!(moved.contains(&"rtbitmap-used-but-unowned"), "{moved:?}");
    assert!(with(0, first + block(1 << 30)).contains(&"rtfile-extent-beyond-section"));
    assert!(with(0, first & !0x1f_ffff).contains(&"rtfile-extent-empty"));
    assert!(with(0, first - 1).contains(&"rtfile-extent-partial"));
    // The same place in the file twice.
    let same_offset = (second & !(((1u128 << 54) - 1) << 73)) | (first & (((1u128 << 54) - 1) << 73));
    assert!(with(1, same_offset).contains(&"rtfile-extent-order"));
}

/// Records of the btrees of a group, in their inodes.
#[test]
fn btrees_of_groups() {
    let image = Image::new("c64-rtgroups-64m");
    let walk = Walk::new(&image.volume);
    let ino = |group: u32, file| rt::inode(&walk, RgNumber(group), file, &mut |e| panic!("{e}")).unwrap().ino().0;
    // Root: level and count of 2 bytes each at byte 176, then records of 24 bytes: start, length, owner, offset.
    let rmap = ino(0, GroupFile::Rmap);
    let one = |change: &dyn Fn(&mut [u8])| damage(&image.inode_changed(rmap, |b| change(b)));
    let has = |found: Vec<&'static str>, ids: &[&str]| {
        assert!(ids.iter().all(|id| found.contains(id)), "{ids:?}: {found:?}");
    };
    has(one(&|b| put(b, 180 + 4, &0u32.to_be_bytes())), &["rtrmap-record-invalid", "rtrmap-lacks-mapping"]);
    has(one(&|b| b[180 + 24 + 16] |= 0x80), &["rtrmap-record-invalid"]);
    has(one(&|b| b[180 + 24 + 16] |= 0x20), &["rtrmap-lacks-mapping", "rtrmap-extra-mapping"]);
    has(one(&|b| b[180 + 24 + 15] ^= 1), &["rtrmap-lacks-mapping", "rtrmap-extra-mapping"]);
    has(one(&|b| b[180 + 24 + 7] ^= 1), &["rtrmap-lacks-mapping", "rtrmap-extra-mapping"]);
    has(one(&|b| put(b, 180 + 24, &u32::MAX.to_be_bytes())), &["rtrmap-record-invalid"]);
    has(one(&|b| b[178..180].fill(0)), &["rtrmap-lacks-mapping"]);
    has(one(&|b| b[5] = 2), &["rtgroup-file-missing"]);
    // Shared extents: records of 12 bytes, start, length, refcount.
    let refcount = ino(0, GroupFile::Refcount);
    let one = |change: &dyn Fn(&mut [u8])| damage(&image.inode_changed(refcount, |b| change(b)));
    has(one(&|b| b[180 + 11] = 3), &["rtrefcount-lacks-shared", "rtrefcount-extra-shared"]);
    has(one(&|b| b[180 + 11] = 0), &["rtrefcount-record-invalid"]);
    has(one(&|b| b[180 + 7] ^= 1), &["rtrefcount-lacks-shared", "rtrefcount-extra-shared"]);
    has(one(&|b| b[180] |= 0x80), &["rtrefcount-lacks-shared"]);
    has(one(&|b| b[178..180].fill(0)), &["rtrefcount-lacks-shared"]);
}

#[test]
fn zones_count_their_blocks() {
    let image = Image::new("v5-zoned");
    let walk = Walk::new(&image.volume);
    let ino = rt::inode(&walk, RgNumber(0), GroupFile::Rmap, &mut |e| panic!("{e}")).unwrap().ino().0;
    // di_used_blocks at byte 128: 33 blocks are in use.
    let one = |n: u32| damage(&image.inode_changed(ino, |b| put(b, 128, &n.to_be_bytes())));
    assert_eq!(one(33), [""; 0]);
    assert_eq!(one(34), ["rtgroup-zone-used-count"]);
    assert_eq!(one(4097), ["rtgroup-zone-used-beyond"]);
}
