//! Shapes of the file system that are legal or not by release: stripes, block and sector sizes, AGs, and the device.

use super::kernel::{ALWAYS, NEVER, by, v};
use super::{About, Answer, Confidence, Facts, Row, danger, note, refuse};

/// A number of bytes as a person would say it.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let log = bytes.checked_ilog2().unwrap_or(0) / 10;
    let Some(unit) = log.checked_sub(1).and_then(|i| UNITS.get(usize::try_from(i).ok()?)) else {
        return format!("{bytes} bytes");
    };
    let whole = bytes >> (10 * log);
    if bytes == whole << (10 * log) {
        format!("{whole} {unit}")
    } else {
        let tenths = ((u128::from(bytes) * 10) >> (10 * log)) % 10;
        format!("{whole}.{tenths} {unit}")
    }
}

fn stripe(f: &Facts, which: fn(u64, u64) -> bool) -> Answer {
    let (unit, width) = (u64::from(f.sb.unit), u64::from(f.sb.width));
    f.at(which(unit, width), "width", || {
        format!(
            "unit {unit} blocks ({}), width {width} blocks ({})",
            size(unit.saturating_mul(f.block())),
            size(width.saturating_mul(f.block()))
        )
    })
}

const STRIPE: &str = "\"SB stripe unit sanity check failed\" (5.11 and later: \"stripe unit is larger than the stripe width\" or the like), EFSCORRUPTED, read-only too";

/// Shapes that are legal or not by release, and the devices.
/// The row that asks for the device on which an image will lie.
pub(super) const SECTOR: &str = "sector-larger-than-fs-sector";

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "dalign-bit-mismatch",
        refs: "G-09",
        about: About::Kernel,
        title: "stripe unit and its version bit disagree",
        test: |f| {
            let bit = f.sb.versionnum & 0x100 != 0;
            f.at(bit != (f.sb.unit != 0), "versionnum", || format!("versionnum {:#x} {} 0x100 (dalign), unit is {}", f.sb.versionnum, if bit { "has" } else { "lacks" }, f.sb.unit))
        },
        effects: &[
            refuse(v(4, 18), NEVER, "\"SB stripe alignment sanity check failed\", EFSCORRUPTED, read-only too"),
            note(ALWAYS, v(4, 18), "not tested"),
        ],
        explanation: "The bit says that a stripe unit is given. The mount options sunit= and swidth= do not help here.",
        advice: "Clear the bit, or set unit and width, in every superblock with xfs_db.",
        source: "xfs_sb.c in 4.17.0 (no), 4.18.0, 5.11, 7.2; run on four kernels",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d versionnum' with 0x100 added (neighbour: without)",
    },
    Row {
        id: "stripe-geometry-bad",
        refs: "G-10",
        about: About::Kernel,
        title: "stripe unit and width do not fit each other",
        test: |f| stripe(f, |unit, width| (unit > 0 && (width < unit || width % unit != 0)) || (unit == 0 && width > 0)),
        effects: &[refuse(v(4, 18), NEVER, STRIPE), note(ALWAYS, v(4, 18), "not tested: mounts as it is")],
        explanation: "The width must be a multiple of the unit and not 0 where a unit is given. Firmware of some RAID controllers reports \
            impossible pairs, which old mkfs wrote down.",
        advice: "On 6.9 and later (also 6.6.63, 6.12) mount with sunit= and swidth= (in sectors of 512 bytes): the primary is corrected. Otherwise \
            xfs_db write width, or xfs_repair with a good copy.",
        source: "fa4ca9c55746 (4.18), 7bc1fea9d36c (5.11), 15922f5dbf51 (6.9); run on four kernels",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -d su=256k,sw=1, then xfs_db -x -c 'sb 0' -c 'write -d width 0' (neighbour: untouched)",
    },
    Row {
        id: "stripe-width-too-large",
        refs: "G-10",
        about: About::Kernel,
        title: "stripe width of 2 GiB or more",
        test: |f| f.at(u64::from(f.sb.width).saturating_mul(f.block()) > (1 << 31) - 1, "width", || format!("width {} blocks is {}", f.sb.width, size(u64::from(f.sb.width).saturating_mul(f.block())))),
        effects: &[refuse(v(5, 11), NEVER, "\"stripe width is too large\", EFSCORRUPTED, read-only too"), note(ALWAYS, v(5, 11), "not tested")],
        explanation: "5.11 began to compute stripes in bytes, in a signed 32-bit number.",
        advice: "On 6.9 and later mount with sunit= and swidth=; otherwise xfs_db write width.",
        source: "7bc1fea9d36c (5.11)",
        confidence: Confidence::Confirmed,
        fire: "stripe of su=256k, then xfs_db -x -c 'sb 0' -c 'write -d width 1048576' with 4 KiB blocks (neighbour: 64)",
    },
    Row {
        id: "stripe-width-implausible",
        refs: "G-10, C11",
        about: About::Kernel,
        title: "a stripe over very many disks",
        test: |f| {
            let disks = f.sb.width.checked_div(f.sb.unit).unwrap_or(0);
            stripe(f, |unit, width| unit > 0 && width % unit == 0 && width / unit > 256).and(|| {
                format!("unit {} blocks = {} bytes = {} sectors, width {} blocks = {} bytes = {} sectors: {disks} data disks",
                    f.sb.unit, u64::from(f.sb.unit) * f.block(), u64::from(f.sb.unit) * f.block() / 512,
                    f.sb.width, u64::from(f.sb.width) * f.block(), u64::from(f.sb.width) * f.block() / 512)
            })
        },
        effects: &[note(ALWAYS, NEVER, "mounts; allocation is aligned to the wrong size")],
        explanation: "mkfs.xfs -d sunit= and swidth= count sectors of 512 bytes, su= takes bytes and sw= disks, xfs_info prints file system \
            blocks: units are easily mixed up, and some devices report nonsense.",
        advice: "Compare with the array; correct it with the mount options sunit= and swidth=.",
        source: "arithmetic; xfs_sb.c accepts it",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -d sunit=128,swidth=86016 (neighbour: swidth=256)",
    },
    Row {
        id: "agsize-not-stripe-aligned",
        refs: "G-11",
        about: About::Kernel,
        title: "AG size is no multiple of the stripe unit",
        test: |f| {
            let rest = f.sb.agblocks.checked_rem(f.sb.unit).unwrap_or(0);
            f.at(rest != 0, "unit", || format!("agblocks {} leave {rest} over unit {}", f.sb.agblocks, f.sb.unit))
        },
        effects: &[note(ALWAYS, NEVER, "mounts; xfs_repair complains; mounting with sunit= of this size is refused with EINVAL")],
        explanation: "AGs begin in the middle of a stripe unit, so nothing in them is aligned.",
        advice: "Nothing to repair; make the next file system with a fitting agsize.",
        source: "xfs_mount.c:xfs_validate_new_dalign; xfsprogs repair/sb.c",
        confidence: Confidence::Confirmed,
        fire: "stripe of su=64k,sw=2, then xfs_db -x -c 'sb 0' -c 'write -d unit 15' and width 30 (neighbour: 16 and 32)",
    },
    Row {
        id: "block-size-beyond-page",
        refs: "G-05",
        about: About::Kernel,
        title: "blocks larger than a page",
        test: |f| f.at(f.sb.blocksize > 4096 && f.sb.blocksize <= 65536, "blocksize", || format!("blocksize is {}, pages usually have 4096 bytes", f.sb.blocksize)),
        effects: &[
            refuse(ALWAYS, v(6, 12), "\"File system with blocksize ... Only pagesize or less will currently work\", ENOSYS (Function not implemented)").only(|f, k| f.sb.blocksize > k.config.page_size),
            refuse(v(6, 12), NEVER, "\"V4 Filesystem with blocksize ... Only pagesize or less is supported\", ENOSYS").only(|f, k| !f.v5() && f.sb.blocksize > k.config.page_size),
            refuse(v(6, 12), NEVER, "ENOSYS: without CONFIG_TRANSPARENT_HUGEPAGE the page cache has no blocks beyond a page").only(|f, k| f.sb.blocksize > k.config.page_size && !k.config.large_folios),
        ],
        explanation: "Until 6.11 a block had to fit one page of memory, which depends on the machine (4 KiB on x86; 16 or 64 KiB on some ARM, \
            POWER, MIPS). 6.12 lifted that for V5, where large folios exist.",
        advice: "Use 6.12 or later, or a machine with larger pages; --kconfig takes the page size from its configuration.",
        source: "xfs_super.c:xfs_fs_fill_super in 5.10.223, 6.10.0, 6.12.117; run on four kernels",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -b size=65536 (neighbour: 4096)",
    },
    Row {
        id: SECTOR,
        refs: "G-06",
        about: About::Kernel,
        title: "the device has larger sectors than the file system",
        test: |f| match f.logical_sector {
            None => Answer::Unknown(format!("the device is not known: its logical sectors must not exceed sectsize {} (--logical-sector N)", f.sb.sectsize)),
            Some(sector) => f.at(sector > u32::from(f.sb.sectsize), "sectsize", || format!("sectsize is {}, the device has logical sectors of {sector} bytes", f.sb.sectsize)),
        },
        effects: &[refuse(ALWAYS, NEVER, "\"device supports ... byte sectors (not ...)\", ENOSYS (Function not implemented)")],
        explanation: "The superblock and the AG headers are single sectors of the file system; a device that reads and writes larger ones cannot \
            address them. Nothing is damaged.",
        advice: "Present the disk with logical sectors of 512 bytes (the old enclosure, a 512e bridge, a loop device on an image), or copy the data.",
        source: "xfs_mount.c:xfs_readsb, 2.6.32 to 7.2",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -s size=512 asked about with --logical-sector 4096 (neighbour: --logical-sector 512)",
    },
    Row {
        id: "uuid-mounted",
        refs: "G-35",
        about: About::Kernel,
        title: "a file system with this UUID is mounted",
        test: |f| f.at(f.mounted_uuids.contains(&f.sb.uuid), "uuid", || format!("{} is mounted from another device", f.sb.uuid)),
        effects: &[refuse(ALWAYS, NEVER, "\"Filesystem has duplicate UUID ... - can't mount\", EINVAL; with nouuid it mounts")],
        explanation: "A snapshot or copy carries the UUID of its origin, and a kernel mounts only one of them at a time.",
        advice: "Mount it with nouuid, or unmount the origin. Do not change the UUID of a snapshot whose log is dirty.",
        source: "xfs_mount.c:xfs_uuid_mount",
        confidence: Confidence::Confirmed,
        fire: "a snapshot of a mounted volume (neighbour: the origin unmounted)",
    },
    Row {
        id: "device-shorter-than-fs",
        refs: "C04",
        about: About::Kernel,
        title: "the data device ends before the file system does",
        test: |f| {
            let needed = u128::from(f.sb.dblocks.0) * u128::from(f.sb.blocksize);
            let short = f.at(needed > u128::from(f.data_bytes), "dblocks", || format!("{} blocks of {} bytes are {needed} bytes, the device has {}", f.sb.dblocks, f.sb.blocksize, f.data_bytes));
            f.end_of(crate::units::Device::Data, short)
        },
        effects: &[
            danger(v(3, 8), v(3, 9), "mounts: the failed read of the last block is not noticed; what lies behind the end fails with EIO"),
            refuse(ALWAYS, NEVER, "\"last sector read failed\", EIO, with norecovery too"),
        ],
        explanation: "At mount the last block is read, to see that it is there.",
        advice: "Do not repair: make the device as long as the file system first (lvextend, the right partition table, the whole array).",
        source: "xfs_mount.c:xfs_check_sizes; run on 2.6.37 to 7.2 (3.8.13 mounts; 3.9 to 4.3 were not tried)",
        confidence: Confidence::Confirmed,
        fire: "truncate the image by one block (neighbour: whole)",
    },
    Row {
        id: "too-large-for-32bit",
        refs: "G-29",
        about: About::Kernel,
        title: "larger than a 32-bit kernel can address",
        test: |f| {
            let blocks = u128::from(f.sb.dblocks.0.max(f.sb.rblocks.0));
            let bytes = blocks * u128::from(f.sb.blocksize);
            f.at(bytes >> 12 > u128::from(u32::MAX), "dblocks", || format!("the larger section has {bytes} bytes, a 32-bit kernel addresses 2^32 pages (16 TiB with 4 KiB)"))
        },
        effects: &[refuse(ALWAYS, NEVER, "\"file system too large to be mounted on this system\", EFBIG").only(|f, k| {
            let bytes = u128::from(f.sb.dblocks.0.max(f.sb.rblocks.0)) * u128::from(f.sb.blocksize);
            let wraps = u64::try_from(bytes).is_err();
            wraps || (!k.config.bits64 && bytes / u128::from(k.config.page_size.max(1)) > u128::from(u32::MAX))
        })],
        explanation: "The page cache of a 32-bit machine counts pages in 32 bits. On a 64-bit one nothing of this size is refused.",
        advice: "Use a 64-bit kernel.",
        source: "xfs_mount.c:xfs_sb_validate_fsb_count, 2.6.32 to 7.2",
        confidence: Confidence::Confirmed,
        fire: "a data section of 17 TiB (neighbour: 15 TiB)",
    },
    Row {
        id: "sector-4096",
        refs: "G-06",
        about: About::Kernel,
        title: "sectors larger than 512 bytes",
        test: |f| f.at(f.sb.sectsize > 512, "sectsize", || format!("sectsize is {}: AG headers lie that far apart", f.sb.sectsize)),
        effects: &[note(ALWAYS, NEVER, "mounts; tools that look for AG headers at 512, 1024 and 1536 find nothing")],
        explanation: "Superblock, AGF, AGI and AGFL are one sector of the file system each, and checksums cover the whole sector.",
        advice: "Nothing.",
        source: "xfs_format.h:XFS_AGF_DADDR and kin",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -s size=4096 (neighbour: 512)",
    },
    Row {
        id: "many-ags",
        refs: "C21",
        about: About::Kernel,
        title: "very many AGs",
        test: |f| f.at(f.sb.agcount.0 > 400, "agcount", || format!("{} AGs of {}", f.sb.agcount, size(u64::from(f.sb.agblocks).saturating_mul(f.block())))),
        effects: &[note(ALWAYS, NEVER, "mounts; every mount, df and search for free space goes through all AGs: slow, and large files are cut into pieces of an AG")],
        explanation: "The file system was made small and grown much: growfs adds AGs of the first size. mkfs.xfs would choose few large ones.",
        advice: "Copy to a file system made at its final size; in images that grow at first boot, make it larger to begin with.",
        source: "threshold of the field: Fedora CoreOS counts more than 400 as unhealthy",
        confidence: Confidence::Reported,
        fire: "mkfs.xfs -d agsize=16m on 8 GiB (neighbour: 1 GiB)",
    },
    Row {
        id: "timestamps-end-2038",
        refs: "G-28",
        about: About::Kernel,
        title: "timestamps end in January 2038",
        test: |f| f.at(!f.incompat(8), "features_incompat", || "no bigtime: times from 1901-12-13 to 2038-01-19T03:14:07Z".into()),
        effects: &[
            note(ALWAYS, v(5, 4), "later times wrap to 1901"),
            note(v(5, 4), NEVER, "later times are cut to 2038-01-19"),
        ],
        explanation: "Seconds are kept in a signed 32-bit number. V5 can be upgraded, V4 cannot.",
        advice: "xfs_admin -O bigtime=1 on V5 (5.10 and later mount it then).",
        source: "xfs_super.c: s_time_max in 5.4.0, not in 5.0.0",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -m bigtime=0 (neighbour: bigtime=1)",
    },
    Row {
        id: "sparse-inode-runt-ag",
        refs: "G-25, C22",
        about: About::Kernel,
        title: "sparse inode chunks and a last AG that ends within one",
        test: |f| {
            let (last, align) = (f.last_ag_blocks(), u64::from(f.sb.inoalignmt.0));
            let rest = last.checked_rem(align).unwrap_or(0);
            let runt = f.v5() && f.incompat(2) && last < u64::from(f.sb.agblocks) && rest != 0;
            f.at(runt, "dblocks", || format!("the last AG has {last} blocks, {rest} over inoalignmt {align}"))
        },
        effects: &[
            note(v(6, 4), NEVER, "if an inode record reaches past the end of that AG, allocating inodes there fails with EFSCORRUPTED; whether one does was not looked at"),
            note(v(4, 2), v(6, 13), "may write an inode record that reaches past the end of that AG, which 6.4 and later refuse").fixed(&[by(6, 12, 117)]),
        ],
        explanation: "Kernels before 6.13 (6.12.7 by its review date) may allocate a sparse chunk at the very end of a short AG, whose record then \
            covers inodes past the end; 6.4 and later treat such a record as corrupt.",
        advice: "Run check; grow the file system to the AG boundary.",
        source: "13325333582d (6.13); xfs_ialloc.c:xfs_inobt_check_irec (6.2.1 no, 6.4.6 yes)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -d agcount=4 with a size that leaves the last AG no multiple of 8 blocks (neighbour: a multiple)",
    },
];

impl Answer {
    /// The same answer with another text where it fires.
    fn and(self, text: impl FnOnce() -> String) -> Self {
        match self {
            Self::Yes(evidence) => Self::Yes(super::Evidence { text: text(), ..evidence }),
            other => other,
        }
    }
}
