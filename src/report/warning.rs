//! What the program flags beside an answer: warnings by id. Findings and hazards have registries of their own.

/// A warning that a command may print.
#[derive(Debug)]
pub struct Warning {
    /// Stable id.
    pub id: &'static str,
    /// What it says, in a few words.
    pub summary: &'static str,
    /// What it means.
    pub explanation: &'static str,
    /// What to do.
    pub advice: &'static str,
    /// Does `check` make a finding of it, under another id?
    pub judged: bool,
}

const fn plain(id: &'static str, summary: &'static str, explanation: &'static str, advice: &'static str) -> Warning {
    Warning { id, summary, explanation, advice, judged: false }
}

const fn judged(id: &'static str, summary: &'static str, explanation: &'static str, advice: &'static str) -> Warning {
    Warning { id, summary, explanation, advice, judged: true }
}

/// The warning with that id.
pub fn warning(id: &str) -> Option<&'static Warning> {
    WARNINGS.iter().find(|warning| warning.id == id)
}

/// Every warning.
pub const WARNINGS: &[Warning] = &[
    plain(
        "ag-headers-sampled",
        "not all AG headers were looked at",
        "preflight reads the headers of the first and the last AGs where there are very many; a bad header in another AG would \
         be met by a kernel at the first allocation there.",
        "check looks at all of them.",
    ),
    plain(
        "bad-crc",
        "the checksum of a structure is wrong",
        "The structure changed after its checksum was computed: it is damaged, or something else wrote there. Its values are \
         shown as they are; kernels refuse to use it.",
        "check says what is wrong in it and around it.",
    ),
    plain(
        "device-given-twice",
        "one device was given as two",
        "The log or realtime device is the data device itself, or both are one. Kernels refuse such a mount.",
        "Give the right devices: findmnt or /etc/fstab names them as logdev= and rtdev=.",
    ),
    plain(
        "device-given-up",
        "a device was given up",
        "Reads all over the device failed one after the other, so the rest of it was not asked for: each try costs a dying disk.",
        "Look at the cable and the kernel's messages. Copy the device first (ddrescue), and work with the copy.",
    ),
    judged(
        "device-too-short",
        "the device is shorter than the file system",
        "A partition, logical volume, array or image lost its end, or is not assembled as it was. No kernel mounts it; \
         what lies behind the end cannot be read.",
        "Do not repair. Give the device its old length back first; if the end is lost for good, copy out what can be read.",
    ),
    plain(
        "unreadable",
        "a part of the device cannot be read",
        "The device reports an error for these bytes, twice. What lies there is missing in the answer; what contradicts it may only \
         seem damaged.",
        "Copy the device first (ddrescue), and work with the copy.",
    ),
    judged(
        "log-behind-metadata",
        "metadata was written later than the log has come",
        "Log sequence numbers in metadata are ahead of the log: the log was wiped, replaced or rolled back, or the device is \
         a mixture of two states. Kernels refuse to mount read-write.",
        "Find out whether this is the right log, and a snapshot of one moment. If so, xfs_repair moves the log on.",
    ),
    judged(
        "log-foreign",
        "the log belongs to another file system",
        "Its records carry the UUID of another file system: most often the wrong external log device was given.",
        "Find the right log device before anything is written. Do not let a repair make a new log: the right one may hold \
         the last changes.",
    ),
    judged(
        "log-recovery-fails",
        "recovery of the log would fail",
        "The log is dirty, and a record of it is damaged so that kernels refuse to replay it and to mount.",
        "Copy the device first. mount -o ro,norecovery shows the state before recovery; xfs_repair -L gives the changes in \
         the log up.",
    ),
    judged(
        "log-start-zeroed",
        "the first block of the log is zero, a later one is not",
        "The start of the log was wiped. Kernels take such a log for empty, so changes that it held are not replayed.",
        "Copy the device before it is mounted or repaired.",
    ),
    judged(
        "log-unknown",
        "the state of the log is not known",
        "The external log was not given, is too short, cannot be read, or holds nothing that could be a log. Whether changes \
         wait in it cannot be told, and so nothing that looks damaged is certain.",
        "Give the log device with --logdev.",
    ),
    plain(
        "log-unreadable",
        "not all live records of the log can be read",
        "The log is dirty, and the device reports errors within what recovery would read.",
        "Copy the device first (ddrescue), and work with the copy.",
    ),
    plain(
        "log-zeroed",
        "the log is all zeros",
        "No record was ever written to it, or it was wiped. mkfs.xfs writes a first record, so a file system that was mounted \
         has one.",
        "If the file system was in use, look for the reason before it is mounted.",
    ),
    plain(
        "md-member",
        "the device is a member of an md array",
        "An md superblock lies on the device, beside the superblock of XFS. A member of a mirror holds all data, and is read as \
         it is; where the data are spread over the members, it is refused, unless the AG headers show that the file system \
         lies on this device alone and the md superblock is an old one.",
        "Inspect the array (mdadm --assemble --readonly, then /dev/mdX). Never write to one member alone.",
    ),
    plain(
        "mounted",
        "the file system is mounted",
        "The kernel holds changes in memory that are not on the device yet; what is read may be older, or a mixture of two \
         moments.",
        "For a verdict unmount it, freeze it (xfs_freeze -f), or look at a snapshot.",
    ),
    plain(
        "page-cache",
        "reads go through the page cache",
        "The system refuses direct reads of this device, so what is read comes from the page cache of the block device, \
         which a mounted file system does not keep up to date.",
        "Unmount it, or drop the caches, if what is shown looks old.",
    ),
    plain(
        "quota-records-lost",
        "records of a quota file are lost",
        "Blocks of the file hold no records, fail their checksums or cannot be read. The limits of these owners are not known; \
         kernels refuse to change anything of theirs (EUCLEAN) until the records are written again.",
        "xfs_repair writes empty records and keeps the file; limits of these ids must be set again.",
    ),
    plain(
        "quota-usage-mismatch",
        "usage on disk is not what the inodes add up to",
        "The usage in the quota records differs from a recount of blocks and inodes.",
        "A mount with quotas counts anew where the flag \"checked\" is not set; xfs_repair clears it.",
    ),
    plain(
        "sb-copy-lost",
        "a superblock copy is missing",
        "An AG begins without a good copy of the superblock. Kernels read the primary only, but with each lost copy less is \
         left to restore it from.",
        "xfs_repair writes the copies again.",
    ),
    plain(
        "sb-from-copy",
        "figures come from a superblock copy",
        "The primary superblock is unusable. What is shown is read through the copy that is named.",
        "Look at the copies (show TARGET sb 1) before a repair writes the primary from them.",
    ),
    plain(
        "sb-inferred",
        "the superblock was put together from AG headers",
        "There is no usable superblock and no copy; sizes follow from the headers of AG 0, and some figures are lost.",
        "Copy the device. With these figures files can be read; a new superblock has to be written by hand.",
    ),
];
