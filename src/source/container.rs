//! What a device holds when it is not the file system that was looked for: partition tables, volume managers,
//! encryption, other file systems, image formats — told by magic numbers, with the places where a file system
//! may lie inside.

use super::Source;
use crate::units::ByteOffset;

/// What was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name, as a person would say it.
    pub name: String,
    /// More about it: members, flags, what to do.
    pub detail: Option<String>,
    /// Where a file system may begin inside.
    pub parts: Vec<Part>,
}

/// A place inside a container where a file system may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is called: `partition 2 "root"`.
    pub name: String,
    /// First byte.
    pub start: u64,
    /// Length in bytes, where it is told.
    pub length: Option<u64>,
}

/// A magic at a fixed place.
struct Magic {
    at: u64,
    bytes: &'static [u8],
    name: &'static str,
    detail: Option<&'static str>,
}

const fn magic(at: u64, bytes: &'static [u8], name: &'static str) -> Magic {
    Magic { at, bytes, name, detail: None }
}

const fn with(at: u64, bytes: &'static [u8], name: &'static str, detail: &'static str) -> Magic {
    Magic { at, bytes, name, detail: Some(detail) }
}

/// Signatures that need no parsing; the first that fits wins.
const MAGICS: &[Magic] = &[
    with(0, b"LUKS\xba\xbe", "a LUKS encrypted volume", "open it (cryptsetup open) and inspect the mapped device"),
    with(0, b"QFI\xfb", "a qcow2 disk image", "convert it: qemu-img convert -O raw IMAGE raw.img"),
    with(0, b"KDMV", "a VMDK disk image", "convert it: qemu-img convert -O raw IMAGE raw.img"),
    with(0, b"conectix", "a VHD disk image", "convert it: qemu-img convert -O raw IMAGE raw.img"),
    with(0, b"vhdxfile", "a VHDX disk image", "convert it: qemu-img convert -O raw IMAGE raw.img"),
    with(64, b"\x7f\x10\xda\xbe", "a VDI disk image", "convert it: qemu-img convert -O raw IMAGE raw.img"),
    with(0, b"\x1f\x8b", "a gzip archive", "unpack it first"),
    with(0, b"\xfd7zXZ\0", "an xz archive", "unpack it first"),
    with(0, b"BZh", "a bzip2 archive", "unpack it first"),
    with(0, b"\xed\xab\xee\xdb", "an RPM package", "not a disk"),
    with(0, b"\x7fELF", "an ELF program", "not a disk"),
    with(0, b"Frog", "the realtime device of an XFS file system", "give its data device, and this one as --rtdev"),
    with(0, b"\xfe\xed\xba\xbe", "an XFS log device", "give the data device, and this one as --logdev"),
    magic(65600, b"_BHRfS_M", "a btrfs file system"),
    magic(3, b"NTFS    ", "an NTFS file system"),
    magic(3, b"EXFAT   ", "an exFAT file system"),
    magic(82, b"FAT32   ", "a FAT file system"),
    magic(54, b"FAT1", "a FAT file system"),
    magic(1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    magic(1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    magic(0, b"hsqs", "a squashfs image"),
    magic(32769, b"CD001", "an ISO 9660 image"),
    magic(65588, b"ReIsEr", "a ReiserFS file system"),
    magic(32768, b"JFS1", "a JFS file system"),
    magic(4086, b"SWAPSPACE2", "a swap area"),
    magic(4096, b"\xc6\x85\x73\xf6", "a bcachefs or bcache device"),
];

/// Up to `length` bytes at `at`; fewer at the end, none where they cannot be read.
fn bytes_at(source: &dyn Source, at: u64, length: usize) -> Vec<u8> {
    let rest = usize::try_from(source.len().saturating_sub(at)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; rest.min(length)];
    match source.read_at(ByteOffset(at), &mut bytes) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}
fn le64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// Tells what a device holds; `None` when nothing is known.
pub fn identify(source: &dyn Source) -> Option<Container> {
    let head = bytes_at(source, 0, 128 * 1024);
    metadump(&head)
        .or_else(|| md_member(source, &head))
        .or_else(|| lvm(&head))
        .or_else(|| gpt_table(source, &head))
        .or_else(|| by_magic(&head))
        .or_else(|| mbr(&head))
}

fn by_magic(head: &[u8]) -> Option<Container> {
    let hit = MAGICS.iter().find(|m| {
        let at = usize::try_from(m.at).unwrap_or(usize::MAX);
        head.get(at..).is_some_and(|rest| rest.starts_with(m.bytes))
    })?;
    Some(Container { name: hit.name.into(), detail: hit.detail.map(str::to_owned), parts: Vec::new() })
}

/// xfs_metadump's output: an extract of metadata that must be restored before anything can read it.
fn metadump(head: &[u8]) -> Option<Container> {
    let word = |at| head.get(at).copied().unwrap_or(0);
    let (version, known, obfuscated, full, dirty) = if head.starts_with(b"XFSM") {
        let info = word(7);
        (1, info & 1 != 0, info & 2 != 0, info & 4 != 0, info & 8 != 0)
    } else if head.starts_with(b"XMD2") {
        let compat = word(11);
        (2, true, compat & 1 != 0, compat & 2 != 0, compat & 4 != 0)
    } else {
        return None;
    };
    let names = if obfuscated { "names obfuscated" } else { "names not obfuscated" };
    let blocks = if full { "whole blocks kept" } else { "unused parts of blocks zeroed" };
    let log = if dirty { "log dirty" } else { "log clean" };
    let told = if known {
        format!("{names}, {blocks}, {log}")
    } else {
        "made by an old xfs_metadump that kept no flags".into()
    };
    Some(Container {
        name: format!("an XFS metadump, version {version}"),
        detail: Some(format!("{told}; restore it first: xfs_mdrestore DUMP IMAGE, then inspect IMAGE")),
        parts: Vec::new(),
    })
}

/// A member of a Linux software RAID array.
fn md_member(source: &dyn Source, head: &[u8]) -> Option<Container> {
    md_superblock(source, head).map(|md| md.container())
}

/// What the md superblock of a device tells, wherever it lies.
pub fn md_superblock(source: &dyn Source, head: &[u8]) -> Option<MdMember> {
    let end = source.len();
    let at_1_0 = end.checked_sub(8192).map(|at| at & !4095);
    let at_0_90 = (end & !65535).checked_sub(65536);
    let inside = |at: usize| head.get(at..).unwrap_or_default().to_vec();
    let at_end = |at: Option<u64>| at.map(|at| (at, bytes_at(source, at, 4096)));
    [("1.2", Some((4096, inside(4096)))), ("1.1", Some((0, inside(0)))), ("1.0", at_end(at_1_0))]
        .into_iter()
        .find_map(|(metadata, found)| found.and_then(|(at, sb)| MdMember::version_1(metadata, at, &sb)))
        .or_else(|| at_end(at_0_90).and_then(|(_, sb)| MdMember::version_0(&sb)))
}

/// What an md superblock tells of the array that a device belongs to (`mdp_super_t`, `mdp_superblock_1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MdMember {
    metadata: &'static str,
    level: i32,
    layout: u32,
    disks: u32,
    chunk: u64,
    /// First byte of the array's data on this device.
    start: u64,
}

impl MdMember {
    const MAGIC: u32 = 0xa92b_4efc;

    /// Superblock of version 1, little endian; it tells where it lies itself.
    fn version_1(metadata: &'static str, at: u64, sb: &[u8]) -> Option<Self> {
        let own = le64(sb, 144)?;
        if le32(sb, 0)? != Self::MAGIC || le32(sb, 4)? != 1 || own.checked_mul(512)? != at {
            return None;
        }
        Some(Self {
            metadata,
            level: le32(sb, 72)?.cast_signed(),
            layout: le32(sb, 76)?,
            disks: le32(sb, 92)?,
            chunk: u64::from(le32(sb, 88)?).saturating_mul(512),
            start: le64(sb, 128)?.checked_mul(512)?,
        })
    }

    /// Superblock of version 0.90, in the byte order of the machine that made it.
    fn version_0(sb: &[u8]) -> Option<Self> {
        let be = |at: usize| le32(sb, at).map(u32::swap_bytes);
        let word = |at: usize| if be(0) == Some(Self::MAGIC) { be(at) } else { le32(sb, at) };
        if word(0)? != Self::MAGIC || word(4)? != 0 {
            return None;
        }
        Some(Self {
            metadata: "0.90",
            level: word(28)?.cast_signed(),
            layout: word(256)?,
            disks: word(40)?,
            chunk: u64::from(word(260)?),
            start: 0,
        })
    }

    /// Does every member hold all data, one after the other? Mirrors do, paths to one disk (level -4), arrays of one device, level 4 and 5 of two, and
    /// level 10 with as many near copies as devices.
    pub const fn holds_all(&self) -> bool {
        self.disks <= 1
            || match self.level {
                1 | -4 => true,
                4 | 5 => self.disks == 2,
                10 => self.layout & 0xffff == 0x100 | self.disks,
                _ => false,
            }
    }

    fn container(&self) -> Container {
        let Self { metadata, level, disks, chunk, start, .. } = self;
        let chunks = if *chunk > 0 { format!(", chunk {} KiB", chunk >> 10) } else { String::new() };
        let (detail, parts) = match self.holds_all() {
            true => (
                format!("inspect the array (/dev/mdX); data begin at byte {start}: each member holds all of them"),
                vec![Part { name: "md data".into(), start: *start, length: None }],
            ),
            false => (
                "only a part of the data lies on this member, and no offset reads the rest: assemble the array read-only \
                 (mdadm --assemble --readonly) and inspect /dev/mdX"
                    .into(),
                Vec::new(),
            ),
        };
        Container {
            name: format!("a member of an md array (metadata {metadata}, level {level}, {disks} devices{chunks})"),
            detail: Some(detail),
            parts,
        }
    }
}

/// The md array that a device is a member of, whatever else lies on it.
pub fn md(source: &dyn Source) -> Option<MdMember> {
    md_superblock(source, &bytes_at(source, 0, 8192))
}

/// An LVM physical volume: its label stands in one of the first four sectors.
fn lvm(head: &[u8]) -> Option<Container> {
    let label = head.chunks(512).take(4).any(|s| s.starts_with(b"LABELONE") && s.get(24..32) == Some(b"LVM2 001"));
    label.then(|| Container {
        name: "an LVM physical volume".into(),
        detail: Some("activate it (vgchange -ay) and inspect the logical volume".into()),
        parts: Vec::new(),
    })
}

/// A GUID partition table, read with the gpt crate.
#[cfg(feature = "cli")]
fn gpt_table(source: &dyn Source, head: &[u8]) -> Option<Container> {
    let block = [512u64, 4096].into_iter().find(|&size| {
        let at = usize::try_from(size).unwrap_or(usize::MAX);
        head.get(at..).is_some_and(|rest| rest.starts_with(b"EFI PART"))
    })?;
    let name = format!("a disk with a GUID partition table ({block}-byte sectors)");
    let size = if block == 512 { gpt::disk::LogicalBlockSize::Lb512 } else { gpt::disk::LogicalBlockSize::Lb4096 };
    let config = gpt::GptConfig::new().writable(false).logical_block_size(size);
    let disk = match config.open_from_device(Reader { source, at: 0 }) {
        Ok(disk) => disk,
        Err(e) => return Some(Container { name, detail: Some(format!("it cannot be read: {e}")), parts: Vec::new() }),
    };
    let parts = disk
        .partitions()
        .iter()
        .filter_map(|(number, p)| {
            let start = p.first_lba.checked_mul(block)?;
            let length = p.last_lba.checked_add(1)?.checked_mul(block)?.checked_sub(start)?;
            let label: String = p.name.chars().filter(|c| !c.is_control()).collect();
            Some(Part { name: format!("partition {number} \"{label}\""), start, length: Some(length) })
        })
        .collect();
    Some(Container { name, detail: None, parts })
}

#[cfg(not(feature = "cli"))]
fn gpt_table(_: &dyn Source, head: &[u8]) -> Option<Container> {
    let found = [512usize, 4096].iter().any(|&at| head.get(at..).is_some_and(|rest| rest.starts_with(b"EFI PART")));
    found.then(|| Container { name: "a disk with a GUID partition table".into(), detail: None, parts: Vec::new() })
}

/// An MBR partition table: the boot signature, and entries that make sense.
fn mbr(head: &[u8]) -> Option<Container> {
    if head.get(510..512)? != [0x55, 0xaa] {
        return None;
    }
    let entry = |n: usize| head.get(446usize.checked_add(n.checked_mul(16)?)?..)?.get(..16);
    let entries: Vec<&[u8]> = (0..4).filter_map(entry).collect();
    let sane = entries.iter().all(|e| matches!(e.first(), Some(0 | 0x80)));
    let parts: Vec<Part> = (1u32..)
        .zip(&entries)
        .filter(|(_, e)| e.get(4).is_some_and(|&kind| kind != 0))
        .filter_map(|(n, e)| {
            let start = u64::from(le32(e, 8)?).checked_mul(512)?;
            let length = u64::from(le32(e, 12)?).checked_mul(512)?;
            Some(Part { name: format!("partition {n}"), start, length: Some(length) })
        })
        .collect();
    (sane && !parts.is_empty()).then(|| Container {
        name: "a disk with an MBR partition table".into(),
        detail: None,
        parts,
    })
}

/// Bytes before the first one that is not zero, up to `bound`; the whole length if there is none.
pub fn leading_zeros(source: &dyn Source, bound: u64) -> u64 {
    let end = source.len().min(bound);
    let mut at = 0u64;
    while at < end {
        let piece = bytes_at(source, at, 1 << 20);
        if piece.is_empty() {
            break;
        }
        if let Some(n) = piece.iter().position(|&b| b != 0) {
            return at.saturating_add(u64::try_from(n).unwrap_or(0)).min(end);
        }
        at = at.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
    }
    at.min(end)
}

/// A Source as std's Read and Seek, for crates that want those.
#[cfg(feature = "cli")]
#[derive(Clone, Copy)]
struct Reader<'a> {
    source: &'a dyn Source,
    at: u64,
}

#[cfg(feature = "cli")]
impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reader at {}", self.at)
    }
}

#[cfg(feature = "cli")]
impl std::io::Read for Reader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let rest = usize::try_from(self.source.len().saturating_sub(self.at)).unwrap_or(usize::MAX);
        let n = buf.len().min(rest);
        let Some(part) = buf.get_mut(..n) else { return Ok(0) };
        self.source.read_at(ByteOffset(self.at), part)?;
        self.at = self.at.saturating_add(u64::try_from(n).unwrap_or(0));
        Ok(n)
    }
}

#[cfg(feature = "cli")]
impl std::io::Write for Reader<'_> {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem))
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "cli")]
impl std::io::Seek for Reader<'_> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        let target = match to {
            std::io::SeekFrom::Start(n) => Some(n),
            std::io::SeekFrom::End(n) => self.source.len().checked_add_signed(n),
            std::io::SeekFrom::Current(n) => self.at.checked_add_signed(n),
        };
        self.at = target.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MemorySource;
    use super::*;

    fn with_bytes(len: usize, at: usize, bytes: &[u8]) -> MemorySource {
        let mut all = vec![0; len];
        all[at..at + bytes.len()].copy_from_slice(bytes);
        MemorySource::new(all)
    }

    #[test]
    fn names_what_it_knows() {
        let name = |source: &dyn Source| identify(source).map(|c| c.name);
        assert_eq!(name(&with_bytes(4096, 0, b"LUKS\xba\xbe\0\x02")).as_deref(), Some("a LUKS encrypted volume"));
        assert_eq!(name(&with_bytes(4096, 1080, b"\x53\xef")).as_deref(), Some("an ext2, ext3 or ext4 file system"));
        assert_eq!(name(&with_bytes(200_000, 65600, b"_BHRfS_M")).as_deref(), Some("a btrfs file system"));
        assert_eq!(name(&MemorySource::new(vec![0; 100_000])), None);
        assert_eq!(name(&MemorySource::new(vec![])), None);
    }

    #[test]
    fn an_md_member_tells_where_its_data_begin() {
        // As in C54: metadata 1.2, level 1, data offset 2048 sectors.
        let mut sb = vec![0u8; 256];
        sb[0..4].copy_from_slice(&0xa92b_4efcu32.to_le_bytes());
        sb[4] = 1;
        sb[144] = 8;
        sb[72..76].copy_from_slice(&1u32.to_le_bytes());
        sb[92..96].copy_from_slice(&2u32.to_le_bytes());
        sb[128..136].copy_from_slice(&2048u64.to_le_bytes());
        let found = identify(&with_bytes(1 << 20, 4096, &sb)).expect("md");
        assert!(found.name.contains("1.2, level 1"), "{}", found.name);
        assert_eq!(found.parts.first().map(|p| p.start), Some(1_048_576));
    }

    #[test]
    fn an_md_member_that_holds_a_part_has_no_offset() {
        // As in D33: two devices striped, chunk 64 KiB, 0.90 of a little and of a big-endian machine, and 1.0.
        const LEN: usize = 1 << 20;
        let old = |put: fn(u32) -> [u8; 4]| {
            let mut sb = vec![0u8; 4096];
            for (at, value) in [(0, 0xa92b_4efc), (8, 90), (40, 2), (260, 65536)] {
                sb[at..at + 4].copy_from_slice(&put(value));
            }
            with_bytes(LEN, LEN - 65536, &sb)
        };
        let mut sb = vec![0u8; 256];
        for (at, value) in [(0, 0xa92b_4efcu32), (4, 1), (88, 128), (92, 2), (144, (LEN as u32 - 8192) / 512)] {
            sb[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let new = with_bytes(LEN, LEN - 8192, &sb);
        for (source, metadata) in [(old(u32::to_le_bytes), "0.90"), (old(u32::to_be_bytes), "0.90"), (new, "1.0")] {
            let name = format!("a member of an md array (metadata {metadata}, level 0, 2 devices, chunk 64 KiB)");
            let found = identify(&source).expect("md");
            assert_eq!((found.name, found.parts.len()), (name, 0));
            assert!(!md(&source).expect("md").holds_all());
        }
        // A superblock that says it lies elsewhere is none: the device was longer once.
        assert_eq!(identify(&with_bytes(2 * LEN, 2 * LEN - 8192, &sb)), None);
    }

    #[test]
    fn which_arrays_hold_all_on_each_member() {
        let holds =
            |level, disks, layout| MdMember { metadata: "1.0", level, layout, disks, chunk: 0, start: 0 }.holds_all();
        assert!(holds(1, 2, 0) && holds(1, 3, 0) && holds(0, 1, 0) && holds(5, 2, 2) && holds(10, 2, 0x102));
        assert!(!holds(0, 2, 0) && !holds(-1, 2, 0) && !holds(5, 3, 2) && !holds(6, 4, 2));
        assert!(!holds(10, 4, 0x102) && !holds(10, 2, 0x201));
    }

    #[test]
    fn zeros_are_counted() {
        assert_eq!(leading_zeros(&with_bytes(3 << 20, 2_000_000, b"x"), u64::MAX), 2_000_000);
        assert_eq!(leading_zeros(&MemorySource::new(vec![0; 5000]), u64::MAX), 5000);
        assert_eq!(leading_zeros(&MemorySource::new(vec![0; 5000]), 512), 512);
    }
}
