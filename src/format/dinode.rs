//! The inode: core, the V3 part, the data fork and the attribute fork behind them.
//! `struct xfs_dinode`; `xfs_dinode_verify` (xfs_inode_buf.c). Fork bounds: `XFS_DFORK_DPTR`, `XFS_DFORK_BOFF`.

use super::btree_block::root_node;
use super::node::{Body, fits, table};
use super::on_disk::{Crc, Format, Uuid, on_disk};
use super::{Context, Node, Structure, Type, attr_shortform, bits, bmbt, dir_shortform, rtrefcountbt, rtrmapbt};
use crate::units::{AgIno, Blocks, Ino};

/// `IN`.
pub const MAGIC: u16 = 0x494e;
/// Byte of the checksum (V3 inodes).
pub const CRC_OFFSET: usize = 100;

/// Values of `di_format` and `di_aformat` (`enum xfs_dinode_fmt`).
pub mod fork_format {
    /// Device number of a device file.
    pub const DEV: u8 = 0;
    /// Content in the inode.
    pub const LOCAL: u8 = 1;
    /// Extent records in the inode.
    pub const EXTENTS: u8 = 2;
    /// Root of an extent map btree.
    pub const BTREE: u8 = 3;
    /// UUID, never used.
    pub const UUID: u8 = 4;
    /// Root of a realtime rmap or refcount btree, told apart by the metadata file type.
    pub const META_BTREE: u8 = 5;
    /// xfs_db's names, by value.
    pub const NAMES: [&str; 6] = ["dev", "local", "extents", "btree", "uuid", "meta_btree"];
}

/// Values of `di_metatype` (`enum xfs_metafile_type`).
pub mod metatype {
    /// Not known.
    pub const UNKNOWN: u16 = 0;
    /// Directory.
    pub const DIR: u16 = 1;
    /// User quota.
    pub const USRQUOTA: u16 = 2;
    /// Group quota.
    pub const GRPQUOTA: u16 = 3;
    /// Project quota.
    pub const PRJQUOTA: u16 = 4;
    /// Realtime bitmap of a group.
    pub const RTBITMAP: u16 = 5;
    /// Realtime summary of a group.
    pub const RTSUMMARY: u16 = 6;
    /// Realtime rmap btree of a group.
    pub const RTRMAP: u16 = 7;
    /// Realtime refcount btree of a group.
    pub const RTREFCOUNT: u16 = 8;
}

/// xfs_db's names of metadata file types (`enum xfs_metafile_type`), by value.
pub const METATYPE_NAMES: [&str; 10] =
    ["unknown", "dir", "usrquota", "grpquota", "prjquota", "rtbitmap", "rtsummary", "rtrmap", "rtrefcount", "max"];

/// File type bits of `di_mode`.
pub mod mode {
    /// Mask of the type.
    pub const TYPE: u16 = 0o170_000;
    /// Named pipe.
    pub const FIFO: u16 = 0o010_000;
    /// Character device.
    pub const CHAR: u16 = 0o020_000;
    /// Directory.
    pub const DIRECTORY: u16 = 0o040_000;
    /// Block device.
    pub const BLOCK: u16 = 0o060_000;
    /// Regular file.
    pub const REGULAR: u16 = 0o100_000;
    /// Symbolic link.
    pub const SYMLINK: u16 = 0o120_000;
    /// Socket.
    pub const SOCKET: u16 = 0o140_000;
}

/// Bits of `di_flags2`.
pub mod flags2 {
    /// Direct access.
    pub const DAX: u64 = 1;
    /// May share extents.
    pub const REFLINK: u64 = 2;
    /// cowextsize is set.
    pub const COWEXTSIZE: u64 = 4;
    /// Timestamps in bigtime form.
    pub const BIGTIME: u64 = 8;
    /// 64-bit extent counters.
    pub const NREXT64: u64 = 0x10;
    /// Metadata file.
    pub const METADATA: u64 = 0x20;
}

/// Bits of `di_flags`.
pub mod flags {
    /// Data on the realtime device.
    pub const REALTIME: u16 = 1;
    /// Space was preallocated.
    pub const PREALLOC: u16 = 2;
    /// Realtime bitmap inode: atime holds a sequence number.
    pub const NEWRTBM: u16 = 4;
    /// Immutable.
    pub const IMMUTABLE: u16 = 8;
    /// Append only.
    pub const APPEND: u16 = 0x10;
    /// Written synchronously.
    pub const SYNC: u16 = 0x20;
    /// atime is not updated.
    pub const NOATIME: u16 = 0x40;
    /// Left out of dumps.
    pub const NODUMP: u16 = 0x80;
    /// New files become realtime files.
    pub const RTINHERIT: u16 = 0x100;
    /// New files inherit the project.
    pub const PROJINHERIT: u16 = 0x200;
    /// No symlinks may be made here.
    pub const NOSYMLINKS: u16 = 0x400;
    /// extsize is set.
    pub const EXTSIZE: u16 = 0x800;
    /// New files inherit extsize.
    pub const EXTSZINHERIT: u16 = 0x1000;
    /// Not to be defragmented.
    pub const NODEFRAG: u16 = 0x2000;
    /// Filestream allocator.
    pub const FILESTREAM: u16 = 0x4000;
}

fn version(core: &[u8]) -> u8 {
    core.get(4).copied().unwrap_or(0)
}
/// `di_flags2`; 0 on inodes older than version 3.
pub fn flags2_of(core: &[u8]) -> u64 {
    if version(core) >= 3 { bits::be64(core, 120).unwrap_or(0) } else { 0 }
}
fn large_counts(_: &Context, core: &[u8]) -> bool {
    flags2_of(core) & flags2::NREXT64 != 0
}
fn small_counts(context: &Context, core: &[u8]) -> bool {
    !large_counts(context, core)
}
fn is_metadata(_: &Context, core: &[u8]) -> bool {
    flags2_of(core) & flags2::METADATA != 0
}
fn has_onlink(context: &Context, core: &[u8]) -> bool {
    version(core) >= 2 && !is_metadata(context, core)
}
fn v1(_: &Context, core: &[u8]) -> bool {
    version(core) == 1
}
fn since_v2(_: &Context, core: &[u8]) -> bool {
    version(core) >= 2
}
fn not_v3(_: &Context, core: &[u8]) -> bool {
    version(core) != 3
}
fn v3_pad(context: &Context, core: &[u8]) -> bool {
    version(core) == 3 && small_counts(context, core)
}

on_disk! {
    /// What every inode begins with (`struct xfs_dinode` up to di_next_unlinked).
    pub struct DinodeCore, size 100 {
        /// `IN` (0x494e).
        0 magic: u16 [.hex()],
        /// File type and permissions; 0 for a free inode.
        2 mode: u16 [.fmt(Format::Oct)],
        /// Version: 3 on V5 file systems, 1 or 2 on V4.
        4 version: i8,
        /// Form of the data fork.
        5 format: u8 [.fmt(Format::ForkFormat)],
        /// Kind of a metadata file; once the 16-bit link count.
        6 metatype: u16 [.unnamed()] {
            /// Link count of a version 1 inode.
            nlinkv1: 0 + 16 [.when(v1)],
            /// Unused since version 2.
            onlink: 0 + 16 [.when(has_onlink)],
            /// Kind of metadata file.
            metatype: 0 + 16 [.fmt(Format::MetaType).when(is_metadata)],
        },
        /// Owner.
        8 uid: u32,
        /// Group.
        12 gid: u32,
        /// Link count.
        16 nlink: u32 [.named("nlinkv2").when(since_v2)],
        /// Project, low half.
        20 projid_lo: u16 [.when(since_v2)],
        /// Project, high half.
        22 projid_hi: u16 [.when(since_v2)],
        /// 64-bit extent count, padding, or flush counter.
        24 big_nextents: u64 [.unnamed()] {
            /// Extents of the data fork.
            nextents: 0 + 64 [.when(large_counts)],
            /// Zeros.
            v3_pad: 0 + 64 [.hidden().when(v3_pad)],
            /// Flush counter of version 1 and 2 inodes.
            flushiter: 48 + 16 [.when(not_v3)],
        },
        /// Last access. On the classic realtime bitmap inode: sequence number for placing files.
        32 atime: u64 [.unnamed()] {
            /// Seconds of the last access.
            atime_sec: 0 + 64 [.named("atime.sec").fmt(Format::TimeSec)],
            /// Nanoseconds of the last access.
            atime_nsec: 0 + 64 [.named("atime.nsec").fmt(Format::TimeNsec)],
        },
        /// Last change of the content.
        40 mtime: u64 [.unnamed()] {
            /// Seconds of the last change of the content.
            mtime_sec: 0 + 64 [.named("mtime.sec").fmt(Format::TimeSec)],
            /// Nanoseconds of the last change of the content.
            mtime_nsec: 0 + 64 [.named("mtime.nsec").fmt(Format::TimeNsec)],
        },
        /// Last change of the inode.
        48 ctime: u64 [.unnamed()] {
            /// Seconds of the last change of the inode.
            ctime_sec: 0 + 64 [.named("ctime.sec").fmt(Format::TimeSec)],
            /// Nanoseconds of the last change of the inode.
            ctime_nsec: 0 + 64 [.named("ctime.nsec").fmt(Format::TimeNsec)],
        },
        /// Length in bytes.
        56 size: i64,
        /// Blocks in use by both forks, their btrees included.
        64 nblocks: Blocks,
        /// Extent size hint in blocks.
        72 extsize: u32,
        /// Extent counts, 32 and 16 bits or 32 bits and padding.
        76 nextents: u32 [.unnamed()] {
            /// Extents of the data fork.
            nextents: 0 + 32 [.when(small_counts)],
            /// Extents of the attribute fork.
            naextents: 32 + 16 [.when(small_counts)],
            /// Extents of the attribute fork.
            naextents: 0 + 32 [.when(large_counts)],
            /// Zeros.
            nrext64_pad: 32 + 16 [.hidden().when(large_counts)],
        },
        /// Second half of the counts.
        80 anextents: u16 [.unnamed()],
        /// Where the attribute fork begins, in 8-byte units behind the core; 0 without one.
        82 forkoff: u8,
        /// Form of the attribute fork.
        83 aformat: u8 [.fmt(Format::ForkFormat)],
        /// DMAPI events.
        84 dmevmask: u32 [.hex()],
        /// DMAPI state.
        88 dmstate: u16,
        /// Flags.
        90 flags: u16 [.hex().hidden()] {
            /// Realtime bitmap inode whose atime holds a sequence number.
            newrtbm: 13 + 1,
            /// Space was preallocated.
            prealloc: 14 + 1,
            /// Data lies on the realtime device.
            realtime: 15 + 1,
            /// Immutable.
            immutable: 12 + 1,
            /// Append only.
            append: 11 + 1,
            /// Written synchronously.
            sync: 10 + 1,
            /// atime is not updated.
            noatime: 9 + 1,
            /// Left out of dumps.
            nodump: 8 + 1,
            /// New files here become realtime files.
            rtinherit: 7 + 1,
            /// New files here inherit the project.
            projinherit: 6 + 1,
            /// No symlinks may be made here.
            nosymlinks: 5 + 1,
            /// The extent size hint is set.
            extsz: 4 + 1,
            /// New files here inherit the extent size hint.
            extszinherit: 3 + 1,
            /// Not to be defragmented.
            nodefrag: 2 + 1,
            /// Filestream allocator.
            filestream: 1 + 1,
        },
        /// Generation: grows each time the inode is used again.
        92 gen_: u32 [.named("gen")],
        /// Next inode on the AG's list of unlinked ones.
        96 next_unlinked: AgIno [.to(Type::Inode)],
    }

    /// What version 3 adds (`struct xfs_dinode` from di_crc on).
    pub struct DinodeV3, size 76 {
        /// Checksum of the inode.
        0 crc: Crc,
        /// Changes since the inode was made.
        4 changecount: u64 [.named("change_count")],
        /// Log sequence number of the last write.
        12 lsn: u64 [.hex()],
        /// More flags.
        20 flags2: u64 [.hex()] {
            /// May share extents.
            reflink: 62 + 1 [.after("uuid")],
            /// The CoW extent size hint is set.
            cowextsz: 61 + 1 [.after("reflink")],
            /// Direct access.
            dax: 63 + 1 [.after("cowextsz")],
            /// Timestamps in bigtime form.
            bigtime: 60 + 1 [.after("dax")],
            /// 64-bit extent counters.
            nrext64: 59 + 1 [.after("bigtime")],
            /// Metadata file.
            metadata: 58 + 1 [.after("nrext64")],
        },
        /// CoW extent size hint in blocks; blocks in use of a zone in the rmap inode of a zoned group.
        28 cowextsize: u32,
        /// Zeros.
        32 pad2: [u8; 12] [.hex().hidden()],
        /// When the inode was made.
        44 crtime: u64 [.unnamed()] {
            /// Seconds of creation.
            crtime_sec: 0 + 64 [.named("crtime.sec").fmt(Format::TimeSec)],
            /// Nanoseconds of creation.
            crtime_nsec: 0 + 64 [.named("crtime.nsec").fmt(Format::TimeNsec)],
        },
        /// Number of this inode.
        52 ino: Ino [.named("inumber")],
        /// Identity of the file system.
        60 uuid: Uuid,
    }
}

/// Bytes before the data fork (`xfs_dinode_size`).
pub fn header_size(core: &[u8]) -> u32 {
    if version(core) == 3 { 176 } else { 100 }
}

/// The forks of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fork {
    /// Content of the file or directory.
    Data,
    /// Extended attributes.
    Attr,
}

/// A fork's bytes within the inode: first byte and length, cut to the inode; `None` where there is no such fork.
pub fn fork_range(inode: &[u8], fork: Fork) -> Option<(usize, usize)> {
    let start = usize::try_from(header_size(inode)).ok()?;
    let literal = inode.len().checked_sub(start)?;
    let forkoff = usize::from(inode.get(82).copied()?).checked_mul(8)?;
    match fork {
        Fork::Data if forkoff == 0 => Some((start, literal)),
        Fork::Data => Some((start, forkoff.min(literal))),
        Fork::Attr if forkoff == 0 || forkoff >= literal => None,
        Fork::Attr => Some((start.checked_add(forkoff)?, literal.checked_sub(forkoff)?)),
    }
}

/// Extents that the core says a fork has (`xfs_dfork_data_extents`, `xfs_dfork_attr_extents`).
pub fn extent_count(core: &[u8], fork: Fork) -> u64 {
    let large = flags2_of(core) & flags2::NREXT64 != 0;
    let count = match (fork, large) {
        (Fork::Data, true) => bits::be64(core, 24),
        (Fork::Data, false) | (Fork::Attr, true) => bits::be32(core, 76).map(u64::from),
        (Fork::Attr, false) => bits::be16(core, 80).map(u64::from),
    };
    count.unwrap_or(0)
}

/// The nodes of an inode: `core`, `next_unlinked`, `v3`, `u3` (`u` on V4 file systems), `a`.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut core = table(DinodeCore::FIELDS, context, bytes, 0);
    let next = core.iter().position(|n| n.name == "next_unlinked").map(|at| core.remove(at));
    let mut nodes = vec![Node::group("core", 0, core)];
    nodes.extend(next);
    if context.has_crc() {
        nodes.push(Node::group("v3", 800, table(DinodeV3::FIELDS, context, bytes, 800)));
    }
    if flags2_of(bytes) & flags2::BIGTIME != 0 {
        nodes.iter_mut().for_each(big_times);
    }
    nodes.push(data_fork(context, bytes));
    if bytes.get(82).is_some_and(|&forkoff| forkoff != 0) {
        nodes.push(attr_fork(context, bytes));
    }
    nodes
}

fn big_times(node: &mut Node) {
    match &mut node.body {
        Body::Group(nodes) => nodes.iter_mut().for_each(big_times),
        Body::Value { format, .. } => {
            *format = match *format {
                Format::TimeSec => Format::BigTimeSec,
                Format::TimeNsec => Format::BigTimeNsec,
                other => other,
            };
        }
        _ => {}
    }
}

/// A fork node: a group of one part, or empty where the fork holds nothing that can be shown.
fn fork_node(name: &'static str, bit: u64, part: Option<Node>) -> Node {
    let mut node = Node::group(name, bit, Vec::new());
    node.body = match part {
        Some(part) => Body::Group(vec![part]),
        None => Body::Empty,
    };
    node
}

fn data_fork(context: &Context, bytes: &[u8]) -> Node {
    let name = if context.has_crc() { "u3" } else { "u" };
    let bit = u64::from(header_size(bytes)).saturating_mul(8);
    let kind = bits::be16(bytes, 2).unwrap_or(0) & mode::TYPE;
    let size = bits::be64(bytes, 56).unwrap_or(0);
    let length = u32::try_from(size).unwrap_or(u32::MAX).min(fits(bytes, bit, 8));
    let metatype = is_metadata(context, bytes).then(|| bits::be16(bytes, 6).unwrap_or(0));
    let part = match bytes.get(5).copied().unwrap_or(0) {
        fork_format::DEV => Some(Node::value("dev", "Device number, major and minor.", bit, 32, Format::Hex)),
        fork_format::LOCAL if kind == mode::DIRECTORY => Some(dir_shortform::node(context, bytes, bit)),
        fork_format::LOCAL if kind == mode::SYMLINK && length > 0 => {
            Some(Node::text("symlink", "Target of the link.", bit, length))
        }
        fork_format::LOCAL if kind == mode::REGULAR && length > 0 => Some(Node::text("c", "Content.", bit, length)),
        fork_format::EXTENTS => bmbt::extents(bytes, bit, extent_count(bytes, Fork::Data)),
        fork_format::BTREE => Some(bmbt::root(bytes, bit, fork_range(bytes, Fork::Data), &bmbt::SHAPE)),
        fork_format::UUID => Some(Node::value("muuid", "UUID.", bit, 128, Format::Uuid)),
        fork_format::META_BTREE => metatype.and_then(|metatype| rt_btree_root(metatype, bytes, bit)),
        _ => None,
    };
    fork_node(name, bit, part)
}

/// The root of a realtime rmap or refcount btree, told apart by the kind of metadata file.
fn rt_btree_root(kind: u16, bytes: &[u8], bit: u64) -> Option<Node> {
    let fork = fork_range(bytes, Fork::Data);
    match kind {
        metatype::RTRMAP => Some(root_node("rtrmapbt", &rtrmapbt::SHAPE, bytes, bit, fork)),
        metatype::RTREFCOUNT => Some(root_node("rtrefcbt", &rtrefcountbt::SHAPE, bytes, bit, fork)),
        _ => None,
    }
}

fn attr_fork(context: &Context, bytes: &[u8]) -> Node {
    let offset = u64::from(bytes.get(82).copied().unwrap_or(0)).saturating_mul(8);
    let bit = u64::from(header_size(bytes)).saturating_add(offset).saturating_mul(8);
    let part = match bytes.get(83).copied().unwrap_or(0) {
        fork_format::LOCAL => Some(attr_shortform::node(context, bytes, bit)),
        fork_format::EXTENTS => bmbt::extents(bytes, bit, extent_count(bytes, Fork::Attr)),
        fork_format::BTREE => Some(bmbt::root(bytes, bit, fork_range(bytes, Fork::Attr), &bmbt::ATTR_SHAPE)),
        _ => None,
    };
    fork_node("a", bit, part)
}
