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
    const MAGIC: u32 = 0xa92b_4efc;
    let end = source.len();
    let at_1_0 = end.checked_sub(8192).map(|at| at & !4095);
    let at_0_90 = (end & !65535).checked_sub(65536);
    let (minor, sb) = if le32(head, 4096) == Some(MAGIC) {
        ("1.2", head.get(4096..)?.to_vec())
    } else if le32(head, 0) == Some(MAGIC) {
        ("1.1", head.to_vec())
    } else if let Some(sb) = at_1_0.map(|at| bytes_at(source, at, 4096)).filter(|b| le32(b, 0) == Some(MAGIC)) {
        ("1.0", sb)
    } else if let Some(sb) = at_0_90.map(|at| bytes_at(source, at, 4096)).filter(|b| le32(b, 0) == Some(MAGIC)) {
        ("0.90", sb)
    } else {
        return None;
    };
    let old = minor == "0.90";
    let level = le32(&sb, if old { 28 } else { 72 })?.cast_signed();
    let disks = le32(&sb, if old { 40 } else { 92 })?;
    let start = if old { 0 } else { le64(&sb, 128)?.checked_mul(512)? };
    let whole = if level == 1 || disks <= 1 {
        "each member of a mirror holds all of it"
    } else {
        "only a part of the data lies on this member, so the offset alone is not enough"
    };
    Some(Container {
        name: format!("a member of an md array (metadata {minor}, level {level}, {disks} devices)"),
        detail: Some(format!("inspect the array (/dev/mdX); data begin at byte {start}: {whole}")),
        parts: vec![Part { name: "md data".into(), start, length: None }],
    })
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
        sb[72..76].copy_from_slice(&1u32.to_le_bytes());
        sb[92..96].copy_from_slice(&2u32.to_le_bytes());
        sb[128..136].copy_from_slice(&2048u64.to_le_bytes());
        let found = identify(&with_bytes(1 << 20, 4096, &sb)).expect("md");
        assert!(found.name.contains("1.2, level 1"), "{}", found.name);
        assert_eq!(found.parts.first().map(|p| p.start), Some(1_048_576));
    }

    #[test]
    fn zeros_are_counted() {
        assert_eq!(leading_zeros(&with_bytes(3 << 20, 2_000_000, b"x"), u64::MAX), 2_000_000);
        assert_eq!(leading_zeros(&MemorySource::new(vec![0; 5000]), u64::MAX), 5000);
        assert_eq!(leading_zeros(&MemorySource::new(vec![0; 5000]), 512), 512);
    }
}
