//! An inode read in place: one method per field of the core, for walks that pass over millions of them.
//!
//! The values are those on disk, whatever they are. What version 1 inodes and the two counter forms do differently
//! is settled here, as in `xfs_inode_from_disk` and `xfs_dfork_nextents`.

use super::bits;
use super::dinode::{self, Fork, extent_count, flags, flags2, flags2_of, fork_range, mode};
use crate::units::{AgIno, Blocks, Ino};

/// What an inode is, from the type bits of its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Regular file.
    Regular,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Character device.
    Char,
    /// Block device.
    Block,
    /// Named pipe.
    Fifo,
    /// Socket.
    Socket,
    /// Type bits that mean nothing.
    Unknown,
}

impl Kind {
    /// From the mode.
    pub const fn of_mode(mode: u16) -> Self {
        match mode & mode::TYPE {
            mode::REGULAR => Self::Regular,
            mode::DIRECTORY => Self::Directory,
            mode::SYMLINK => Self::Symlink,
            mode::CHAR => Self::Char,
            mode::BLOCK => Self::Block,
            mode::FIFO => Self::Fifo,
            mode::SOCKET => Self::Socket,
            _ => Self::Unknown,
        }
    }

    /// From the file type of a directory entry (`XFS_DIR3_FT_*`); `None` for 0 and what is not known.
    pub const fn of_ftype(ftype: u8) -> Option<Self> {
        Some(match ftype {
            1 => Self::Regular,
            2 => Self::Directory,
            3 => Self::Char,
            4 => Self::Block,
            5 => Self::Fifo,
            6 => Self::Socket,
            7 => Self::Symlink,
            _ => return None,
        })
    }

    /// Its name in JSON: `regular`, `directory`, `symlink`, `char`, `block`, `fifo`, `socket`, `unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Char => "char",
            Self::Block => "block",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::Unknown => "unknown",
        }
    }

    /// The letter of `ls -l`.
    pub const fn letter(self) -> char {
        match self {
            Self::Regular => '-',
            Self::Directory => 'd',
            Self::Symlink => 'l',
            Self::Char => 'c',
            Self::Block => 'b',
            Self::Fifo => 'p',
            Self::Socket => 's',
            Self::Unknown => '?',
        }
    }
}

/// Seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970, negative before.
    pub sec: i64,
    /// Nanoseconds; not above 999,999,999 on a sound inode.
    pub nsec: u32,
}

/// Seconds and nanoseconds of a timestamp in either form (`xfs_inode_from_disk_ts`).
pub fn time(raw: u64, bigtime: bool) -> Time {
    if bigtime {
        let seconds = raw.checked_div(1_000_000_000).unwrap_or(0).cast_signed();
        let nsec = raw.checked_rem(1_000_000_000).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        Time { sec: seconds.saturating_sub(1 << 31), nsec }
    } else {
        Time { sec: bits::signed(raw >> 32, 32), nsec: u32::try_from(raw & 0xffff_ffff).unwrap_or(0) }
    }
}

/// Names of the flags in `di_flags`, as `find` and `stat` take and give them.
pub const FLAG_NAMES: [(u16, &str); 15] = [
    (flags::REALTIME, "realtime"),
    (flags::PREALLOC, "prealloc"),
    (flags::NEWRTBM, "newrtbm"),
    (flags::IMMUTABLE, "immutable"),
    (flags::APPEND, "append"),
    (flags::SYNC, "sync"),
    (flags::NOATIME, "noatime"),
    (flags::NODUMP, "nodump"),
    (flags::RTINHERIT, "rtinherit"),
    (flags::PROJINHERIT, "projinherit"),
    (flags::NOSYMLINKS, "nosymlinks"),
    (flags::EXTSIZE, "extsize"),
    (flags::EXTSZINHERIT, "extszinherit"),
    (flags::NODEFRAG, "nodefrag"),
    (flags::FILESTREAM, "filestream"),
];

/// Names of the flags in `di_flags2`.
pub const FLAG2_NAMES: [(u64, &str); 6] = [
    (flags2::DAX, "dax"),
    (flags2::REFLINK, "reflink"),
    (flags2::COWEXTSIZE, "cowextsize"),
    (flags2::BIGTIME, "bigtime"),
    (flags2::NREXT64, "nrext64"),
    (flags2::METADATA, "metadata"),
];

/// The bytes of an inode, with its fields as methods. Bytes that are not there read as zero.
#[derive(Clone, Copy, Debug)]
pub struct Dinode<'a> {
    bytes: &'a [u8],
}

impl<'a> Dinode<'a> {
    /// A view of these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The bytes.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn u8(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }
    fn u16(&self, at: usize) -> u16 {
        bits::be16(self.bytes, at).unwrap_or(0)
    }
    fn u32(&self, at: usize) -> u32 {
        bits::be32(self.bytes, at).unwrap_or(0)
    }
    fn u64(&self, at: usize) -> u64 {
        bits::be64(self.bytes, at).unwrap_or(0)
    }

    /// Does it begin with `IN`?
    pub fn has_magic(&self) -> bool {
        self.u16(0) == dinode::MAGIC
    }

    /// Type and permissions (`di_mode`); 0 for a free inode.
    pub fn mode(&self) -> u16 {
        self.u16(2)
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        Kind::of_mode(self.mode())
    }

    /// `di_version`: 1, 2 or 3.
    pub fn version(&self) -> u8 {
        self.u8(4)
    }

    /// Form of a fork (`di_format`, `di_aformat`): see [`dinode::fork_format`].
    pub fn format(&self, fork: Fork) -> u8 {
        match fork {
            Fork::Data => self.u8(5),
            Fork::Attr => self.u8(83),
        }
    }

    /// Kind of a metadata file (`di_metatype`); `None` where it is none.
    pub fn metatype(&self) -> Option<u16> {
        (self.flags2() & flags2::METADATA != 0).then(|| self.u16(6))
    }

    /// Owner.
    pub fn uid(&self) -> u32 {
        self.u32(8)
    }

    /// Group.
    pub fn gid(&self) -> u32 {
        self.u32(12)
    }

    /// Links: 16 bits on version 1, else 32.
    pub fn nlink(&self) -> u32 {
        if self.version() == 1 { u32::from(self.u16(6)) } else { self.u32(16) }
    }

    /// Project; 0 on version 1.
    pub fn projid(&self) -> u32 {
        if self.version() == 1 {
            return 0;
        }
        u32::from(self.u16(20)) | u32::from(self.u16(22)) << 16
    }

    /// Length in bytes (`di_size`), as stored: signed.
    pub fn size(&self) -> i64 {
        self.u64(56).cast_signed()
    }

    /// Blocks in use by both forks, their btrees included (`di_nblocks`).
    pub fn nblocks(&self) -> Blocks {
        Blocks(self.u64(64))
    }

    /// Extent size hint in blocks (`di_extsize`).
    pub fn extsize(&self) -> u32 {
        self.u32(72)
    }

    /// Hint for copies on write in blocks (`di_cowextsize`); 0 before version 3.
    pub fn cowextsize(&self) -> u32 {
        if self.version() >= 3 { self.u32(128) } else { 0 }
    }

    /// Extents of a fork, as the core says.
    pub fn extents(&self, fork: Fork) -> u64 {
        extent_count(self.bytes, fork)
    }

    /// Where the attribute fork begins, in 8-byte units behind the core; 0 without one.
    pub fn forkoff(&self) -> u8 {
        self.u8(82)
    }

    /// `di_flags`: see [`dinode::flags`].
    pub fn flags(&self) -> u16 {
        self.u16(90)
    }

    /// `di_flags2`: see [`dinode::flags2`]; 0 before version 3.
    pub fn flags2(&self) -> u64 {
        flags2_of(self.bytes)
    }

    /// Names of the flags that are set, of both words.
    pub fn flag_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let (flags, flags2) = (self.flags(), self.flags2());
        let first = FLAG_NAMES.into_iter().filter(move |(bit, _)| flags & bit != 0).map(|(_, name)| name);
        first.chain(FLAG2_NAMES.into_iter().filter(move |(bit, _)| flags2 & bit != 0).map(|(_, name)| name))
    }

    /// Does its data lie in the realtime section?
    pub fn is_realtime(&self) -> bool {
        self.flags() & flags::REALTIME != 0
    }

    /// Generation (`di_gen`).
    pub fn generation(&self) -> u32 {
        self.u32(92)
    }

    /// Next on the AG's list of unlinked inodes; [`AgIno::NULL`] at its end and on linked inodes.
    pub fn next_unlinked(&self) -> AgIno {
        AgIno(self.u32(96))
    }

    fn time_at(&self, at: usize) -> Time {
        time(self.u64(at), self.flags2() & flags2::BIGTIME != 0)
    }

    /// Last access. On the classic realtime bitmap inode this is a sequence number.
    pub fn atime(&self) -> Time {
        self.time_at(32)
    }

    /// Last change of the content.
    pub fn mtime(&self) -> Time {
        self.time_at(40)
    }

    /// Last change of the inode.
    pub fn ctime(&self) -> Time {
        self.time_at(48)
    }

    /// When it was made; `None` before version 3.
    pub fn crtime(&self) -> Option<Time> {
        (self.version() >= 3).then(|| self.time_at(144))
    }

    /// The number it says it has (`di_ino`); `None` before version 3.
    pub fn own_number(&self) -> Option<Ino> {
        (self.version() >= 3).then(|| Ino(self.u64(152)))
    }

    /// The bytes of a fork, cut to the inode; `None` where there is none.
    pub fn fork(&self, fork: Fork) -> Option<&'a [u8]> {
        let (start, length) = fork_range(self.bytes, fork)?;
        self.bytes.get(start..start.checked_add(length)?)
    }

    /// Major and minor number of a device file, decoded as `sysv_major` and `sysv_minor` do.
    pub fn device_number(&self) -> Option<(u32, u32)> {
        let raw = bits::be32(self.fork(Fork::Data)?, 0)?;
        Some((raw >> 18, raw & 0x3_ffff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_forms() {
        // Case C49: raw 4361615344123456789 with bigtime is 2040-02-29T12:34:56.123456789Z.
        assert_eq!(time(4_361_615_344_123_456_789, true), Time { sec: 2_214_131_696, nsec: 123_456_789 });
        assert_eq!(time(0x8000_0000_0000_0001, false), Time { sec: -(1 << 31), nsec: 1 });
    }

    #[test]
    fn version_1_keeps_its_links_elsewhere() {
        let mut bytes = vec![0; 256];
        (bytes[4], bytes[7], bytes[19], bytes[21]) = (1, 9, 3, 5);
        let inode = Dinode::new(&bytes);
        assert_eq!((inode.nlink(), inode.projid()), (9, 0));
        bytes[4] = 2;
        let inode = Dinode::new(&bytes);
        assert_eq!((inode.nlink(), inode.projid()), (3, 5));
        assert_eq!(Dinode::new(&[]).size(), 0);
    }
}
