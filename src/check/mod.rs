//! What is wrong: rules as data, findings out. Prints nothing, repairs nothing.
//!
//! A rule is one block in [`rules!`](crate::check::rules) of the file named after its structure: id, class, field,
//! text, source, and the test itself. [`CATALOGUE`] lists them all; `explain`, JSON and the documentation read it.

pub mod finding;
pub mod rt;
pub mod superblock;

pub use finding::{Class, Finding, Mismatch, RuleInfo};

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
                field: {
                    // A misspelt field must not compile.
                    #[allow(clippy::no_effect_underscore_binding)]
                    const fn exists(fields: &$fields) { let _field = &fields.$field; }
                    let _ = exists;
                    stringify!($field)
                },
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
/// raised! { RAISED, structure "rtbitmap";
///     /// Explanation: what it means, what follows, what to do.
///     HOLE: "rtbitmap-hole" corrupt "u3.bmx", "hole in the bitmap file",
///         source "xfs_rtbitmap.c:xfs_rtbuf_get", since "4.18";
/// }
/// ```
macro_rules! raised {
    ($list:ident, structure $structure:literal; $(
        $(#[doc = $doc:literal])* $name:ident: $id:literal $class:ident $field:literal, $summary:literal,
        source $source:literal, since $since:literal;
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
