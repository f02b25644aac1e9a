//! A finding: which rule, where, what was found, what was expected. And the classes of verdict, as the kernel's
//! scrub has them (`XFS_SCRUB_OFLAG_*`).

use super::Rule;
use crate::error::Place;
use crate::format::Type;
use crate::units::{AgNumber, Ino, RgNumber};
use std::fmt;

/// What kind of verdict a rule gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The object itself is damaged.
    Corrupt,
    /// It disagrees with another one that seems sound.
    XCorrupt,
    /// It could not be compared: the other side is unreadable or damaged.
    XFailed,
    /// Valid, but a repair would make it better.
    Preen,
    /// Odd, and worth a look.
    Warning,
    /// Could not be looked at, or not wholly.
    Incomplete,
}

impl Class {
    /// All of them, the worst first.
    pub const ALL: [Self; 6] =
        [Self::Corrupt, Self::XCorrupt, Self::XFailed, Self::Preen, Self::Warning, Self::Incomplete];

    /// Its name in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Corrupt => "corrupt",
            Self::XCorrupt => "xcorrupt",
            Self::XFailed => "xfailed",
            Self::Preen => "preen",
            Self::Warning => "warning",
            Self::Incomplete => "incomplete",
        }
    }

    /// Damage: what makes the program exit with 1.
    pub const fn is_damage(self) -> bool {
        matches!(self, Self::Corrupt | Self::XCorrupt)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Class names as `rules!` takes them.
#[allow(non_upper_case_globals, dead_code)]
pub(crate) mod class_names {
    use super::Class;
    pub(crate) const corrupt: Class = Class::Corrupt;
    pub(crate) const xcorrupt: Class = Class::XCorrupt;
    pub(crate) const xfailed: Class = Class::XFailed;
    pub(crate) const preen: Class = Class::Preen;
    pub(crate) const warning: Class = Class::Warning;
    pub(crate) const incomplete: Class = Class::Incomplete;
}

/// Everything about a rule but its test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// Stable id that names the fault: `sb-agcount-mismatch`. Never reused.
    pub id: &'static str,
    /// Kind of verdict.
    pub class: Class,
    /// Structure, with xfs_db's name.
    pub structure: &'static str,
    /// Field, with the kernel's name.
    pub field: &'static str,
    /// The fault in a few words.
    pub summary: &'static str,
    /// What it means, what follows from it, what to do.
    pub explanation: &'static str,
    /// Where the kernel or xfs_repair checks the same: file and function.
    pub source: &'static str,
    /// First kernel that checks it at mount or read.
    pub since: &'static str,
}

/// What a test found, against what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The value on disk.
    pub found: String,
    /// The value or bound that would be right.
    pub expected: String,
}

impl Mismatch {
    /// From anything that prints.
    pub fn new(found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self { found: found.to_string(), expected: expected.to_string() }
    }

    /// A mismatch unless `right`. Rules of records are asked millions of times: give them `format_args!`, which makes
    /// text only where something is wrong.
    pub fn unless(right: bool, found: impl fmt::Display, expected: impl fmt::Display) -> Option<Self> {
        (!right).then(|| Self::new(found, expected))
    }
}

/// The object that a finding is about: what a repair would have to touch, and what has a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// The file system as a whole: counters, geometry.
    #[default]
    FileSystem,
    /// A superblock.
    Superblock(AgNumber),
    /// A header or btree of an AG.
    Ag(AgNumber, Type),
    /// The space of an AG: who owns which block.
    Space(AgNumber),
    /// An inode and what hangs on it.
    Inode(Ino),
    /// The journal.
    Log,
    /// A realtime group; group 0 where there are none.
    Realtime(RgNumber),
}

impl Object {
    /// The inode, when it is one.
    pub const fn inode(self) -> Option<Ino> {
        match self {
            Self::Inode(ino) => Some(ino),
            _ => None,
        }
    }
}

/// Findings of one rule that follow from another finding, and are folded under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Which rule.
    pub rule: &'static RuleInfo,
    /// The first of them, as [`Finding::path`] has it.
    pub path: String,
    /// How many.
    pub count: u64,
}

/// A rule that something on disk breaks.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which rule.
    pub rule: &'static RuleInfo,
    /// Where.
    pub place: Place,
    /// Value on disk.
    pub found: String,
    /// Value or bound that would be right.
    pub expected: String,
    /// What it is about.
    pub object: Object,
    /// Further findings of this rule about the same object, which are folded under this one.
    pub more: u64,
    /// The object whose damage may be the cause of many such findings, where it is another one.
    pub cause: Option<Object>,
    /// Findings of other rules that follow from this one.
    pub followed: Vec<Followed>,
    /// Path of the object in the tree, without leading slash: for inodes, once it was looked up.
    pub object_path: Option<Vec<u8>>,
    /// Does that path begin at the root of the metadata directory?
    pub in_metadir: bool,
}

impl Finding {
    /// A finding about the file system as a whole.
    pub fn new(rule: &'static RuleInfo, place: Place, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        let (found, expected) = (found.to_string(), expected.to_string());
        let object = Object::FileSystem;
        Self {
            rule,
            place,
            found,
            expected,
            object,
            more: 0,
            cause: None,
            followed: Vec::new(),
            object_path: None,
            in_metadir: false,
        }
    }

    /// The same, about `object`.
    #[must_use]
    pub fn about(self, object: Object) -> Self {
        Self { object, ..self }
    }

    /// The same, which damage of `object` may have caused, too: it is folded with others of that object.
    #[must_use]
    pub fn caused_by(self, object: Object) -> Self {
        Self { cause: Some(object), ..self }
    }

    /// The field, with its structure: `agf 0 › bnobt block 4 › recs[3].startblock`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.place.structure, self.place.field.unwrap_or(self.rule.field))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, place, found, expected, .. } = self;
        write!(f, "{}: {} ({} {found}, expected {expected}; {place})", rule.id, rule.summary, rule.field)
    }
}

/// The infos of a list of rules, at compile time.
pub(crate) const fn infos<S: 'static, const N: usize>(rules: &'static [Rule<S>]) -> [RuleInfo; N] {
    let mut list = [RuleInfo {
        id: "",
        class: Class::Corrupt,
        structure: "",
        field: "",
        summary: "",
        explanation: "",
        source: "",
        since: "",
    }; N];
    let mut i = 0;
    let mut rest = rules;
    let mut slots: &mut [RuleInfo] = &mut list;
    while let (Some((rule, more)), Some((slot, others))) = (rest.split_first(), slots.split_first_mut()) {
        *slot = rule.info;
        rest = more;
        slots = others;
        i += 1;
    }
    assert!(i == N);
    list
}
