//! What is wrong: rules as data, findings out. Prints nothing, repairs nothing.
//!
//! A rule is one block of the file named after its structure. Rules about one structure have their test in the block
//! ([`rules!`](crate::check::rules)); rules about walks — order, siblings, overlaps, counts — are declared with
//! [`raised!`](crate::check::raised) and raised by the code that walks ([`Ctx::raise`]). [`CATALOGUE`] lists all of
//! them; `explain`, JSON and the documentation read it.
//!
//! [`run::check`] goes over a whole file system:
//!
//! | step | what | file |
//! |---|---|---|
//! | 1 | superblocks, and the log's state | [`superblock`], [`copies`], [`journal`] |
//! | 2 | headers and btrees, AG by AG | [`group`], [`agf`], [`agi`], [`agfl`], [`btree`] and one file per index |
//! | 3 | inodes, chunk by chunk | [`inode`], [`dinode`], [`forks`], [`metafile`], [`symlink`] |
//! | 4 | directories, names, links, quotas | [`dir`], [`names`], [`tree`], [`links`], [`dquot`] |
//! | 5 | space: who owns which block, AG by AG | [`owners`], [`space`], [`rmapbt`], [`refcntbt`] |
//! | 6 | the realtime section | [`rt`] |
//! | 7 | counters | [`counters`] |
//!
//! A damaged object is no witness: whoever finds one damaged says so ([`Group`](group::Group),
//! [`Ctx::owners_unknown`]), and what would be compared with it becomes one `xfailed`. What was not wholly seen is none
//! either: totals, sets and lists are [`Known`](known::Known) or cannot be compared. Reads that fail, a run that is stopped and
//! a budget that ends take the same way; all that cannot be read is told by the [`Survey`](crate::volume::Survey) of the run.

pub mod agf;
pub mod agfl;
pub mod agi;
pub mod alone;
pub mod attr;
pub mod attr_leaf;
pub mod bnobt;
pub mod btree;
mod btree_keys;
pub mod chunks;
pub mod context;
pub mod copies;
pub mod counters;
pub mod da;
pub mod dinode;
pub mod dir;
pub mod dir_data;
pub mod dir_free;
pub mod dir_index;
pub mod dquot;
pub mod finding;
pub mod finobt;
mod fold;
pub mod fork;
pub mod forks;
mod gather;
pub mod group;
pub mod inobt;
pub mod inode;
pub mod journal;
pub mod known;
pub mod links;
pub mod metafile;
pub mod names;
pub mod owners;
mod pinpoint;
pub mod recovery;
pub mod refcntbt;
mod repair;
pub mod rmapbt;
pub mod rt;
pub mod rt_shared;
pub mod run;
pub mod space;
pub mod superblock;
pub mod symlink;
pub mod tree;

pub use context::{Ctx, Options};
pub use finding::{Class, Finding, Mismatch, Object, RuleInfo};
pub use run::{Report, Summary, Verdict, check};

/// A rule about subjects of one kind.
pub struct Rule<S: 'static> {
    /// Everything about it but the test.
    pub info: RuleInfo,
    /// The test: `None` when all is well, or what was found and what was expected.
    pub test: fn(&S) -> Option<Mismatch>,
}

/// Every rule, by structure.
pub const CATALOGUE: &[&[RuleInfo]] = &[
    superblock::INFOS,
    copies::RULES,
    agf::INFOS,
    agf::RAISED,
    agi::INFOS,
    agi::RAISED,
    agfl::INFOS,
    agfl::RAISED,
    btree::HEAD,
    btree::HEADER,
    btree::RAISED,
    bnobt::RAISED,
    inobt::INFOS,
    inobt::RAISED,
    finobt::RAISED,
    rmapbt::INFOS,
    rmapbt::RAISED,
    refcntbt::INFOS,
    refcntbt::RAISED,
    inode::RAISED,
    inode::RAISED_V3,
    dinode::RAISED,
    dinode::RAISED_V3,
    forks::EXTENTS,
    forks::FEATURE,
    forks::RAISED,
    forks::RAISED_V3,
    metafile::RAISED,
    metafile::RAISED_V3,
    links::RAISED,
    symlink::RAISED,
    symlink::TARGET,
    da::RAISED,
    dir::RAISED,
    dir_data::RAISED,
    dir_index::RAISED,
    dir_free::RAISED,
    attr::RAISED,
    attr_leaf::RAISED,
    tree::RAISED,
    dquot::RAISED,
    space::RAISED,
    counters::RAISED,
    journal::RAISED,
    context::RAISED,
    rt::rules::BITMAP,
    rt::rules::SUMMARY,
    rt::rules::FILE,
    rt::rules::GROUP,
    rt::rules::RMAP,
    rt::rules::REFCOUNT,
    rt::rules::SUPER,
    rt::rules::DEVICE,
];

/// The rule with that id.
pub fn rule(id: &str) -> Option<&'static RuleInfo> {
    CATALOGUE.iter().flat_map(|rules| rules.iter()).find(|info| info.id == id)
}

/// The findings of a list of typed rules about a subject at `place`: the first that is broken, or all.
pub(crate) fn apply<S: 'static>(
    rules: &'static [Rule<S>],
    infos: &'static [RuleInfo],
    subject: &S,
    mut found: impl FnMut(&'static RuleInfo, Mismatch),
) -> bool {
    let mut sound = true;
    for (rule, info) in rules.iter().zip(infos) {
        if let Some(mismatch) = (rule.test)(subject) {
            sound = false;
            found(info, mismatch);
        }
    }
    sound
}

/// The first of a list of typed rules that a subject breaks.
pub(crate) fn first_broken<S: 'static>(
    rules: &'static [Rule<S>],
    infos: &'static [RuleInfo],
    subject: &S,
) -> Option<(&'static RuleInfo, Mismatch)> {
    rules.iter().zip(infos).find_map(|(rule, info)| Some((info, (rule.test)(subject)?)))
}

/// A field that a rule names must exist: a misspelt one does not compile.
macro_rules! field_name {
    ($fields:ty, $field:ident) => {{
        #[allow(clippy::no_effect_underscore_binding)]
        const fn exists(fields: &$fields) {
            let _field = &fields.$field;
        }
        let _ = exists;
        stringify!($field)
    }};
}
pub(crate) use field_name;

/// Defines the rules of a structure: `RULES` with the tests, `INFOS` without.
///
/// ```text
/// rules! { structure "agf", subject AgfSubject, fields Agf;
///     /// Explanation: what it means, what follows, what to do.
///     "agf-freeblks-beyond-length" corrupt freeblks, "more free blocks than the AG has",
///         source "xfs_alloc.c:xfs_agf_verify", since "3.10",
///         |s| more(s.agf.freeblks.get(), s.agf.length.get());
/// }
/// ```
/// The field must be one of the struct after `fields`: a misspelt one does not compile.
macro_rules! rules {
    (structure $structure:literal, subject $subject:ty, fields $fields:ty; $(
        $(#[doc = $doc:literal])* $id:literal $class:ident $field:ident, $summary:literal,
        source $source:literal, since $since:literal, |$s:ident| $test:expr;
    )*) => {
        /// The rules, with their tests.
        pub const RULES: &[$crate::check::Rule<$subject>] = &[ $( $crate::check::Rule {
            info: $crate::check::RuleInfo {
                id: $id,
                class: $crate::check::finding::class_names::$class,
                structure: $structure,
                field: $crate::check::field_name!($fields, $field),
                summary: $summary,
                explanation: concat!($($doc),*),
                source: $source,
                since: $since,
            },
            test: |$s: &$subject| $test,
        }, )* ];

        /// The rules, without their tests.
        pub const INFOS: &[$crate::check::RuleInfo] = {
            const COUNT: usize = RULES.len();
            const LIST: [$crate::check::RuleInfo; COUNT] = $crate::check::finding::infos::<$subject, COUNT>(RULES);
            &LIST
        };
    };
}
pub(crate) use rules;

/// Defines rules without a test, which code raises: a constant for each, and the list of them.
///
/// ```text
/// raised! { RAISED, structure "btree", fields ShortHeader;
///     /// Explanation: what it means, what follows, what to do.
///     LEFT_SIBLING: "btree-bad-leftsib" corrupt leftsib, "left sibling is not the left neighbour",
///         source "scrub/btree.c:xchk_btree_block_check_sibling", since "scrub";
/// }
/// ```
/// Without `fields` the field is a string, for what is no field of a table.
macro_rules! raised {
    ($list:ident, structure $structure:literal, fields $fields:ty; $(
        $(#[doc = $doc:literal])* $name:ident: $id:literal $class:ident $field:ident, $summary:literal,
        source $source:literal, since $since:literal;
    )*) => {
        $crate::check::raised! { @ $list, $structure; $(
            [$(#[doc = $doc])*] $name, $id, $class, $crate::check::field_name!($fields, $field), $summary, $source, $since;
        )* }
    };
    ($list:ident, structure $structure:literal; $(
        $(#[doc = $doc:literal])* $name:ident: $id:literal $class:ident $field:literal, $summary:literal,
        source $source:literal, since $since:literal;
    )*) => {
        $crate::check::raised! { @ $list, $structure; $(
            [$(#[doc = $doc])*] $name, $id, $class, $field, $summary, $source, $since;
        )* }
    };
    (@ $list:ident, $structure:literal; $(
        [$(#[doc = $doc:literal])*] $name:ident, $id:literal, $class:ident, $field:expr, $summary:literal, $source:literal,
        $since:literal;
    )*) => {
        $(
            $(#[doc = $doc])*
            pub const $name: &$crate::check::RuleInfo = &$crate::check::RuleInfo {
                id: $id,
                class: $crate::check::finding::class_names::$class,
                structure: $structure,
                field: $field,
                summary: $summary,
                explanation: concat!($($doc),*),
                source: $source,
                since: $since,
            };
        )*

        /// The rules that code raises.
        pub const $list: &[$crate::check::RuleInfo] = &[ $( *$name, )* ];
    };
}
pub(crate) use raised;
