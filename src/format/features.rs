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

/// A feature bit: where it stands, what it is called, who knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// Word it stands in.
    pub word: Word,
    /// Mask of one bit.
    pub mask: u32,
    /// Short name: mkfs.xfs's where it has one.
    pub name: &'static str,
    /// First Linux and first xfsprogs that know it, as major and minor number; `None` for V4 bits, which are older than
    /// both 3.0s.
    pub since: Option<Since>,
}

/// First releases that know a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// Linux (`XFS_SB_FEAT_*_ALL` of the release).
    pub kernel: (u16, u16),
    /// xfsprogs.
    pub xfsprogs: (u16, u16),
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

    #[allow(clippy::as_conversions)] // OK: an enum without values, in a constant
    const fn is(self, other: Self) -> bool {
        self as u8 == other as u8
    }
}

/// The one table of feature bits. V4: word, mask, name. V5: the method that asks for it, word, mask, name, first Linux,
/// first xfsprogs, and the same feature on V4 where it has one.
macro_rules! features {
    (
        v4 { $( $word4:ident $mask4:literal $name4:literal; )* }
        v5 { $( $(#[doc = $doc:literal])* $method:ident $word:ident $mask:literal $name:literal
            ($k0:literal, $k1:literal) ($x0:literal, $x1:literal) $(, v4 $on_v4:expr)?; )* }
    ) => {
        /// Every feature bit of Linux 7.2 (`xfs_format.h`), oldest first.
        pub const BITS: &[Bit] = &[
            $( Bit { word: Word::$word4, mask: $mask4, name: $name4, since: None }, )*
            $( Bit {
                word: Word::$word, mask: $mask, name: $name,
                since: Some(Since { kernel: ($k0, $k1), xfsprogs: ($x0, $x1) }),
            }, )*
        ];

        impl Features {
            $(
                $(#[doc = $doc])*
                pub fn $method(&self) -> bool {
                    let on_v4: fn(&Self) -> bool = features!(@v4 $($on_v4)?);
                    if self.is_v5() { self.word(Word::$word) & $mask != 0 } else { on_v4(self) }
                }
            )*
        }
    };
    (@v4) => { |_| false };
    (@v4 $on_v4:expr) => { $on_v4 };
}

features! {
    v4 {
        Version 0x0010 "attr";
        Version 0x0020 "nlink";
        Version 0x0040 "quota";
        Version 0x0080 "align";
        Version 0x0100 "dalign";
        Version 0x0200 "shared";
        Version 0x0400 "logv2";
        Version 0x0800 "sector";
        Version 0x1000 "extflg";
        Version 0x2000 "dirv2";
        Version 0x4000 "ascii-ci";
        Version 0x8000 "morebits";
        Features2 0x0002 "lazy-count";
        Features2 0x0008 "attr2";
        Features2 0x0010 "parent-v4";
        Features2 0x0080 "projid32bit";
        Features2 0x0100 "crc";
        Features2 0x0200 "ftype-v4";
    }
    v5 {
        /// Free inode btree.
        has_finobt RoCompat 0x1 "finobt" (3, 16) (3, 2);
        /// Reverse mapping btree.
        has_rmapbt RoCompat 0x2 "rmapbt" (4, 8) (4, 8);
        /// Shared extents and the refcount btree.
        has_reflink RoCompat 0x4 "reflink" (4, 9) (4, 9);
        /// Block counts of inobt and finobt in the AGI.
        has_inobtcount RoCompat 0x8 "inobtcount" (5, 10) (5, 10);
        /// File type in directory entries.
        has_ftype Incompat 0x001 "ftype" (3, 12) (3, 2), v4 |f| f.two(0x200);
        /// Sparse inode chunks.
        has_sparse Incompat 0x002 "sparse" (4, 2) (4, 2);
        /// Metadata carries `sb_meta_uuid`, not `sb_uuid`.
        has_meta_uuid Incompat 0x004 "meta_uuid" (4, 3) (4, 3);
        /// Timestamps past 2038.
        has_bigtime Incompat 0x008 "bigtime" (5, 10) (5, 10);
        /// xfs_repair must run before the next mount.
        needs_repair Incompat 0x010 "needsrepair" (5, 11) (5, 11);
        /// 64-bit extent counters.
        has_nrext64 Incompat 0x020 "nrext64" (5, 19) (5, 19);
        /// Exchange-range requests may stand in the log.
        has_exchange Incompat 0x040 "exchange" (6, 10) (6, 10);
        /// Parent pointers.
        has_parent Incompat 0x080 "parent" (6, 10) (6, 10);
        /// Metadata directory tree; realtime groups wherever there is a realtime section.
        has_metadir Incompat 0x100 "metadir" (6, 13) (6, 13);
        /// Zoned realtime allocator.
        has_zoned Incompat 0x200 "zoned" (6, 15) (6, 15);
        /// Groups of a zoned realtime device have gaps in their disk addresses.
        has_zone_gaps Incompat 0x400 "zone-gaps" (6, 15) (6, 15);
        /// Attribute updates are logged as intents.
        has_log_xattrs LogIncompat 0x1 "log-xattrs" (5, 19) (5, 19);
    }
}

/// First Linux that knows the feature with this bit.
pub const fn first_kernel(word: Word, mask: u32) -> Option<(u16, u16)> {
    let mut rest = BITS;
    while let [bit, more @ ..] = rest {
        if bit.word.is(word) && bit.mask == mask {
            return match bit.since {
                Some(since) => Some(since.kernel),
                None => None,
            };
        }
        rest = more;
    }
    None
}

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
