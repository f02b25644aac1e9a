//! The superblock: first sector of every allocation group, authoritative in AG 0, copies elsewhere.
//! `struct xfs_dsb` (xfs_format.h); `xfs_sb_read_verify`, `xfs_validate_sb_common` (xfs_sb.c).

use super::features::Features;
use super::on_disk::{Crc, Null, Uuid, on_disk};
use super::{Context, Node, Structure, Type, bits, node};
use crate::units::{AgNumber, Blocks, ExtLen, FsBlock, Ino, RtExtent};

/// `XFSB`.
pub const MAGIC: u32 = 0x5846_5342;
/// Byte of the checksum.
pub const CRC_OFFSET: usize = 224;

fn metadir(context: &Context, _: &[u8]) -> bool {
    context.features.has_metadir()
}
fn zoned(context: &Context, _: &[u8]) -> bool {
    context.features.has_zoned()
}

on_disk! {
    /// The superblock as it lies on disk (`struct xfs_dsb`), up to Linux 7.2.
    pub struct Superblock, size 288 {
        /// `XFSB` (0x58465342).
        0 magicnum: u32 [.hex()],
        /// File system block in bytes: 512 to 65536.
        4 blocksize: u32,
        /// Blocks of the data section.
        8 dblocks: Blocks,
        /// Blocks of the realtime section; 0 without one.
        16 rblocks: Blocks,
        /// Realtime extents: rblocks / rextsize.
        24 rextents: RtExtent,
        /// Identity that users see and can change.
        32 uuid: Uuid,
        /// First block of the internal log; 0 with an external log.
        48 logstart: FsBlock [.to(Type::Log)],
        /// Root directory's inode.
        56 rootino: Ino [.to(Type::Inode)],
        /// Realtime bitmap inode (unused with metadir).
        64 rbmino: Ino [.to(Type::Inode)],
        /// Realtime summary inode (unused with metadir).
        72 rsumino: Ino [.to(Type::Inode)],
        /// Realtime extent size in blocks; set even without a realtime section.
        80 rextsize: u32 [.null(Null::Named)],
        /// Blocks of each AG but the last.
        84 agblocks: u32 [.null(Null::Named)],
        /// Number of AGs.
        88 agcount: AgNumber,
        /// Blocks of the realtime bitmap (of each group with metadir, 0 when zoned).
        92 rbmblocks: ExtLen,
        /// Blocks of the log.
        96 logblocks: ExtLen,
        /// Version in the low four bits, V4 feature bits above.
        100 versionnum: u16 [.hex()],
        /// Sector in bytes: size of the AG headers.
        102 sectsize: u16,
        /// Inode in bytes.
        104 inodesize: u16,
        /// Inodes per block.
        106 inopblock: u16,
        /// Label.
        108 fname: [u8; 12] [.text()],
        /// log2 of blocksize.
        120 blocklog: u8,
        /// log2 of sectsize.
        121 sectlog: u8,
        /// log2 of inodesize.
        122 inodelog: u8,
        /// log2 of inopblock.
        123 inopblog: u8,
        /// log2 of agblocks, rounded up: where the AG number begins in a block number.
        124 agblklog: u8,
        /// log2 of rextents, rounded down: the summary has one level more.
        125 rextslog: u8,
        /// 1 while mkfs runs, and in the copies.
        126 inprogress: u8,
        /// Most that inodes may take of the data section, in per cent; 0 for no limit.
        127 imax_pct: u8,
        /// Inodes allocated, free ones included.
        128 icount: u64,
        /// Inodes allocated and free.
        136 ifree: u64,
        /// Free blocks of the data section.
        144 fdblocks: u64,
        /// Free realtime extents.
        152 frextents: u64,
        /// User quota inode (unused with metadir).
        160 uquotino: Ino [.to(Type::Inode)],
        /// Group quota inode (V4: or project quota inode).
        168 gquotino: Ino [.to(Type::Inode)],
        /// What quota accounts and enforces.
        176 qflags: u16 [.hex()],
        /// Bit 0: mount read-only.
        178 flags: u8 [.hex()],
        /// Shared version number: always 0.
        179 shared_vn: u8,
        /// Alignment of inode chunks in blocks.
        180 inoalignmt: ExtLen,
        /// Stripe unit in blocks.
        184 unit: u32,
        /// Stripe width in blocks.
        188 width: u32,
        /// log2 of the directory block in file system blocks.
        192 dirblklog: u8,
        /// log2 of logsectsize; 0 where log sectors are 512 bytes.
        193 logsectlog: u8,
        /// Log sector in bytes; 0 where it is 512.
        194 logsectsize: u16,
        /// Log stripe unit in bytes; 1 for none on version 2 logs.
        196 logsunit: u32,
        /// More feature bits.
        200 features2: u32 [.hex()],
        /// features2 where some old machines put it; the kernel joins both.
        204 bad_features2: u32 [.hex()],
        /// Compatible features.
        208 features_compat: u32 [.hex()],
        /// Features that an older kernel may mount read-only.
        212 features_ro_compat: u32 [.hex()],
        /// Features that an older kernel must refuse.
        216 features_incompat: u32 [.hex()],
        /// Features of the log contents.
        220 features_log_incompat: u32 [.hex()],
        /// Checksum of the sector (V5).
        224 crc: Crc,
        /// Alignment of sparse inode chunks in blocks.
        228 spino_align: ExtLen,
        /// Project quota inode (unused with metadir).
        232 pquotino: Ino [.to(Type::Inode)],
        /// Log sequence number of the last write.
        240 lsn: u64 [.hex()],
        /// Identity that metadata carries, once uuid was changed (feature meta_uuid).
        248 meta_uuid: Uuid,
        /// Root of the metadata directory.
        264 metadirino: Ino [.when(metadir).to(Type::Inode)],
        /// Number of realtime groups.
        272 rgcount: u32 [.when(metadir)],
        /// Realtime extents of each group but the last.
        276 rgextents: u32 [.when(metadir)],
        /// log2 of the blocks of a group, rounded up: where the group number begins in a realtime block number.
        280 rgblklog: u8 [.when(metadir)],
        /// Zeros.
        281 pad: u8 [.hex().when(metadir)],
        /// Zeros.
        282 pad_rest: [u8; 6] [.hex().hidden().when(metadir)],
    }

    /// What follows on zoned file systems (end of `struct xfs_dsb`).
    pub struct SuperblockZoned, size 16 {
        /// First block of an internal realtime section, from the start of the data device; 0 where it has its own.
        0 rtstart: FsBlock [.when(zoned)],
        /// Realtime blocks kept back for garbage collection.
        8 rtreserved: FsBlock [.when(zoned)],
    }
}

impl Superblock {
    /// The feature words. On V4 features2 and its misplaced twin are joined, as `xfs_fs_fill_super` does.
    pub fn features(&self) -> Features {
        let v5 = self.versionnum & 0xf == 5;
        let or_zero = |word: u32| if v5 { word } else { 0 };
        Features {
            versionnum: self.versionnum,
            features2: self.features2 | if v5 { 0 } else { self.bad_features2 },
            compat: or_zero(self.features_compat),
            ro_compat: or_zero(self.features_ro_compat),
            incompat: or_zero(self.features_incompat),
            log_incompat: or_zero(self.features_log_incompat),
        }
    }

    /// The label up to the first NUL; any bytes may stand in it.
    pub fn label(&self) -> &[u8] {
        let end = self.fname.iter().position(|&b| b == 0).unwrap_or(self.fname.len());
        self.fname.get(..end).unwrap_or_default()
    }

    /// The UUID that V5 metadata must carry.
    pub fn metadata_uuid(&self) -> Uuid {
        if self.features().has_meta_uuid() { self.meta_uuid } else { self.uuid }
    }
}

/// First block and reserve of a zoned realtime section; zeros where the sector is too short.
pub fn zoned_part(bytes: &[u8]) -> (u64, u64) {
    (bits::be64(bytes, 288).unwrap_or(0), bits::be64(bytes, 296).unwrap_or(0))
}

/// The nodes of a superblock.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let mut nodes = node::table(Superblock::FIELDS, context, bytes, 0);
    nodes.extend(node::table(SuperblockZoned::FIELDS, context, bytes, 288 * 8));
    nodes
}
