//! The realtime section: what each release tests of it at mount, what goes wrong later, and what cannot be used with it.

use super::geometry::size;
use super::kernel::{ALWAYS, NEVER, by, since, v, v26};
use super::{About, Answer, Confidence, Facts, Modes, Row, Severity, Stable, danger, effect, note, refuse};

/// cf8f0e6c1429 and kin (6.8): the log2 of the extents in 64 bits, no section without an extent.
const LOG64: &[Stable] = &[since(6, 6, 24), since(6, 1, 132)];

fn high_bit(value: u64) -> Option<u32> {
    value.checked_ilog2()
}

/// Why the geometry is wrong by the test of 6.8 and later.
fn mismatch(f: &Facts) -> Option<(&'static str, String)> {
    let sb = &f.sb;
    let extents = sb.rextents.0;
    if !f.rt() {
        let clean = extents == 0 && sb.rbmblocks.0 == 0 && sb.rextslog == 0 && sb.frextents == 0;
        let text = format!(
            "rblocks is 0, but rextents {extents}, rbmblocks {}, rextslog {}, frextents {}",
            sb.rbmblocks, sb.rextslog, sb.frextents
        );
        return (!clean).then_some(("rextents", text));
    }
    let right = sb.rblocks.0.checked_div(sb.rextsize.into())?;
    if extents != right || extents == 0 {
        return Some((
            "rextents",
            format!("rextents is {extents}, rblocks {} / rextsize {} is {right}", sb.rblocks, sb.rextsize),
        ));
    }
    let log = high_bit(extents)?;
    if u32::from(sb.rextslog) != log {
        return Some(("rextslog", format!("rextslog is {}, log2 of {extents} is {log}", sb.rextslog)));
    }
    let metadir = f.features.has_metadir();
    let (bits, covered) = if metadir {
        (f.block().saturating_sub(48).saturating_mul(8), u64::from(sb.rgextents))
    } else {
        (f.bits_per_block(), extents)
    };
    let bitmap = if f.features.has_zoned() { 0 } else { covered.div_ceil(bits.max(1)) };
    (u64::from(sb.rbmblocks.0) != bitmap)
        .then(|| ("rbmblocks", format!("rbmblocks is {}, {covered} extents need {bitmap}", sb.rbmblocks)))
}

/// Is it wrong by the test of 5.7 to 6.7, which takes the log2 of the low 32 bits?
fn old_mismatch(f: &Facts) -> bool {
    let sb = &f.sb;
    let extents = sb.rextents.0;
    if !f.rt() {
        return mismatch(f).is_some();
    }
    let low = extents & u64::from(u32::MAX);
    sb.rblocks.0.checked_div(sb.rextsize.into()) != Some(extents)
        || high_bit(low) != Some(u32::from(sb.rextslog))
        || u64::from(sb.rbmblocks.0) != extents.div_ceil(f.bits_per_block().max(1))
}

fn truncated_log(f: &Facts) -> bool {
    high_bit(f.sb.rextents.0 & u64::from(u32::MAX)) == Some(u32::from(f.sb.rextslog))
}
fn right_log(f: &Facts) -> bool {
    high_bit(f.sb.rextents.0) == Some(u32::from(f.sb.rextslog))
}

/// The kernel multiplies in 32 bits.
fn wrapped_extent(f: &Facts) -> u64 {
    f.rt_extent_bytes() & u64::from(u32::MAX)
}
fn extent_fits(bytes: u64) -> bool {
    (4096..=1 << 30).contains(&bytes)
}

/// Blocks of the summary file.
fn summary_blocks(f: &Facts) -> u64 {
    let levels = u64::from(f.sb.rextslog).saturating_add(1);
    (4 * levels).saturating_mul(f.sb.rbmblocks.0.into()).div_ceil(f.block().max(1))
}

/// Bitmap blocks that one allocation may change.
fn allocation_blocks(f: &Facts) -> u64 {
    let most = u64::from((1u32 << 21) - 1).checked_div(f.sb.rextsize.into()).unwrap_or(0);
    most.min(f.sb.rextents.0).div_ceil(f.bits_per_block().max(1)).saturating_add(1)
}

fn groups(f: &Facts) -> Option<(&'static str, String)> {
    let sb = &f.sb;
    if !f.v5() || !f.features.has_metadir() {
        return None;
    }
    if sb.pad != 0 || sb.pad_rest != [0; 6] {
        return Some(("pad", "the padding behind rgblklog is not zero".into()));
    }
    let most = ((1u32 << 31) - 1).checked_div(sb.rextsize).unwrap_or(0);
    if !(2..=most).contains(&sb.rgextents) {
        return Some(("rgextents", format!("rgextents is {}, must be 2 to {most}", sb.rgextents)));
    }
    let count = sb.rextents.0.div_ceil(sb.rgextents.into());
    if u64::from(sb.rgcount) != count {
        return Some((
            "rgcount",
            format!("rgcount is {}, rextents {} need {count} groups of {}", sb.rgcount, sb.rextents, sb.rgextents),
        ));
    }
    if !f.incompat(0x40) {
        return Some((
            "features_incompat",
            format!("features_incompat {:#x} has metadir without exchange (0x40)", f.features.incompat),
        ));
    }
    let blocks = u64::from(sb.rgextents).saturating_mul(sb.rextsize.into());
    let log = high_bit(blocks.saturating_sub(1)).map_or(0, |bit| bit.saturating_add(1));
    (u32::from(sb.rgblklog) != log)
        .then(|| ("rgblklog", format!("rgblklog is {}, {blocks} blocks of a group need {log}", sb.rgblklog)))
}

/// What is wrong with a zoned section, apart from missing metadir.
fn zoned(f: &Facts) -> Option<(&'static str, String)> {
    let sb = &f.sb;
    let (start, reserved) = f.zoned;
    if !f.v5() || !f.features.has_zoned() {
        return None;
    }
    let rest = sb.rextents.0.checked_rem(sb.rgextents.into()).unwrap_or(0);
    let tests = [
        (sb.frextents != 0, "frextents", format!("frextents is {}, must be 0", sb.frextents)),
        (start != 0 && start < sb.dblocks.0, "rblocks", format!("rtstart is {start}, dblocks {}", sb.dblocks)),
        (
            reserved != 0 && reserved >= sb.rblocks.0,
            "rblocks",
            format!("rtreserved is {reserved}, rblocks {}", sb.rblocks),
        ),
        (
            f.ro_compat(4),
            "features_ro_compat",
            format!("features_ro_compat {:#x} has reflink (0x4)", f.features.ro_compat),
        ),
        (sb.rextsize != 1, "rextsize", format!("rextsize is {}, must be 1", sb.rextsize)),
        (sb.rbmblocks.0 != 0, "rbmblocks", format!("rbmblocks is {}, must be 0", sb.rbmblocks)),
        (
            f.rt() && f.features.has_metadir() && rest != 0,
            "rextents",
            format!("rextents {} leave {rest} over rgextents {}", sb.rextents, sb.rgextents),
        ),
        (
            !f.ro_compat(2),
            "features_ro_compat",
            format!("features_ro_compat {:#x} lacks rmapbt (0x2)", f.features.ro_compat),
        ),
        (f.features.has_metadir() && sb.rgcount < 5, "rgcount", format!("{} zones, 5 are needed", sb.rgcount)),
    ];
    tests.into_iter().find_map(|(bad, field, text)| bad.then_some((field, text)))
}

fn found(f: &Facts, found: Option<(&'static str, String)>) -> Answer {
    match found {
        Some((field, text)) => f.at(true, field, || text),
        None => Answer::No,
    }
}

/// Are the inode numbers of bitmap and summary in the superblock out of use (realtime groups, zones)?
fn grouped(f: &Facts) -> bool {
    f.features.has_metadir() || f.features.has_zoned()
}

/// Inode numbers of bitmap and summary that lead nowhere.
fn lost_inode(f: &Facts) -> Answer {
    let shift = u32::from(f.sb.agblklog).saturating_add(u32::from(f.sb.inopblog));
    for (field, ino) in [("rbmino", f.sb.rbmino), ("rsumino", f.sb.rsumino)] {
        let outside = ino.0.checked_shr(shift).unwrap_or(0) >= u64::from(f.sb.agcount.0);
        if !f.copy && !grouped(f) && !ino.is_null() && (ino.0 == 0 || outside) {
            return f.at(true, field, || format!("{field} is {ino}: no such inode"));
        }
    }
    Answer::No
}

/// One fault is enough, whatever else could not be looked at.
fn realtime_superblock(f: &Facts) -> Answer {
    if !f.rt() || !f.features.has_metadir() || f.features.has_zoned() {
        return Answer::No;
    }
    match (&f.deep, f.rt_bytes) {
        (_, None) => Answer::Unknown("no --rtdev was given".into()),
        (None, _) => Answer::Unknown("not looked at yet: the first block of the realtime device decides".into()),
        (Some(deep), _) if deep.rt_superblock.is_met() => f.deep("", |deep| &deep.rt_superblock),
        (Some(_), _) => Answer::No,
    }
}

fn null_inode(f: &Facts) -> Answer {
    let null = f.sb.rbmino.is_null() || f.sb.rsumino.is_null();
    f.at(!f.copy && !grouped(f) && null, "rbmino", || {
        format!("rbmino {:#x}, rsumino {:#x}", f.sb.rbmino.0, f.sb.rsumino.0)
    })
}

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "rt-none",
        refs: "C58",
        about: About::Kernel,
        title: "no realtime section",
        test: |f| f.at(!f.rt(), "rblocks", || "no realtime section (rblocks, rextents, rbmblocks, rextslog all 0)".into()),
        effects: &[note(ALWAYS, NEVER, "files cannot be realtime: setting the flag is refused, and the realtime allocator cannot be reached")],
        explanation: "Every hazard of realtime files needs a realtime section. rextsize is always set, also without one.",
        advice: "If one is to be added: not for kernels 3.2 to 3.5 (rt-uninitialised-nmap), and for kernels before 5.10 not in a size that is a \
            multiple of 8 x blocksize x extent size (rt-bitmap-end-scan).",
        source: "xfs_ioctl.c (rblocks is tested before the flag is set), 3.6.0 to 7.2",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs without -r rtdev= (neighbour: with)",
    },
    Row {
        id: "kernel-without-xfs",
        refs: "C58",
        about: About::Kernel,
        title: "a kernel built without XFS",
        test: |f| f.at(true, "magicnum", || "an XFS file system".into()),
        effects: &[refuse(ALWAYS, NEVER, "\"unknown filesystem type 'xfs'\", ENODEV").only(|_, k| !k.config.xfs)],
        explanation: "CONFIG_XFS_FS is not set in the configuration given.",
        advice: "Use another kernel, or build the module.",
        source: "fs/xfs/Kconfig",
        confidence: Confidence::Confirmed,
        fire: "any image, with --kconfig FILE that has no CONFIG_XFS_FS (neighbour: without --kconfig)",
    },
    Row {
        id: "kernel-without-rt",
        refs: "RT-01, C58",
        about: About::Kernel,
        title: "a realtime section, and a kernel built without it",
        test: |f| f.at(f.rt(), "rblocks", || format!("a realtime section of {} blocks", f.sb.rblocks)),
        effects: &[refuse(ALWAYS, NEVER, "\"Not built with CONFIG_XFS_RT\", ENOSYS (Function not implemented), with norecovery too").only(|_, k| !k.config.rt)],
        explanation: "CONFIG_XFS_RT is not set in the configuration given. Distributions differ: Debian and Ubuntu build it.",
        advice: "Use a kernel built with CONFIG_XFS_RT.",
        source: "xfs_rtalloc.h:xfs_rtmount_init, all releases; run on a 6.18 kernel without it",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -r rtdev=R asked about with --kconfig FILE that says # CONFIG_XFS_RT is not set (neighbour: without --kconfig)",
    },
    Row {
        id: "rt-device-needed",
        refs: "RT-02",
        about: About::Kernel,
        title: "the realtime section lies on another device",
        test: |f| f.at(f.rt() && !f.internal_rt() && f.rt_bytes.is_none(), "rblocks", || format!("{} blocks on a realtime device; no --rtdev was given", f.sb.rblocks)),
        effects: &[note(ALWAYS, NEVER, "mounts with rtdev= only, else \"Filesystem has a realtime volume, use rtdev=device option\", ENODEV; the verdict is for a mount with it")],
        explanation: "The mount option rtdev= names the device, read-only and with norecovery too.",
        advice: "Give it with --rtdev to have its size looked at, and mount with rtdev=.",
        source: "xfs_rtalloc.c:xfs_rtmount_init, all releases; run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -r rtdev=R asked about without --rtdev (neighbour: with)",
    },
    Row {
        id: "rt-device-is-other-device",
        refs: "RT-23",
        about: About::Kernel,
        title: "the realtime device is the data or the log device",
        test: |f| f.at(f.same.rt_data || f.same.rt_log, "rblocks", || format!("rtdev= names the {} device", if f.same.rt_data { "data" } else { "log" })),
        effects: &[refuse(ALWAYS, NEVER, "\"Cannot mount filesystem with identical rtdev and ddev/logdev\", EINVAL")],
        explanation: "Data, log and realtime section need devices of their own.",
        advice: "Name the device that the realtime section is on.",
        source: "xfs_super.c:xfs_open_devices",
        confidence: Confidence::Inferred,
        fire: "any image with a realtime section, and rtdev= the data device (neighbour: its own)",
    },
    Row {
        id: "rt-sector-larger",
        refs: "RT-24",
        about: About::Kernel,
        title: "the realtime device has larger sectors than the file system",
        test: |f| f.at(
            f.rt() && !f.internal_rt() && f.rt_sector.is_some_and(|sector| sector > u32::from(f.sb.sectsize)),
            "sectsize",
            || format!("sectsize is {}, the realtime device has logical sectors of {} bytes", f.sb.sectsize, f.rt_sector.unwrap_or(0)),
        ),
        effects: &[refuse(ALWAYS, NEVER, "\"Cannot use blocksize ... on device\" (before 6.12 \"Cannot set_blocksize\"), EINVAL")],
        explanation: "The sectors of the file system are those of its data device, and are used on the realtime device, too.",
        advice: "Put the section on a device with logical sectors no larger than the file system's.",
        source: "xfs_super.c:xfs_setup_devices; run on 6.1 and 7.2",
        confidence: Confidence::Confirmed,
        fire: "a realtime device copied to a disk with logical sectors of 4096 (neighbour: of 512)",
    },
    Row {
        id: "rt-device-internal",
        refs: "RT-02",
        about: About::Kernel,
        title: "a realtime device was named, but the section lies on the data device",
        test: |f| f.at(f.internal_rt() && f.rt_bytes.is_some(), "rtstart", || format!("rtstart is {}: the section lies inside, --rtdev names another", f.zoned.0)),
        effects: &[refuse(v(6, 15), NEVER, "\"can't use internal and external rtdev at the same time\", EINVAL")],
        explanation: "A zoned section that begins behind the data section takes no device of its own.",
        advice: "Mount without rtdev=.",
        source: "xfs_super.c:xfs_setup_devices (7.2)",
        confidence: Confidence::Inferred,
        fire: "any zoned image with an internal section asked about with --rtdev (neighbour: without)",
    },
    Row {
        id: "rt-superblock-bad",
        refs: "RT-22",
        about: About::Kernel,
        title: "the realtime device belongs to another file system, or its superblock is damaged",
        test: realtime_superblock,
        effects: &[refuse(v(6, 13), NEVER, "\"realtime superblock ... failed\": EFSCORRUPTED or EINVAL, with norecovery too")],
        explanation: "With realtime groups the first block of the realtime device says whose it is: label and uuids must be the superblock's. \
            Without groups nothing on the device tells.",
        advice: "Name the right device; where it is the right one, xfs_repair writes the block anew.",
        source: "xfs_sb.c:xfs_rtsb_verify_all, xfs_rtalloc.c:xfs_rtmount_readsb (7.2)",
        confidence: Confidence::Inferred,
        fire: "the realtime device of another file system with realtime groups",
    },
    Row {
        id: "rt-device-short",
        refs: "RT-03",
        about: About::Kernel,
        title: "the realtime device ends before the section does",
        test: |f| {
            let start = if f.internal_rt() { f.zoned.0 } else { 0 };
            let needed = (u128::from(f.sb.rblocks.0) + u128::from(start)) * u128::from(f.sb.blocksize);
            let bytes = if f.internal_rt() { Some(f.data_bytes) } else { f.rt_bytes };
            match bytes {
                _ if !f.rt() => Answer::No,
                None => Answer::Unknown("no --rtdev was given".into()),
                Some(bytes) => {
                    let short = f.at(needed > u128::from(bytes), "rblocks", || format!("the section ends at byte {needed}, the device at {bytes}"));
                    f.end_of(crate::units::Device::Rt, short)
                }
            }
        },
        effects: &[refuse(ALWAYS, NEVER, "\"realtime device size check failed\" (7.2: \"cannot read last RT device sector\"), EIO, with norecovery too")],
        explanation: "At mount the last block of the section is read, to see that it is there.",
        advice: "Name the right device, or make it as long as the section.",
        source: "xfs_rtalloc.c:xfs_rt_check_size; run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -r rtdev=R, then R cut by 1 MiB (neighbour: whole)",
    },
    Row {
        id: "rt-extent-size-range",
        refs: "RT-04",
        about: About::Kernel,
        title: "realtime extents below 4 KiB or above 1 GiB",
        test: |f| f.at(!extent_fits(wrapped_extent(f)), "rextsize", || format!("rextsize {} x blocksize {} is {} bytes ({} in 32 bits)", f.sb.rextsize, f.sb.blocksize, f.rt_extent_bytes(), wrapped_extent(f))),
        effects: &[refuse(ALWAYS, NEVER, "\"SB sanity check failed\", EFSCORRUPTED, without a realtime section too")],
        explanation: "The size is tested whether there is a realtime section or not.",
        advice: "Compare the copies.",
        source: "xfs_mount.c:xfs_mount_validate_sb (2.6.36), xfs_sb.c:xfs_validate_rt_geometry (7.2); run on four kernels",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d rextsize 524288' with 4 KiB blocks: 2 GiB (neighbour: 262144, 1 GiB)",
    },
    Row {
        id: "rt-extent-size-wraps",
        refs: "RT-04",
        about: About::Kernel,
        title: "a realtime extent size that only fits because the kernel multiplies in 32 bits",
        test: |f| f.at(extent_fits(wrapped_extent(f)) && !extent_fits(f.rt_extent_bytes()), "rextsize", || format!("rextsize {} x blocksize {} is {} bytes, but {} in 32 bits", f.sb.rextsize, f.sb.blocksize, f.rt_extent_bytes(), wrapped_extent(f))),
        effects: &[note(ALWAYS, NEVER, "mounts: the product wraps into the range that is allowed")],
        explanation: "Nothing sensible can be in a section of such extents; without one it does no harm.",
        advice: "Compare the copies; check calls it damage.",
        source: "run on 5.10, 6.1, 6.12, 7.2: all of them mount it",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d rextsize 1048577' with 4 KiB blocks (neighbour: 1)",
    },
    Row {
        id: "rt-geometry-mismatch",
        refs: "P4, RT-09",
        about: About::Kernel,
        title: "realtime figures of the superblock disagree",
        test: |f| found(f, mismatch(f)),
        effects: &[
            refuse(v(6, 8), NEVER, "\"realtime geometry check failed\", EFSCORRUPTED").also(LOG64),
            refuse(v(5, 7), v(6, 8), "\"realtime geometry sanity check failed\", EFSCORRUPTED").fixed(LOG64).only(|f, _| old_mismatch(f)),
            danger(ALWAYS, v(5, 7), "mounts; allocating or freeing realtime space goes past the bitmap or summary file: null pointer oops in _xfs_buf_find on 2.6.37 to 3.7 where agblocks is (nearly) a power of two, else EIO or EFSCORRUPTED and shutdown")
                .only(|f, _| f.rt() && f.sb.rextents.0 > 0),
            note(ALWAYS, v(5, 7), "not tested"),
        ],
        explanation: "rextents must be rblocks / rextsize, rextslog the log2 of rextents, rbmblocks the blocks of a bitmap with a bit for each extent; \
            without a section all of them are 0. 5.7 began to test that.",
        advice: "Compare the copies; xfs_repair takes a good one.",
        source: "f8e566c0f5e1 (5.7: 5.4.286 no, 5.7.14 yes); a6a38f309afc and kin (6.8, 6.6.24, 6.1.132); run on four kernels",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d rextslog 12' where 11 is right (neighbour: 11)",
    },
    Row {
        id: "rt-runt",
        refs: "RT-10, C33",
        about: About::Kernel,
        title: "a realtime section shorter than one extent",
        test: |f| f.at(f.rt() && f.sb.rblocks.0 < u64::from(f.sb.rextsize), "rblocks", || format!("rblocks {} is less than rextsize {}", f.sb.rblocks, f.sb.rextsize)),
        effects: &[
            refuse(v(6, 8), NEVER, "\"realtime geometry check failed\", EFSCORRUPTED").also(LOG64),
            refuse(v(5, 7), v(6, 8), "\"realtime geometry sanity check failed\", EFSCORRUPTED").fixed(LOG64),
            note(ALWAYS, v(5, 7), "mounts; no realtime file can be written (ENOSPC)"),
        ],
        explanation: "No realtime data can be in it. 5.7 to 6.7 refuse it by accident (the log2 of 0 fits no field), later releases on purpose.",
        advice: "Set rblocks, rextents, rbmblocks, rextslog and frextents to 0 in every superblock, or make it with a larger device or smaller extents.",
        source: "e14293803f4e (6.8, 6.6.24, 6.1.132); run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db: rblocks 90, rextsize 256 in every superblock (neighbour: rblocks 0)",
    },
    Row {
        id: "rt-extents-over-32bit",
        refs: "RT-11, C32",
        about: About::Kernel,
        title: "2^32 realtime extents or more",
        test: |f| f.at(f.rt() && f.sb.rextents.0 >> 32 != 0, "rextslog", || {
            let right = high_bit(f.sb.rextents.0).unwrap_or(0);
            format!("{} extents: rextslog is {}, {right} is right", f.sb.rextents, f.sb.rextslog)
        }),
        effects: &[
            danger(ALWAYS, v(6, 8), "mounts: the summary file is too short for the longest runs of free extents, so filing one fails: EFSCORRUPTED or EIO, shutdown")
                .fixed(LOG64)
                .only(|f, _| truncated_log(f) && !right_log(f)),
            refuse(v(5, 7), v(6, 8), "\"realtime geometry sanity check failed\", EFSCORRUPTED: the log2 of the low 32 bits is expected").fixed(LOG64).only(|f, _| !truncated_log(f)),
            note(ALWAYS, v(5, 7), "mounts; growing the section on this kernel writes a wrong rextslog"),
        ],
        explanation: "mkfs and kernels before 6.8 took the log2 of the low 32 bits of the number of extents, which decides how many levels the \
            summary has. Later kernels expect it of all 64 bits and refuse the old figure (rt-geometry-mismatch).",
        advice: "Larger realtime extents give fewer of them. To use such a section take 6.8 or later with the right rextslog.",
        source: "cf8f0e6c1429, a6a38f309afc (6.8, 6.6.24, 6.1.132); run on 5.10, 6.1, 6.12, 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db: rblocks and rextents 4294967312, rbmblocks 131073, rextslog 4 (neighbour: rextents 16, rextslog 4, rbmblocks 1)",
    },
    Row {
        id: "rt-reflink",
        refs: "RT-07, C57",
        about: About::Kernel,
        title: "shared extents and a realtime section",
        test: |f| f.at(f.rt() && f.ro_compat(4), "features_ro_compat", || {
            let how = if f.features.has_metadir() { "with realtime groups" } else { "without realtime groups" };
            format!("features_ro_compat {:#x} has 0x4 (reflink), a realtime section {how}, rextsize {}", f.features.ro_compat, f.sb.rextsize)
        }),
        effects: &[
            refuse(v(4, 16), v(6, 14), "\"reflink not compatible with realtime device!\", EINVAL, read-only too"),
            refuse(v(6, 14), NEVER, "\"reflink not compatible with realtime extent size ...!\" or \"with zoned\", EINVAL, read-only too")
                .only(|f, _| !f.features.has_metadir() || f.sb.rextsize != 1 || f.features.has_zoned()),
            note(v(4, 9), v(4, 16), "mounts: not tested; realtime files cannot share extents"),
        ],
        explanation: "Shared realtime extents need realtime groups (metadir), extents of one block, and 6.14 or later.",
        advice: "Make it with -m reflink=0, or with -m metadir=1,reflink=1 and one-block extents for 6.14 and later.",
        source: "xfs_super.c:xfs_fs_fill_super in 4.14.5 (none), 4.16.13, 6.13.2, 6.14.0, 7.2.13; run on four kernels",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d features_ro_compat' with 4 added on a classic section (neighbour: without)",
    },
    Row {
        id: "rt-rmap",
        refs: "RT-08, F-16",
        about: About::Kernel,
        title: "reverse mapping and a realtime section",
        test: |f| f.at(f.rt() && f.ro_compat(2), "features_ro_compat", || format!("features_ro_compat {:#x} has 0x2 (rmapbt), and there is a realtime section", f.features.ro_compat)),
        effects: &[refuse(v(4, 8), v(6, 14), "\"reverse mapping btree not compatible with realtime device!\", EINVAL, read-only too")],
        explanation: "Until 6.13 a kernel with reverse mapping could not have a realtime section; mkfs turned it off.",
        advice: "Make it with -m rmapbt=0, or use 6.14 or later.",
        source: "xfs_super.c:xfs_fs_fill_super in 4.9.45 to 6.13.2, none in 6.14.0; run on four kernels",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d features_ro_compat' with 2 added on a classic section (neighbour: without)",
    },
    Row {
        id: "rt-inode-number",
        refs: "RT-25",
        about: About::Kernel,
        title: "bitmap or summary inode number leads nowhere",
        test: lost_inode,
        effects: &[refuse(ALWAYS, NEVER, "\"failed to read RT inodes\", EINVAL (7.2: \"metadata inode ... is corrupt\", EFSCORRUPTED), without a realtime section too")],
        explanation: "Both inodes are loaded at mount whether there is a realtime section or not.",
        advice: "xfs_repair sets them again.",
        source: "xfs_rtalloc.c:xfs_rtmount_inodes, 2.6.36 to 7.2; run on four kernels, with and without a section",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d rbmino 0' (neighbour: untouched)",
    },
    Row {
        id: "rt-inode-null",
        refs: "RT-25",
        about: About::Kernel,
        title: "no bitmap or summary inode",
        test: null_inode,
        effects: &[
            refuse(v(5, 4), NEVER, "\"failed to read RT inodes\", EINVAL (7.2: EFSCORRUPTED), without a realtime section too").also(&[by(4, 19, 222), by(4, 9, 337)]),
            danger(ALWAYS, v(5, 4), "mounts without them; the first realtime allocation or free dereferences a null pointer").only(|f, _| f.rt()),
            note(ALWAYS, v(5, 4), "mounts: without a realtime section they are not needed"),
        ],
        explanation: "Older kernels skip a bitmap inode of all ones and then use the pointer that was never set. From some release between 4.20 and \
            5.4 on, and in later stable releases of 4.9 and 4.19, they try to load it and fail.",
        advice: "xfs_repair sets them again.",
        source: "xfs_rtalloc.c:xfs_rtmount_inodes in 4.9.45, 4.19.40 (skips), 4.9.337, 4.19.222, 5.4.286 (does not); run on four kernels",
        confidence: Confidence::Confirmed,
        fire: "eight bytes of 0xff at byte 64 of sector 0, checksum mended (neighbour: untouched)",
    },
    Row {
        id: "rtgroups-geometry",
        refs: "RT-22",
        about: About::Kernel,
        title: "figures of realtime groups disagree",
        test: |f| found(f, groups(f)),
        effects: &[refuse(v(6, 13), NEVER, "EINVAL (wrong fs type), e.g. \"Realtime groups do not cover the entire rt section\"")],
        explanation: "Size, number and shift of the groups follow from each other, and exchange-range must be there.",
        advice: "Compare the copies.",
        source: "xfs_sb.c:xfs_validate_sb_rtgroups (6.13.2, 7.2); run on 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d rgblklog 15' where 14 is right (neighbour: 14)",
    },
    Row {
        id: "zoned-geometry",
        refs: "RT-23",
        about: About::Kernel,
        title: "figures of a zoned section disagree",
        test: |f| found(f, zoned(f)),
        effects: &[refuse(v(6, 15), NEVER, "EINVAL or EFSCORRUPTED, e.g. \"sb_frextents must be zero for zoned file systems\"")],
        explanation: "A zoned section has no bitmap and no count of free extents, whole zones only, at least five of them, extents of one block, reverse \
            mapping, no shared extents, and lies behind the data section where it has no device of its own. The least number of \
            zones is 7.2's; 6.15 to 7.1 were not seen.",
        advice: "Compare the copies.",
        source: "xfs_sb.c:xfs_validate_sb_zoned, xfs_validate_rt_geometry, xfs_zone_alloc.c:xfs_mount_zones (7.2); run on 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d frextents 1' on a zoned image (neighbour: 0)",
    },
    Row {
        id: "zoned-without-metadir",
        refs: "RT-23",
        about: About::Kernel,
        title: "zoned without realtime groups",
        test: |f| f.at(f.v5() && f.features.has_zoned() && !f.features.has_metadir(), "features_incompat", || format!("features_incompat {:#x} has 0x200 (zoned) without 0x100 (metadir)", f.features.incompat)),
        effects: &[
            effect(v(6, 15), NEVER, Severity::Danger, Modes::ALL, "the mount itself oopses: a division by zero in xfs_validate_rt_geometry, read-only and with norecovery too")
                .only(|f, _| f.rt() && zoned(f).is_none_or(|(field, _)| field == "features_ro_compat") && mismatch(f).is_none()),
            refuse(v(6, 15), NEVER, "EINVAL or EFSCORRUPTED"),
        ],
        explanation: "Without realtime groups the number of extents per group counts as 0, and the test of whole zones divides by it before the test \
            that would have said what is missing. Run on 7.2; 6.15 to 7.1 were not seen and are counted as the same.",
        advice: "Do not attach this image to a machine that mounts by itself. Compare the copies.",
        source: "xfs_sb.c:xfs_validate_rt_geometry (7.2.13); run on 7.2.13, twice",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d features_incompat 0x2eb' on a zoned image (neighbour: 0x3eb)",
    },
    Row {
        id: "rt-allocation-reservation",
        refs: "RT-15, C42",
        about: About::Kernel,
        title: "one realtime allocation can change many bitmap blocks",
        test: |f| f.at(f.classic_rt() && allocation_blocks(f) > 2, "rextsize", || format!("up to {} bitmap blocks in one allocation", allocation_blocks(f))),
        effects: &[note(ALWAYS, v(5, 5), "very large realtime allocations can overrun the log reservation and shut the file system down").fixed(&[by(4, 19, 222), by(5, 4, 286)])],
        explanation: "An allocation may span 2^21 blocks; the log space reserved for it did not count the bitmap blocks. How much room was left differs by \
            release, so this is a note.",
        advice: "Preallocate in pieces of 128 MiB or less, or use larger realtime extents.",
        source: "b1de6fc7520f (5.5; in 4.19.222, 5.4.286); xfs_trans_resv.c in 4.14.5",
        confidence: Confidence::Inferred,
        fire: "mkfs.xfs -r rtdev=R,extsize=4k with R of 1 GiB (neighbour: extsize=1m)",
    },
    Row {
        id: "rt-summary-vs-log",
        refs: "RT-16, C53",
        about: About::Kernel,
        title: "the summary is large for the log",
        test: |f| f.at(f.classic_rt() && summary_blocks(f) > u64::from(f.sb.logblocks.0) / 2, "logblocks", || format!("the summary has {} blocks, the log {}", summary_blocks(f), f.sb.logblocks)),
        effects: &[
            note(ALWAYS, v(6, 14), "growing the realtime section is refused (EINVAL)"),
            note(v(6, 14), NEVER, "growing the realtime section may be refused"),
        ],
        explanation: "Growing rewrites the summary in one transaction.",
        advice: "Make the section at its final size, or the log larger.",
        source: "xfs_rtalloc.c:xfs_growfs_rt (2.6.36 to 6.13), xfs_growfs_check_rtgeom (7.2)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db: rbmblocks and rextents of a 1 TiB section on a log of 10 MiB (neighbour: small)",
    },
    Row {
        id: "rt-quota-off",
        refs: "RT-17, C56",
        about: About::Kernel,
        title: "quota on a file system with a classic realtime section",
        test: |f| f.at(f.rt() && f.sb.qflags & 0x49 != 0 && (!f.features.has_metadir() || f.features.has_zoned()), "qflags", || format!("qflags {:#x}, and a realtime section of {} extents", f.sb.qflags, f.sb.rextents)),
        effects: &[note(ALWAYS, NEVER, "mounts; \"Cannot turn on quotas for realtime filesystem\": quota is off, and counted again when it is turned on some day")],
        explanation: "Quota on realtime files came with realtime groups in 6.13, and is off on zoned ones.",
        advice: "Do without quota, or make the file system with -m metadir=1 for 6.13 and later.",
        source: "xfs_qm.c:xfs_qm_mount_quotas, 2.6.36 to 7.2",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d qflags 0x1' on a classic section (neighbour: 0)",
    },
    Row {
        id: "rt-frextents",
        refs: "RT-21",
        about: About::Kernel,
        title: "more realtime extents free than exist",
        test: |f| f.at(f.rt() && !f.features.has_zoned() && f.sb.frextents > f.sb.rextents.0, "frextents", || format!("frextents is {}, rextents {}", f.sb.frextents, f.sb.rextents)),
        effects: &[note(ALWAYS, NEVER, "mounts; df is wrong, and space runs out before the count does")],
        explanation: "The counter is not tested. 5.19 and later count the bitmap again, but only after a crash.",
        advice: "xfs_repair counts again.",
        source: "run on 5.10, 6.1, 6.12, 7.2: all of them mount it",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d frextents 99999' (neighbour: untouched)",
    },
    Row {
        id: "rt-host-endian",
        refs: "RT-24",
        about: About::Kernel,
        title: "bitmap and summary in the byte order of the machine that wrote them",
        test: |f| f.at(f.classic_rt(), "rbmblocks", || "a realtime section without groups".into()),
        effects: &[note(v26(32), NEVER, "a machine of the other byte order reads free space wrongly; which one wrote it, the superblock does not tell")],
        explanation: "The words of a classic bitmap and summary are stored as the machine has them; only realtime groups have a fixed order.",
        advice: "Do not carry the disks between big-endian and little-endian machines; xfs_repair on the new one rewrites both files.",
        source: "xfs_rtbitmap.h (6.13.2)",
        confidence: Confidence::Confirmed,
        fire: "mkfs.xfs -r rtdev=R without metadir (neighbour: with -m metadir=1)",
    },
    Row {
        id: "rt-growfs-limits",
        refs: "C53",
        about: About::Kernel,
        title: "growing the realtime section",
        test: |f| f.at(f.classic_rt() && (f.ro_compat(6) || f.sb.qflags & 0x49 != 0), "features_ro_compat", || format!("features_ro_compat {:#x}, qflags {:#x}", f.features.ro_compat, f.sb.qflags)),
        effects: &[note(ALWAYS, NEVER, "xfs_growfs -r is refused with reverse mapping or shared extents (5.15 and later), and with quota on disk (6.8, 6.1.128 and later)")],
        explanation: "Growing a classic realtime section is limited to what the kernel can do with one.",
        advice: "Make the section at its final size.",
        source: "xfs_rtalloc.c:xfs_growfs_rt (5.10.223 none, 5.15 yes; 6.6.0 none, 6.8.1 yes)",
        confidence: Confidence::Confirmed,
        fire: "xfs_db -x -c 'sb 0' -c 'write -d qflags 0x1' on a classic section (neighbour: 0)",
    },
    Row {
        id: "rt-discard",
        refs: "C55",
        about: About::Kernel,
        title: "trimming the realtime device",
        test: |f| f.at(f.rt() && !f.features.has_zoned(), "rblocks", || format!("a realtime section of {}", size(f.sb.rblocks.0.saturating_mul(f.block())))),
        effects: &[note(ALWAYS, v(6, 11), "fstrim does not reach the realtime device (6.8.1 does not, 6.12 does; the first release between was not seen)")],
        explanation: "Discard of free realtime space came late.",
        advice: "Trim the device before the file system is made.",
        source: "xfs_discard.c in 6.8.1 and 6.12.117",
        confidence: Confidence::Inferred,
        fire: "mkfs.xfs -r rtdev=R (neighbour: without)",
    },
];
