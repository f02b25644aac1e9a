//! Version number and feature bits of the superblock, with the kernel's names.

/// The words of the superblock that say what a file system is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// `sb_versionnum`: version in the low four bits, V4 feature bits above.
    pub versionnum: u16,
    /// `sb_features2`, joined with `sb_bad_features2` as the kernel does on V4.
    pub features2: u32,
    /// Compatible features (none defined).
    pub compat: u32,
    /// Features that an older kernel may mount read-only.
    pub ro_compat: u32,
    /// Features that an older kernel must refuse.
    pub incompat: u32,
    /// Features of the log contents.
    pub log_incompat: u32,
}

/// A feature bit: which word, mask, mkfs's or the kernel's short name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// Word it stands in.
    pub word: Word,
    /// Mask of one bit.
    pub mask: u32,
    /// Short name: mkfs.xfs's where it has one.
    pub name: &'static str,
}

/// The words that hold feature bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// `sb_versionnum`
    Version,
    /// `sb_features2`
    Features2,
    /// `sb_features_compat`
    Compat,
    /// `sb_features_ro_compat`
    RoCompat,
    /// `sb_features_incompat`
    Incompat,
    /// `sb_features_log_incompat`
    LogIncompat,
}

impl Word {
    /// xfs_db's name of the field.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Version => "versionnum",
            Self::Features2 => "features2",
            Self::Compat => "features_compat",
            Self::RoCompat => "features_ro_compat",
            Self::Incompat => "features_incompat",
            Self::LogIncompat => "features_log_incompat",
        }
    }
}

const fn bit(word: Word, mask: u32, name: &'static str) -> Bit {
    Bit { word, mask, name }
}

/// Every feature bit of Linux 7.2 (`xfs_format.h`), oldest first.
pub const BITS: &[Bit] = &[
    bit(Word::Version, 0x0010, "attr"),
    bit(Word::Version, 0x0020, "nlink"),
    bit(Word::Version, 0x0040, "quota"),
    bit(Word::Version, 0x0080, "align"),
    bit(Word::Version, 0x0100, "dalign"),
    bit(Word::Version, 0x0200, "shared"),
    bit(Word::Version, 0x0400, "logv2"),
    bit(Word::Version, 0x0800, "sector"),
    bit(Word::Version, 0x1000, "extflg"),
    bit(Word::Version, 0x2000, "dirv2"),
    bit(Word::Version, 0x4000, "ascii-ci"),
    bit(Word::Version, 0x8000, "morebits"),
    bit(Word::Features2, 0x0002, "lazy-count"),
    bit(Word::Features2, 0x0008, "attr2"),
    bit(Word::Features2, 0x0010, "parent-v4"),
    bit(Word::Features2, 0x0080, "projid32bit"),
    bit(Word::Features2, 0x0100, "crc"),
    bit(Word::Features2, 0x0200, "ftype-v4"),
    bit(Word::RoCompat, 0x1, "finobt"),
    bit(Word::RoCompat, 0x2, "rmapbt"),
    bit(Word::RoCompat, 0x4, "reflink"),
    bit(Word::RoCompat, 0x8, "inobtcount"),
    bit(Word::Incompat, 0x001, "ftype"),
    bit(Word::Incompat, 0x002, "sparse"),
    bit(Word::Incompat, 0x004, "meta_uuid"),
    bit(Word::Incompat, 0x008, "bigtime"),
    bit(Word::Incompat, 0x010, "needsrepair"),
    bit(Word::Incompat, 0x020, "nrext64"),
    bit(Word::Incompat, 0x040, "exchange"),
    bit(Word::Incompat, 0x080, "parent"),
    bit(Word::Incompat, 0x100, "metadir"),
    bit(Word::Incompat, 0x200, "zoned"),
    bit(Word::Incompat, 0x400, "zone-gaps"),
    bit(Word::LogIncompat, 0x1, "log-xattrs"),
];

macro_rules! tests_of {
    ($( $(#[doc = $doc:literal])* $name:ident = $v5:expr, $v4:expr; )*) => { $(
        $(#[doc = $doc])*
        pub fn $name(&self) -> bool {
            let on_v5: fn(&Self) -> bool = $v5;
            let on_v4: fn(&Self) -> bool = $v4;
            if self.is_v5() { on_v5(self) } else { on_v4(self) }
        }
    )* };
}

impl Features {
    /// What mkfs writes for a plain V5 or V4 file system: for bytes of unknown origin.
    pub fn assumed(v5: bool) -> Self {
        if v5 {
            Self { versionnum: 0xb4b5, features2: 0x18a, ro_compat: 0xf, incompat: 0xeb, ..Self::default() }
        } else {
            Self { versionnum: 0xb4b4, features2: 0x28a, ..Self::default() }
        }
    }

    /// Version in the low four bits (`XFS_SB_VERSION_NUM`): 4 or 5 today, 1 to 3 before 1999.
    pub fn version(&self) -> u16 {
        self.versionnum & 0xf
    }

    /// Version 5: checksums, self-describing metadata, the four feature words.
    pub fn is_v5(&self) -> bool {
        self.version() == 5
    }

    /// The bits of one word.
    pub fn word(&self, word: Word) -> u32 {
        match word {
            Word::Version => u32::from(self.versionnum & 0xfff0),
            Word::Features2 => self.features2,
            Word::Compat => self.compat,
            Word::RoCompat => self.ro_compat,
            Word::Incompat => self.incompat,
            Word::LogIncompat => self.log_incompat,
        }
    }

    /// Every set bit that has a name.
    pub fn names(&self) -> impl Iterator<Item = &'static Bit> + '_ {
        BITS.iter().filter(|bit| {
            let in_use = self.is_v5() || matches!(bit.word, Word::Version | Word::Features2);
            in_use && self.word(bit.word) & bit.mask != 0
        })
    }

    /// Set bits of a word that Linux 7.2 does not know.
    pub fn unknown(&self, word: Word) -> u32 {
        let known = BITS.iter().filter(|bit| bit.word == word).fold(0, |mask, bit| mask | bit.mask);
        self.word(word) & !known
    }

    fn v4(&self, mask: u16) -> bool {
        self.versionnum & mask != 0
    }
    fn two(&self, mask: u32) -> bool {
        self.v4(0x8000) && self.features2 & mask != 0
    }

    tests_of! {
        /// Free inode btree.
        has_finobt = |f| f.ro_compat & 1 != 0, |_| false;
        /// Reverse mapping btree.
        has_rmapbt = |f| f.ro_compat & 2 != 0, |_| false;
        /// Shared extents and the refcount btree.
        has_reflink = |f| f.ro_compat & 4 != 0, |_| false;
        /// Block counts of inobt and finobt in the AGI.
        has_inobtcount = |f| f.ro_compat & 8 != 0, |_| false;
        /// File type in directory entries.
        has_ftype = |f| f.incompat & 1 != 0, |f| f.two(0x200);
        /// Sparse inode chunks.
        has_sparse = |f| f.incompat & 2 != 0, |_| false;
        /// Metadata carries `sb_meta_uuid`, not `sb_uuid`.
        has_meta_uuid = |f| f.incompat & 4 != 0, |_| false;
        /// Timestamps past 2038.
        has_bigtime = |f| f.incompat & 8 != 0, |_| false;
        /// xfs_repair must run before the next mount.
        needs_repair = |f| f.incompat & 0x10 != 0, |_| false;
        /// 64-bit extent counters.
        has_nrext64 = |f| f.incompat & 0x20 != 0, |_| false;
        /// Exchange-range requests may stand in the log.
        has_exchange = |f| f.incompat & 0x40 != 0, |_| false;
        /// Parent pointers.
        has_parent = |f| f.incompat & 0x80 != 0, |_| false;
        /// Metadata directory tree; realtime groups wherever there is a realtime section.
        has_metadir = |f| f.incompat & 0x100 != 0, |_| false;
        /// Zoned realtime allocator.
        has_zoned = |f| f.incompat & 0x200 != 0, |_| false;
        /// Groups of a zoned realtime device have gaps in their disk addresses.
        has_zone_gaps = |f| f.incompat & 0x400 != 0, |_| false;
        /// Extended attributes may exist.
        has_attr = |_| true, |f| f.v4(0x10);
        /// Attribute fork at a variable offset.
        has_attr2 = |_| true, |f| f.two(0x8);
        /// Inode chunks aligned.
        has_align = |_| true, |f| f.v4(0x80);
        /// Stripe unit and width are given.
        has_dalign = |f| f.v4(0x100), |f| f.v4(0x100);
        /// Log version 2: stripe unit, larger buffers.
        has_logv2 = |_| true, |f| f.v4(0x400);
        /// Sector sizes of data and log are given.
        has_sector = |f| f.v4(0x800), |f| f.v4(0x800);
        /// Unwritten extents.
        has_extflg = |_| true, |f| f.v4(0x1000);
        /// Directory format 2.
        has_dirv2 = |_| true, |f| f.v4(0x2000);
        /// Directory lookups ignore ASCII case.
        has_ascii_ci = |f| f.v4(0x4000), |f| f.v4(0x4000);
        /// Counters of the superblock are lazily written.
        has_lazy_count = |_| true, |f| f.two(0x2);
        /// 32-bit project ids.
        has_projid32 = |_| true, |f| f.two(0x80);
        /// 32-bit link counts.
        has_nlink = |_| true, |f| f.v4(0x20);
        /// Quota fields are in use.
        has_quota = |f| f.v4(0x40), |f| f.v4(0x40);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_current_file_system() {
        // Test image v5-rtgroups: versionnum 0xb4b5, features2 0x18a, ro_compat 0xf, incompat 0x1eb
        let f =
            Features { versionnum: 0xb4b5, features2: 0x18a, ro_compat: 0xf, incompat: 0x1eb, ..Features::default() };
        assert!(f.has_metadir() && f.has_parent() && f.has_exchange() && !f.has_zoned() && !f.has_dalign());
        let names: Vec<_> = f.names().filter(|b| b.word == Word::Incompat).map(|b| b.name).collect();
        assert_eq!(names, ["ftype", "sparse", "bigtime", "nrext64", "exchange", "parent", "metadir"]);
        assert_eq!(f.unknown(Word::Incompat), 0);
    }

    #[test]
    fn v4_reads_features2_only_behind_morebits() {
        let f = Features { versionnum: 0x3084, features2: 0x28a, ro_compat: 0xf, ..Features::default() };
        assert!(!f.has_attr2() && !f.has_lazy_count() && !f.has_finobt() && f.has_align());
        let f = Features { versionnum: 0xb484, ..f };
        assert!(f.has_attr2() && f.has_lazy_count() && f.has_ftype() && f.has_projid32());
    }
}
