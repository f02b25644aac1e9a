//! Rules about a superblock alone: what the kernel checks before it believes one. `xfs_validate_sb_common`,
//! `xfs_sb_good_version`, `xfs_validate_rt_geometry`, `xfs_validate_stripe_geometry` (xfs_sb.c of 7.2).
//!
//! Arithmetic is in 64 bits, where the kernel's is sometimes in 32: a product that wraps into the valid range is
//! still wrong.

use super::finding::{Finding, Mismatch};
use super::rules;
use crate::error::Place;
use crate::format::bits::high_bit;
use crate::format::checksum::CrcState;
use crate::format::features::{Features, Word};
use crate::format::superblock::{MAGIC, Superblock};

/// A superblock and what is known about it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its contents.
    pub sb: Superblock,
    /// rtstart and rtreserved.
    pub zoned: (u64, u64),
    /// Its feature words.
    pub features: Features,
    /// Does its checksum hold?
    pub crc: CrcState,
    /// Is it the one of AG 0?
    pub primary: bool,
}

impl Subject {
    /// Bits of the realtime bitmap that one block holds: less where blocks have headers (metadir).
    fn bits_per_bitmap_block(&self) -> u64 {
        let header = if self.features.has_metadir() { 48 } else { 0 };
        u64::from(self.sb.blocksize).saturating_sub(header).saturating_mul(8)
    }

    /// Realtime extents that one bitmap covers: all, or those of a group.
    fn bitmap_extents(&self) -> u64 {
        if self.features.has_metadir() { u64::from(self.sb.rgextents) } else { self.sb.rextents.0 }
    }

    /// Blocks that the realtime bitmap must have (`xfs_expected_rbmblocks`).
    pub fn expected_rbmblocks(&self) -> Option<u64> {
        if self.features.has_zoned() {
            return Some(0);
        }
        let per_block = self.bits_per_bitmap_block();
        (per_block > 0).then(|| self.bitmap_extents().div_ceil(per_block))
    }

    fn rt_extent_bytes(&self) -> u64 {
        u64::from(self.sb.rextsize).saturating_mul(u64::from(self.sb.blocksize))
    }

    fn has_rt(&self) -> bool {
        self.sb.rblocks.0 != 0
    }

    fn counted_ags(&self) -> Option<u64> {
        (self.sb.agblocks > 0).then(|| self.sb.dblocks.0.div_ceil(u64::from(self.sb.agblocks)))
    }

    fn unit_bytes(&self) -> u64 {
        u64::from(self.sb.unit).saturating_mul(u64::from(self.sb.blocksize))
    }

    fn width_bytes(&self) -> u64 {
        u64::from(self.sb.width).saturating_mul(u64::from(self.sb.blocksize))
    }

    fn chunk_blocks(&self) -> u64 {
        (64 * u64::from(self.sb.inodesize)).checked_div(u64::from(self.sb.blocksize)).unwrap_or(0)
    }

    fn group_log(&self) -> Option<u32> {
        let blocks = u64::from(self.sb.rgextents).checked_mul(u64::from(self.sb.rextsize))?;
        Some(high_bit(blocks.checked_sub(1)?).map_or(0, |bit| bit.saturating_add(1)))
    }
}

/// Can the root inode not be one of AG 0?
fn root_is_impossible(s: &Subject) -> bool {
    let inodes = u64::from(s.sb.agblocks).saturating_mul(u64::from(s.sb.inopblock));
    s.sb.rootino.0 == 0 || s.sb.rootino.0 >= inodes
}

/// `found` must be one of `right`.
fn hex(found: impl Into<u64>) -> String {
    format!("{:#x}", found.into())
}

rules! { structure "sb", subject Subject, fields Superblock;
    /// The sector does not begin with XFSB: it was overwritten, or this is no XFS.
    "sb-bad-magic" corrupt magicnum, "no superblock here",
        source "xfs_sb.c:xfs_validate_sb_common", since "2.6",
        |s| Mismatch::unless(s.sb.magicnum == MAGIC, hex(s.sb.magicnum), "0x58465342");
    /// Bytes of the sector changed after it was written: a bad disk, a stray write, or an edit without mending the
    /// checksum. Every figure in it is doubtful; compare the copies (show TARGET sb 1).
    "sb-bad-crc" corrupt crc, "checksum does not match",
        source "xfs_sb.c:xfs_sb_read_verify", since "3.10",
        |s| match s.crc {
            CrcState::Bad { computed } => Some(Mismatch::new(s.sb.crc, crate::format::Crc(computed))),
            _ => None,
        };
    /// Versions before 4 have not been supported since 3.16; others do not exist.
    "sb-bad-version" corrupt versionnum, "version is neither 4 nor 5",
        source "xfs_sb.c:xfs_sb_good_version", since "2.6",
        |s| Mismatch::unless(matches!(s.features.version(), 4 | 5), s.features.version(), "4 or 5");
    /// The version word has a bit that no current kernel accepts (0x0200 once meant shared volumes).
    "sb-unknown-version-bits" corrupt versionnum, "unknown bit in the version word",
        source "xfs_sb.c:xfs_sb_good_version", since "3.16",
        |s| {
            let unknown = s.sb.versionnum & 0x0200;
            Mismatch::unless(unknown == 0, hex(s.sb.versionnum), format!("without {unknown:#x}"))
        };
    /// features2 has a bit that no kernel defines.
    "sb-unknown-features2" corrupt features2, "unknown bit in features2",
        source "xfs_sb.c:xfs_sb_good_version", since "2.6.24",
        |s| {
            let counts = s.features.is_v5() || s.sb.versionnum & 0x8000 != 0;
            let known = if s.features.is_v5() { 0x38a } else { 0x28a };
            let unknown = s.features.features2 & !known;
            Mismatch::unless(!counts || unknown == 0, hex(s.features.features2), format!("without {unknown:#x}"))
        };
    /// Directories of version 1 were never supported on Linux.
    "sb-no-dirv2" corrupt versionnum, "directory format 1",
        source "xfs_sb.c:xfs_sb_good_version", since "2.6",
        |s| Mismatch::unless(s.features.is_v5() || s.features.has_dirv2(), hex(s.sb.versionnum), "with 0x2000 (dirv2)");
    /// Without this bit extents could not be marked unwritten; kernels from 5.0 on refuse it.
    "sb-no-extflg" corrupt versionnum, "no unwritten extents",
        source "xfs_sb.c:xfs_sb_good_version", since "5.0",
        |s| Mismatch::unless(s.features.is_v5() || s.features.has_extflg(), hex(s.sb.versionnum), "with 0x1000 (extflg)");
    /// Version 5 requires the older feature bits nlink, align, logv2, extflg, dirv2 and morebits.
    "sb-v5-missing-version-bits" corrupt versionnum, "version 5 without the bits it requires",
        source "xfs_sb.c:xfs_sb_validate_v5_features", since "5.15",
        |s| Mismatch::unless(!s.features.is_v5() || s.sb.versionnum & 0xb4a0 == 0xb4a0, hex(s.sb.versionnum), "with 0xb4a0");
    /// Version 5 requires lazy-count, attr2, projid32bit and crc in features2.
    "sb-v5-missing-features2" corrupt features2, "version 5 without the features2 bits it requires",
        source "xfs_sb.c:xfs_sb_validate_v5_features", since "5.15",
        |s| Mismatch::unless(!s.features.is_v5() || s.sb.features2 & 0x18a == 0x18a, hex(s.sb.features2), "with 0x18a");
    /// A bit that Linux 7.2 does not define: a newer kernel made this, or the word is damaged. Nothing here knows
    /// what else is different on disk.
    "sb-unknown-incompat" corrupt features_incompat, "unknown incompatible feature",
        source "xfs_sb.c:xfs_validate_sb_read", since "3.10",
        |s| Mismatch::unless(s.features.unknown(Word::Incompat) == 0, hex(s.features.incompat), "bits within 0x7ff");
    /// A bit that Linux 7.2 does not define: it may be mounted read-only.
    "sb-unknown-ro-compat" corrupt features_ro_compat, "unknown read-only compatible feature",
        source "xfs_sb.c:xfs_validate_sb_read", since "3.10",
        |s| Mismatch::unless(s.features.unknown(Word::RoCompat) == 0, hex(s.features.ro_compat), "bits within 0xf");
    /// No compatible feature is defined; kernels 4.19 to 6.12 shut down when they write such a superblock.
    "sb-unknown-compat" corrupt features_compat, "unknown compatible feature",
        source "xfs_sb.c:xfs_validate_sb_write", since "4.19",
        |s| Mismatch::unless(s.features.compat == 0, hex(s.features.compat), "0");
    /// A bit that Linux 7.2 does not define: a dirty log cannot be recovered.
    "sb-unknown-log-incompat" corrupt features_log_incompat, "unknown log feature",
        source "xfs_log_recover.c:xlog_recover", since "3.10",
        |s| Mismatch::unless(s.features.unknown(Word::LogIncompat) == 0, hex(s.features.log_incompat), "bits within 0x1");
    /// Version 5 needs blocks of at least 1 KiB.
    "sb-v5-small-blocks" corrupt blocksize, "block too small for version 5",
        source "xfs_sb.c:xfs_validate_sb_common", since "4.10",
        |s| Mismatch::unless(!s.features.is_v5() || s.sb.blocksize >= 1024, s.sb.blocksize, "at least 1024");
    /// The group and project quota bits of version 4 in a version 5 superblock, or the other way round.
    "sb-qflags-wrong-version" corrupt qflags, "quota flags of another version",
        source "xfs_sb.c:xfs_validate_sb_common", since "3.11",
        |s| {
            let wrong = if s.features.is_v5() { 0x0030 } else { 0x0780 };
            Mismatch::unless(s.sb.qflags & wrong == 0, hex(s.sb.qflags), format!("no bit of {wrong:#x}"))
        };
    /// Whole inode chunks must be aligned to their own size where sparse chunks exist, or records could overlap.
    "sb-inoalignmt-not-chunk" corrupt inoalignmt, "inode alignment is not the chunk size",
        source "xfs_sb.c:xfs_validate_sb_common", since "4.2",
        |s| {
            let right = !s.features.has_sparse() || u64::from(s.sb.inoalignmt.0) == s.chunk_blocks();
            Mismatch::unless(right, s.sb.inoalignmt, s.chunk_blocks())
        };
    /// Sparse chunks must be aligned to a fraction of a whole chunk; without the feature the field is 0.
    "sb-spino-align-impossible" corrupt spino_align, "sparse inode alignment does not divide the chunk alignment",
        source "xfs_sb.c:xfs_validate_sb_common", since "4.2",
        |s| {
            let (align, whole) = (s.sb.spino_align.0, s.sb.inoalignmt.0);
            let fits = align == 0 || whole.checked_rem(align) == Some(0) && align <= whole;
            if !s.features.is_v5() {
                None
            } else if s.features.has_sparse() {
                Mismatch::unless(fits, align, format!("a divisor of inoalignmt {whole}"))
            } else {
                Mismatch::unless(align == 0, align, 0)
            }
        };
    /// Block, sector and inode sizes are powers of two within bounds, and the log2 fields beside them agree.
    /// With another value no address can be computed.
    "sb-bad-blocksize" corrupt blocksize, "impossible block size",
        source "xfs_sb.c:xfs_validate_sb_common", since "2.6",
        |s| {
            let (size, log) = (s.sb.blocksize, s.sb.blocklog);
            let right = (512..=65536).contains(&size) && 1u32.checked_shl(log.into()) == Some(size);
            Mismatch::unless(right, format!("{size} (blocklog {log})"), "a power of two from 512 to 65536, and its log2")
        };
    /// See sb-bad-blocksize.
    "sb-bad-sectsize" corrupt sectsize, "impossible sector size",
        source "xfs_sb.c:xfs_validate_sb_common", since "2.6",
        |s| {
            let (size, log) = (u32::from(s.sb.sectsize), s.sb.sectlog);
            let right = (512..=32768).contains(&size) && 1u32.checked_shl(log.into()) == Some(size);
            Mismatch::unless(right, format!("{size} (sectlog {log})"), "a power of two from 512 to 32768, and its log2")
        };
    /// See sb-bad-blocksize.
    "sb-bad-inodesize" corrupt inodesize, "impossible inode size",
        source "xfs_sb.c:xfs_validate_sb_common", since "2.6",
        |s| {
            let (size, log) = (u32::from(s.sb.inodesize), s.sb.inodelog);
            let right = (256..=2048).contains(&size) && 1u32.checked_shl(log.into()) == Some(size);
            Mismatch::unless(right, format!("{size} (inodelog {log})"), "a power of two from 256 to 2048, and its log2")
        };
    /// Inodes per block must be block size / inode size, its log2 must agree.
    "sb-inopblock-mismatch" corrupt inopblock, "inodes per block do not fit the sizes",
        source "xfs_sb.c:xfs_validate_sb_common", since "3.15",
        |s| {
            let right = s.sb.blocksize.checked_div(u32::from(s.sb.inodesize)).unwrap_or(0);
            let log = s.sb.blocklog.checked_sub(s.sb.inodelog);
            let fits = u32::from(s.sb.inopblock) == right && Some(s.sb.inopblog) == log;
            let expected = format!("{right} (inopblog {})", log.map_or("?".into(), |l| l.to_string()));
            Mismatch::unless(fits, format!("{} (inopblog {})", s.sb.inopblock, s.sb.inopblog), expected)
        };
    /// A directory block may have 64 KiB at most.
    "sb-dirblklog-too-large" corrupt dirblklog, "directory block over 64 KiB",
        source "xfs_sb.c:xfs_validate_sb_common", since "3.18",
        |s| {
            let log = u32::from(s.sb.dirblklog).saturating_add(u32::from(s.sb.blocklog));
            Mismatch::unless(log <= 16, s.sb.dirblklog, format!("at most {}", 16u32.saturating_sub(s.sb.blocklog.into())))
        };
    /// An AG has 16 MiB to 1 TiB.
    "sb-agblocks-out-of-range" corrupt agblocks, "impossible AG size",
        source "xfs_sb.c:xfs_validate_sb_common", since "4.16",
        |s| {
            let bytes = u64::from(s.sb.agblocks).saturating_mul(u64::from(s.sb.blocksize));
            Mismatch::unless((1 << 24..=1 << 40).contains(&bytes), s.sb.agblocks, "blocks of 16 MiB to 1 TiB in all")
        };
    /// The shift of AG numbers in block and inode numbers must be log2 of agblocks, rounded up: else every address
    /// means something else.
    "sb-agblklog-mismatch" corrupt agblklog, "shift of the AG number does not fit agblocks",
        source "xfs_sb.c:xfs_validate_sb_common", since "4.16",
        |s| {
            let right = s.sb.agblocks.checked_sub(1).map_or(0, |n| high_bit(n.into()).map_or(0, |bit| bit.saturating_add(1)));
            Mismatch::unless(u32::from(s.sb.agblklog) == right, s.sb.agblklog, right)
        };
    /// The number of AGs must be dblocks / agblocks, rounded up. Too few hide data; on kernels 2.6.37 to 3.7 an
    /// access beyond them can crash (explain nullderef-agcount-short).
    "sb-agcount-mismatch" corrupt agcount, "number of AGs does not fit the size",
        source "xfs_sb.c:xfs_validate_sb_common", since "4.16",
        |s| {
            let right = s.counted_ags().unwrap_or(0);
            Mismatch::unless(s.sb.agcount.get() == right && right > 0, s.sb.agcount, format!("{right}, dblocks / agblocks"))
        };
    /// The data section must end in the last AG and leave it 64 blocks at least.
    "sb-dblocks-out-of-range" corrupt dblocks, "size does not fit the AGs",
        source "xfs_sb.c:xfs_validate_sb_common", since "2.6",
        |s| {
            let (count, size) = (s.sb.agcount.get(), u64::from(s.sb.agblocks));
            let most = count.saturating_mul(size);
            let least = count.saturating_sub(1).saturating_mul(size).saturating_add(64);
            Mismatch::unless((least..=most).contains(&s.sb.dblocks.0), s.sb.dblocks, format!("{least} to {most}"))
        };
    /// A percentage.
    "sb-imax-pct-over-100" corrupt imax_pct, "inodes may take more than all",
        source "xfs_sb.c:xfs_validate_sb_common", since "2.6",
        |s| Mismatch::unless(s.sb.imax_pct <= 100, s.sb.imax_pct, "0 to 100");
    /// A field of IRIX's shared read-only volumes that must be 0.
    "sb-shared-vn-set" corrupt shared_vn, "shared version number set",
        source "xfs_sb.c:xfs_validate_sb_common", since "3.16",
        |s| Mismatch::unless(s.sb.shared_vn == 0, s.sb.shared_vn, 0);
    /// mkfs.xfs did not finish, or the sector is a copy that was put in the place of the primary. Kernels refuse it.
    "sb-inprogress" corrupt inprogress, "mkfs did not finish",
        source "xfs_super.c:xfs_fs_fill_super", since "2.6",
        |s| Mismatch::unless(!s.primary || s.sb.inprogress == 0, s.sb.inprogress, 0);
    /// A log of more than 2^20 blocks or nearly 2 GiB cannot be used; one of no blocks does not exist.
    "sb-logblocks-out-of-range" corrupt logblocks, "impossible log size",
        source "xfs_sb.c:xfs_validate_sb_common", since "6.5",
        |s| {
            let bytes = u64::from(s.sb.logblocks.0).saturating_mul(u64::from(s.sb.blocksize));
            let right = s.sb.logblocks.0 > 0 && s.sb.logblocks.0 <= 1 << 20 && bytes <= (1 << 31) - (10 << 20);
            Mismatch::unless(right, s.sb.logblocks, "1 to 1048576 blocks, at most 2038 MiB")
        };
    /// The log's sector size and its log2 agree where the sector feature is set, and are 0 where it is not.
    "sb-logsectsize-mismatch" corrupt logsectsize, "log sector size and its log2 disagree",
        source "xfs_sb.c:xfs_validate_sb_common", since "6.5",
        |s| {
            let (size, log) = (s.sb.logsectsize, s.sb.logsectlog);
            let right = if s.features.has_sector() {
                1u32.checked_shl(log.into()) == Some(u32::from(size))
            } else {
                size == 0 && log == 0
            };
            let expected = if s.features.has_sector() { "a power of two and its log2" } else { "0 and 0" };
            Mismatch::unless(right, format!("{size} (logsectlog {log})"), expected)
        };
    /// The stripe unit of the log is a multiple of the block size and at most 256 KiB (1 means none).
    "sb-logsunit-impossible" corrupt logsunit, "impossible log stripe unit",
        source "xfs_sb.c:xfs_validate_sb_common", since "6.5",
        |s| {
            let unit = s.sb.logsunit;
            let right = unit <= 1 || unit.checked_rem(s.sb.blocksize) == Some(0) && unit <= 256 << 10;
            Mismatch::unless(right, unit, format!("0, 1, or a multiple of {} up to 262144", s.sb.blocksize))
        };
    /// A realtime extent has 4 KiB to 1 GiB, even where there is no realtime section.
    "sb-rextsize-out-of-range" corrupt rextsize, "impossible realtime extent size",
        source "xfs_sb.c:xfs_validate_rt_geometry", since "2.6",
        |s| {
            let bytes = s.rt_extent_bytes();
            let zoned = s.features.has_zoned();
            let right = (4096..=1 << 30).contains(&bytes) && (!zoned || s.sb.rextsize == 1);
            let expected = if zoned { "1 (zoned)" } else { "4096 bytes to 1 GiB" };
            Mismatch::unless(right, format!("{} blocks = {bytes} bytes", s.sb.rextsize), expected)
        };
    /// Without a realtime section rextents, rbmblocks, rextslog and frextents must be 0.
    "sb-rt-fields-without-section" corrupt rextents, "realtime figures without a realtime section",
        source "xfs_sb.c:xfs_validate_rt_geometry", since "5.7",
        |s| {
            let sb = &s.sb;
            let empty = sb.rextents.0 == 0 && sb.rbmblocks.0 == 0 && sb.rextslog == 0 && sb.frextents == 0;
            let found = format!(
                "{} (rbmblocks {}, rextslog {}, frextents {})", sb.rextents, sb.rbmblocks, sb.rextslog, sb.frextents
            );
            Mismatch::unless(s.has_rt() || empty, found, "all 0")
        };
    /// The number of realtime extents must be rblocks / rextsize, and not 0: a section shorter than one extent is of
    /// no use and is refused since 6.8 (and 5.7 to 6.7 by accident).
    "sb-rextents-mismatch" corrupt rextents, "realtime extents do not fit the section",
        source "xfs_sb.c:xfs_validate_rt_geometry", since "5.7",
        |s| {
            let right = s.sb.rblocks.0.checked_div(s.sb.rextsize.into()).unwrap_or(0);
            let fits = !s.has_rt() || s.sb.rextents.0 == right && right > 0;
            let expected = if right == 0 { "at least 1: the section is shorter than one extent".into() } else { format!("{right}, rblocks / rextsize") };
            Mismatch::unless(fits, s.sb.rextents, expected)
        };
    /// log2 of the number of realtime extents, rounded down, of the whole 64-bit number: mkfs and kernels before 6.8
    /// took the low 32 bits, so the summary file of such a section is too short.
    "sb-rextslog-mismatch" corrupt rextslog, "log2 of the realtime extents is wrong",
        source "xfs_sb.c:xfs_validate_rt_geometry", since "5.7",
        |s| {
            let right = high_bit(s.sb.rextents.0).unwrap_or(0);
            Mismatch::unless(!s.has_rt() || u32::from(s.sb.rextslog) == right, s.sb.rextslog, right)
        };
    /// The bitmap has one bit for each extent: of the section, of each group with metadir, none when zoned.
    "sb-rbmblocks-mismatch" corrupt rbmblocks, "realtime bitmap size does not fit the section",
        source "xfs_sb.c:xfs_validate_rt_geometry", since "5.7",
        |s| {
            let right = s.expected_rbmblocks().unwrap_or(0);
            Mismatch::unless(!s.has_rt() || u64::from(s.sb.rbmblocks.0) == right, s.sb.rbmblocks, right)
        };
    /// More realtime extents free than there are.
    "sb-frextents-beyond-rextents" corrupt frextents, "more realtime extents free than exist",
        source "scrub/fscounters.c:xchk_fscounters", since "5.2",
        |s| Mismatch::unless(!s.has_rt() || s.sb.frextents <= s.sb.rextents.0, s.sb.frextents, format!("at most {}", s.sb.rextents));
    /// Bitmap and summary of a classic realtime section live in inodes; without them the section cannot be used, and
    /// old kernels dereference a null pointer.
    "sb-rt-inodes-missing" corrupt rbmino, "realtime section without bitmap or summary inode",
        source "xfs_rtalloc.c:xfs_rtmount_inodes", since "2.6",
        |s| {
            let missing = |ino: crate::units::Ino| ino.is_null() || ino.0 == 0;
            // mkfs.xfs never writes them into the copies.
            let gone = s.primary && s.has_rt() && !s.features.has_metadir() && (missing(s.sb.rbmino) || missing(s.sb.rsumino));
            Mismatch::unless(!gone, format!("{} (rsumino {})", s.sb.rbmino, s.sb.rsumino), "two inodes")
        };
    /// mkfs.xfs makes bitmap and summary inodes right behind the root directory; they never move.
    "sb-bad-rbmino" corrupt rbmino, "bitmap and summary inodes are not those behind the root",
        source "repair/xfs_repair.c:calc_mkfs", since "none",
        |s| {
            let root = s.sb.rootino.0;
            let right = root.checked_add(1) == Some(s.sb.rbmino.0) && root.checked_add(2) == Some(s.sb.rsumino.0);
            let applies = s.primary && !s.features.has_metadir() && !root_is_impossible(s);
            let expected = format!("{} and {}", root.saturating_add(1), root.saturating_add(2));
            Mismatch::unless(!applies || right, format!("{} and {}", s.sb.rbmino, s.sb.rsumino), expected)
        };
    /// The root directory is an inode of AG 0.
    "sb-bad-rootino" corrupt rootino, "root inode cannot be",
        source "xfs_mount.c:xfs_mountfs; repair/xfs_repair.c:calc_mkfs", since "2.6",
        |s| Mismatch::unless(!s.primary || !root_is_impossible(s), s.sb.rootino, "an inode of AG 0");
    /// mkfs.xfs makes the root of the metadata directory right behind the root directory; it never moves.
    "sb-bad-metadirino" corrupt metadirino, "metadata directory is not the inode behind the root",
        source "xfs_metafile.c:xfs_metafile_iget; repair/xfs_repair.c:calc_mkfs", since "6.13",
        |s| {
            let right = s.sb.rootino.0.checked_add(1) == Some(s.sb.metadirino.0);
            let applies = s.primary && s.features.has_metadir() && !root_is_impossible(s);
            Mismatch::unless(!applies || right, s.sb.metadirino, s.sb.rootino.0.saturating_add(1))
        };
    /// With a metadata directory the realtime inodes stand there, and these fields are 0.
    "sb-metadir-rt-inodes-set" corrupt rbmino, "bitmap or summary inode beside the metadata directory",
        source "scrub/agheader.c:xchk_superblock; repair/agheader.c:secondary_sb_whack", since "scrub",
        |s| {
            let clear = s.sb.rbmino.0 == 0 && s.sb.rsumino.0 == 0;
            Mismatch::unless(!s.features.has_metadir() || clear, format!("{} and {}", s.sb.rbmino, s.sb.rsumino), 0)
        };
    /// With a metadata directory the quota inodes stand there, and these fields are 0.
    "sb-metadir-quota-inodes-set" corrupt uquotino, "quota inode beside the metadata directory",
        source "scrub/agheader.c:xchk_superblock; repair/agheader.c:secondary_sb_whack", since "scrub",
        |s| {
            let inodes = [s.sb.uquotino, s.sb.gquotino, s.sb.pquotino];
            let clear = inodes.iter().all(|ino| ino.0 == 0);
            let found = format!("{}, {}, {}", s.sb.uquotino, s.sb.gquotino, s.sb.pquotino);
            Mismatch::unless(!s.features.has_metadir() || clear, found, 0)
        };
    /// mkfs.xfs writes the copies before there are quota inodes, and marks them as in progress; growfs copies the primary
    /// with the mark taken away.
    "sb-copy-quota-inodes-set" xcorrupt uquotino, "quota inode in a copy that mkfs wrote",
        source "repair/agheader.c:secondary_sb_whack", since "none",
        |s| {
            let inodes = [s.sb.uquotino, s.sb.gquotino, s.sb.pquotino];
            let clear = inodes.iter().all(|ino| ino.0 == 0 || ino.is_null());
            let found = format!("{}, {}, {}", inodes[0], inodes[1], inodes[2]);
            Mismatch::unless(s.primary || s.sb.inprogress != 1 || clear, found, "0 or null")
        };
    /// mkfs.xfs writes the copies without quota flags, and marks them as in progress; growfs copies the primary with the
    /// mark taken away. With metadata directories flags are kept, and xfs_repair lets them be.
    "sb-copy-quota-flags-set" xcorrupt qflags, "quota flags in a copy that mkfs wrote",
        source "repair/agheader.c:secondary_sb_whack", since "none",
        |s| {
            let clear = s.sb.qflags == 0 || s.features.has_metadir();
            Mismatch::unless(s.primary || s.sb.inprogress != 1 || clear, hex(s.sb.qflags), 0)
        };
    /// Some old machines wrote features2 behind its place; the kernel keeps both alike, joins them at mount and mends
    /// them then.
    "sb-features2-mismatch" xcorrupt bad_features2, "features2 and its misplaced twin differ",
        source "xfs_mount.c:xfs_sb_has_mismatched_features2; repair/phase1.c:phase1", since "2.6.25",
        |s| {
            let right = s.sb.features2 == s.sb.bad_features2;
            Mismatch::unless(!s.primary || right, hex(s.sb.bad_features2), hex(s.sb.features2))
        };
    /// The bit says that inodes keep their links in 32 bits (version 2). Kernels take its absence for an old file system
    /// and set it; xfsprogs no longer knows version 1 and stops.
    "sb-inode-version-1" xcorrupt versionnum, "inodes of version 1",
        source "repair/versions.c:parse_sb_version", since "none",
        |s| Mismatch::unless(!s.primary || s.features.is_v5() || s.sb.versionnum & 0x20 != 0, hex(s.sb.versionnum), "with 0x20 (nlink)");
    /// Without the alignment bit, inode chunks are not aligned, and this field is 0.
    "sb-inoalignmt-without-align" xcorrupt inoalignmt, "inode alignment without its bit",
        source "repair/agheader.c:secondary_sb_whack", since "none",
        |s| {
            let right = s.sb.inoalignmt.0 == 0 || s.features.has_align();
            Mismatch::unless(right, s.sb.inoalignmt, "0, or bit 0x80 (align) of versionnum")
        };
    /// The quota bit comes with the first quota file, and the files stay. Mounting with quotas makes new ones.
    "sb-quota-without-inodes" xcorrupt versionnum, "quota bit without a quota file",
        source "repair/versions.c:update_sb_version; repair/xfs_repair.c:main (no quota inodes were found)", since "none",
        |s| {
            let inodes = [s.sb.uquotino, s.sb.gquotino, s.sb.pquotino];
            let has = inodes.iter().any(|ino| ino.0 != 0 && !ino.is_null());
            let applies = s.primary && s.sb.versionnum & 0x40 != 0 && !s.features.has_metadir();
            Mismatch::unless(!applies || has, hex(s.sb.versionnum), "without 0x40 (quota), or a quota file")
        };
    /// Only bit 0 was ever defined (mount read-only), and nothing sets it.
    "sb-flags-set" corrupt flags, "flags are set",
        source "scrub/agheader.c:xchk_superblock; repair/agheader.c:secondary_sb_whack", since "scrub",
        |s| Mismatch::unless(s.sb.flags == 0, hex(s.sb.flags), 0);
    /// Groups must cover the realtime section exactly.
    "sb-rgcount-mismatch" corrupt rgcount, "realtime groups do not cover the section",
        source "xfs_sb.c:xfs_validate_sb_rtgroups", since "6.13",
        |s| {
            let right = if s.sb.rgextents > 0 { s.sb.rextents.0.div_ceil(s.sb.rgextents.into()) } else { 0 };
            Mismatch::unless(!s.features.has_metadir() || u64::from(s.sb.rgcount) == right, s.sb.rgcount, right)
        };
    /// A realtime group has 2 extents at least and less than 2^31 blocks.
    "sb-rgextents-out-of-range" corrupt rgextents, "impossible size of a realtime group",
        source "xfs_sb.c:xfs_validate_sb_rtgroups", since "6.13",
        |s| {
            let most = ((1u32 << 31) - 1).checked_div(s.sb.rextsize).unwrap_or(0);
            let right = !s.features.has_metadir() || (2..=most).contains(&s.sb.rgextents);
            Mismatch::unless(right, s.sb.rgextents, format!("2 to {most}"))
        };
    /// The shift of group numbers in realtime block numbers must fit the size of a group.
    "sb-rgblklog-mismatch" corrupt rgblklog, "shift of the group number does not fit the group size",
        source "xfs_sb.c:xfs_validate_sb_rtgroups", since "6.13",
        |s| {
            let right = s.group_log();
            let fits = !s.features.has_metadir() || Some(u32::from(s.sb.rgblklog)) == right;
            Mismatch::unless(fits, s.sb.rgblklog, right.map_or("?".to_owned(), |log| log.to_string()))
        };
    /// Defragmentation of realtime files in groups needs exchange-range.
    "sb-metadir-without-exchange" corrupt features_incompat, "metadir without exchange-range",
        source "xfs_sb.c:xfs_validate_sb_rtgroups", since "6.13",
        |s| {
            let right = !s.features.has_metadir() || s.features.has_exchange();
            Mismatch::unless(right, hex(s.features.incompat), "with 0x40 (exchange)")
        };
    /// Padding behind the metadir fields must be 0.
    "sb-metadir-padding" corrupt pad, "padding is not zero",
        source "xfs_sb.c:xfs_validate_sb_common", since "6.13",
        |s| {
            let clean = s.sb.pad == 0 && s.sb.pad_rest == [0; 6];
            Mismatch::unless(!s.features.has_metadir() || clean, format!("{:#x} {:x?}", s.sb.pad, s.sb.pad_rest), "zeros")
        };
    /// A zoned file system lives on realtime groups.
    "sb-zoned-without-metadir" corrupt features_incompat, "zoned without metadir",
        source "xfs_super.c:xfs_fs_fill_super", since "6.15",
        |s| {
            let right = !s.features.has_zoned() || s.features.has_metadir();
            Mismatch::unless(right, hex(s.features.incompat), "with 0x100 (metadir)")
        };
    /// Zoned file systems count free realtime extents elsewhere.
    "sb-zoned-frextents" corrupt frextents, "free realtime extents on a zoned file system",
        source "xfs_sb.c:xfs_validate_sb_zoned", since "6.15",
        |s| Mismatch::unless(!s.features.has_zoned() || s.sb.frextents == 0, s.sb.frextents, 0);
    /// An internal realtime section begins behind the data section.
    "sb-rtstart-overlaps" corrupt rblocks, "internal realtime section overlaps the data section",
        source "xfs_sb.c:xfs_validate_sb_zoned", since "6.15",
        |s| {
            let start = s.zoned.0;
            let right = !s.features.has_zoned() || start == 0 || start >= s.sb.dblocks.0;
            Mismatch::unless(right, format!("rtstart {start}"), format!("at least dblocks {}", s.sb.dblocks))
        };
    /// The blocks held back for garbage collection must leave some for data.
    "sb-rtreserved-too-large" corrupt rblocks, "all realtime blocks are reserved",
        source "xfs_sb.c:xfs_validate_sb_zoned", since "6.15",
        |s| {
            let kept = s.zoned.1;
            let right = !s.features.has_zoned() || kept == 0 || kept < s.sb.rblocks.0;
            Mismatch::unless(right, format!("rtreserved {kept}"), format!("less than rblocks {}", s.sb.rblocks))
        };
    /// Zones are all of one size.
    "sb-zoned-runt-group" corrupt rextents, "last zone is shorter than the others",
        source "xfs_sb.c:xfs_validate_rt_geometry", since "6.15",
        |s| {
            let rest = s.sb.rextents.0.checked_rem(s.sb.rgextents.into()).unwrap_or(0);
            let right = !s.features.has_zoned() || !s.has_rt() || rest == 0;
            Mismatch::unless(right, s.sb.rextents, format!("a multiple of rgextents {}", s.sb.rgextents))
        };
    /// The dalign bit and a stripe unit go together. Kernels from 4.18 on refuse one without the other ("SB stripe
    /// alignment sanity check failed"). Clear the bit, or set unit and width, in every superblock.
    "sb-dalign-without-unit" corrupt versionnum, "stripe alignment bit and stripe unit disagree",
        source "xfs_sb.c:xfs_validate_sb_common", since "4.18",
        |s| {
            let bit = s.features.has_dalign();
            let found = format!("{:#x} (dalign {}), unit {}", s.sb.versionnum, u8::from(bit), s.sb.unit);
            Mismatch::unless(bit == (s.sb.unit != 0), found, "both or none")
        };
    /// Every AG begins on a stripe unit, so the AG size is a multiple of it. Kernels do not look at what is on disk (only at
    /// the mount option sunit=); xfs_repair takes such a superblock for a bad one.
    "sb-agblocks-not-striped" xcorrupt unit, "AG size is no multiple of the stripe unit",
        source "xfs_repair sb.c:verify_sb; xfs_mount.c:xfs_validate_new_dalign", since "none",
        |s| {
            let rest = s.sb.agblocks.checked_rem(s.sb.unit).unwrap_or(0);
            Mismatch::unless(
                rest == 0 || s.sb.versionnum & 0x100 == 0,
                format!("{} blocks, agblocks {}", s.sb.unit, s.sb.agblocks),
                "a divisor of agblocks",
            )
        };
    /// Stripe unit and width are both set or both 0, the unit is not larger than the width and divides it, and the
    /// width is below 2 GiB. Kernels from 4.18 on refuse anything else; from 6.9 on mounting with sunit= and swidth=
    /// corrects the primary. xfs_repair copies the values of a good superblock.
    "sb-stripe-impossible" corrupt width, "impossible stripe unit and width",
        source "xfs_sb.c:xfs_validate_stripe_geometry", since "4.18",
        |s| {
            let (unit, width) = (s.unit_bytes(), s.width_bytes());
            let right = unit == 0 && width == 0
                || unit > 0 && width >= unit && width.checked_rem(unit) == Some(0) && width < 1 << 31;
            let expected = if width >= 1 << 31 { "less than 2 GiB" } else { "a multiple of the stripe unit, not 0" };
            Mismatch::unless(right, format!("{} blocks, unit {} blocks", s.sb.width, s.sb.unit), expected)
        };
}

/// Applies all rules to a superblock at `place`.
pub fn check(subject: &Subject, place: &Place) -> Vec<Finding> {
    RULES
        .iter()
        .zip(INFOS)
        .filter_map(|(rule, info)| {
            let Mismatch { found, expected } = (rule.test)(subject)?;
            Some(Finding::new(info, place.field(info.field), found, expected))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Structure;
    use crate::units::{AgNumber, Blocks, ByteOffset, Device, ExtLen, Ino, RtExtent};

    fn subject(change: impl Fn(&mut Superblock)) -> Subject {
        let mut sb = Superblock::decode(&[0; 288]).expect("288 bytes");
        sb.magicnum = MAGIC;
        (sb.blocksize, sb.blocklog, sb.sectsize, sb.sectlog) = (4096, 12, 512, 9);
        (sb.inodesize, sb.inodelog, sb.inopblock, sb.inopblog) = (512, 9, 8, 3);
        (sb.agblocks, sb.agblklog, sb.agcount, sb.dblocks) = (8192, 13, AgNumber(4), Blocks(32768));
        (sb.versionnum, sb.features2, sb.features_ro_compat, sb.features_incompat) = (0xb4b5, 0x18a, 0xf, 0xeb);
        (sb.rextsize, sb.logblocks, sb.logsunit) = (1, ExtLen(3072), 1);
        (sb.inoalignmt, sb.spino_align) = (ExtLen(8), ExtLen(4));
        (sb.rootino, sb.rbmino, sb.rsumino, sb.bad_features2) = (Ino(128), Ino(129), Ino(130), 0x18a);
        change(&mut sb);
        let features = sb.features();
        Subject { sb, zoned: (0, 0), features, crc: CrcState::Correct, primary: true }
    }

    fn ids(subject: &Subject) -> Vec<&'static str> {
        let place = Place::new(Device::Data, ByteOffset(0), 512, "sb 0");
        check(subject, &place).iter().map(|f| f.rule.id).collect()
    }

    #[test]
    fn a_good_superblock_breaks_no_rule() {
        assert_eq!(ids(&subject(|_| {})), [""; 0]);
    }

    /// The figures are those of cases C10, C31, C32, C33 and C36 of testimages; the verdicts are what kernels 6.1 and 7.2 answered when asked to mount.
    #[test]
    fn cases_from_the_field() {
        let c10 = subject(|sb| (sb.versionnum, sb.unit, sb.width) = (0xb5b5, 64, 0));
        assert_eq!(ids(&c10), ["sb-stripe-impossible"]);
        // xfs_repair -n of 7.2: "bad primary superblock - bad stripe unit in superblock !!!", exit status 1.
        let odd = subject(|sb| (sb.versionnum, sb.agblocks, sb.unit, sb.width) = (0xb5b5, 16_384, 3, 48));
        assert!(ids(&odd).contains(&"sb-agblocks-not-striped"), "{:?}", ids(&odd));
        let c31 = subject(|sb| sb.versionnum |= 0x100);
        assert_eq!(ids(&c31), ["sb-dalign-without-unit"]);
        let c32 = subject(|sb| {
            (sb.rblocks, sb.rextents) = (Blocks(4_294_967_312), RtExtent(4_294_967_312));
            (sb.rextslog, sb.rbmblocks) = (4, ExtLen(131_073));
        });
        assert_eq!(ids(&c32), ["sb-rextslog-mismatch"]);
        let c33 = subject(|sb| (sb.rblocks, sb.rextsize) = (Blocks(90), 256));
        assert_eq!(ids(&c33), ["sb-rextents-mismatch"]);
        // C36: 390703446 extents of 4 KiB need 11924 bitmap blocks, rextslog 28.
        let c36 = subject(|sb| {
            (sb.rblocks, sb.rextents) = (Blocks(390_703_446), RtExtent(390_703_446));
            (sb.rextslog, sb.rbmblocks) = (28, ExtLen(11_924));
        });
        assert_eq!(ids(&c36), [""; 0]);
    }

    #[test]
    fn products_do_not_wrap() {
        // 2^20 + 1 blocks of 4096 bytes: the kernel's 32-bit product is 4096 and passes.
        assert_eq!(ids(&subject(|sb| sb.rextsize = (1 << 20) + 1)), ["sb-rextsize-out-of-range"]);
    }

    #[test]
    fn ids_are_unique_and_documented() {
        let mut seen = std::collections::BTreeSet::new();
        for info in crate::check::CATALOGUE.iter().flat_map(|rules| rules.iter()) {
            assert!(seen.insert(info.id), "{} twice", info.id);
            assert!(!info.explanation.trim().is_empty() && !info.source.is_empty(), "{}", info.id);
            let words = info.id.split('-');
            let plain =
                |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
            assert!(
                words.clone().count() >= 2 && words.clone().all(plain),
                "{}: small words with dashes between",
                info.id
            );
        }
    }
}
