//! One damage, one finding: what only says that something damaged was used as a witness is folded under the finding that
//! names the damage. It is still told there, with its place, and not counted.
//!
//! A finding is folded only where something ties it to the other: the same object, or an object that it names as its
//! cause. Damage of its own elsewhere stays a finding.

use super::context::Ctx;
use super::finding::{Finding, Followed, Object};
use crate::units::AgNumber;

/// What ties a finding to what it follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tie {
    /// Both are about the same object.
    Object,
    /// Both are about the same inode.
    Inode,
    /// It names the object of the other as its cause.
    Cause,
    /// It names an object within the AG of the other as its cause, or both are about structures of one AG.
    Ag,
    /// There is only one thing of the kind.
    Only,
}

/// Rules that follow from others. Names that end in `-` stand for all rules that begin so.
struct Fold {
    tie: Tie,
    causes: &'static [&'static [&'static str]],
    followers: &'static [&'static str],
}

/// Fields of an inode that say how all others are read.
const FLAGS2: &[&str] = &["inode-bad-flags2"];

/// Fields of an inode by which its list of extents is read, and what it should add up to.
const MAP_FIELDS: &[&str] = &[
    "inode-bad-flags2",
    "inode-bad-padding",
    "inode-bad-nextents",
    "inode-bad-anextents",
    "inode-bad-nblocks",
    "inode-bad-format",
    "inode-bad-aformat",
    "inode-nextents-mismatch",
    "inode-anextents-mismatch",
    "inode-nblocks-mismatch",
];

/// The extent map itself.
const BROKEN_MAPS: &[&str] = &[
    "inode-bmbt-bad-level",
    "inode-bmbt-bad-numrecs",
    "inode-extent-outside",
    "inode-extents-disordered",
    "inode-extent-empty",
    "inode-extent-unwritten",
    "inode-extent-beyond",
    "btree-",
];

/// In the order in which they are tried: from the cause to what is furthest from it.
const FOLDS: &[Fold] = &[
    Fold {
        tie: Tie::Object,
        causes: &[FLAGS2],
        followers: &[
            "inode-bad-nanoseconds",
            "inode-bad-cowextsize",
            "inode-bad-metadata-file",
            "inode-bad-onlink",
            "inode-bad-padding",
            "inode-bad-nextents",
            "inode-bad-anextents",
            "inode-nextents-mismatch",
            "inode-anextents-mismatch",
            "inode-nblocks-mismatch",
            "metafile-shared",
            "metafile-bad-kind",
            "metafile-without-flag",
        ],
    },
    Fold {
        tie: Tie::Object,
        causes: &[&["inode-bad-padding"]],
        followers: &["inode-bad-nextents", "inode-bad-anextents", "inode-nextents-mismatch", "inode-nblocks-mismatch"],
    },
    Fold {
        tie: Tie::Object,
        causes: &[&["agf-freeblks-mismatch", "agf-longest-mismatch"]],
        followers: &["agf-longest-beyond-freeblks"],
    },
    Fold { tie: Tie::Object, causes: &[&["inode-bad-flags"]], followers: &["inode-bad-extsize"] },
    Fold {
        tie: Tie::Object,
        causes: &[&["inode-bad-mode"]],
        followers: &["inobt-used-inode-free", "inode-bad-flags", "inode-bad-flags2"],
    },
    Fold {
        tie: Tie::Object,
        causes: &[&["inode-bad-metadata-file"]],
        followers: &["metafile-", "inode-extent-unwritten"],
    },
    Fold { tie: Tie::Object, causes: &[&["metafile-realtime"]], followers: &["rtfile-without-section"] },
    Fold { tie: Tie::Inode, causes: &[&["btree-too-many-records"]], followers: &["inode-extent-empty"] },
    Fold {
        tie: Tie::Inode,
        causes: &[&["inode-extent-outside", "inode-extent-beyond", "inode-extent-empty", "btree-too-many-records"]],
        followers: &["btree-records-disordered", "btree-key-mismatch", "inode-bad-nblocks"],
    },
    Fold {
        tie: Tie::Inode,
        causes: &[&["btree-records-disordered", "btree-keys-disordered"]],
        followers: &["btree-key-mismatch", "btree-bad-pointer"],
    },
    Fold { tie: Tie::Inode, causes: &[&["btree-bad-magic"]], followers: &["btree-bad-leftsib", "btree-bad-rightsib"] },
    Fold { tie: Tie::Object, causes: &[&["da-bad-magic"]], followers: &["da-bad-back", "da-bad-forw"] },
    Fold {
        tie: Tie::Object,
        causes: &[&["dirindex-bad-address"]],
        followers: &["dirindex-bad-stale", "dirindex-missing-entry"],
    },
    Fold {
        tie: Tie::Object,
        causes: &[&["dirindex-bad-stale"]],
        followers: &["dirindex-missing-entry", "da-hashes-disordered", "da-hash-mismatch"],
    },
    Fold { tie: Tie::Object, causes: &[&["da-hashes-disordered"]], followers: &["da-bad-pointer", "da-hash-mismatch"] },
    Fold {
        tie: Tie::Object,
        causes: &[&["dirfree-bad-best", "dirfree-missing-block"]],
        followers: &["dirfree-bad-nused"],
    },
    Fold {
        tie: Tie::Object,
        causes: &[&["inode-bad-nblocks", "inode-bad-nextents", "inode-bad-anextents"]],
        followers: &[
            "inode-nblocks-mismatch",
            "inode-nextents-mismatch",
            "inode-anextents-mismatch",
            "inode-bmbt-bad-level",
            "metafile-hole",
            "metafile-not-empty",
        ],
    },
    Fold {
        tie: Tie::Object,
        causes: &[MAP_FIELDS, BROKEN_MAPS],
        followers: &[
            "space-block-owned-twice",
            "space-free-block-in-use",
            "symlink-bad-extents",
            "metafile-hole",
            "rtfile-extent-partial",
        ],
    },
    Fold { tie: Tie::Cause, causes: &[MAP_FIELDS, BROKEN_MAPS], followers: &["space-lost-blocks"] },
    Fold { tie: Tie::Cause, causes: &[&["inobt-free-inode-in-use"]], followers: &["space-lost-blocks"] },
    Fold {
        tie: Tie::Object,
        causes: &[&["space-block-owned-twice", "space-free-block-in-use"]],
        followers: &["da-bad-magic", "symlink-bad-magic"],
    },
    // Blocks of a file that are not where the map says, or others in their place.
    Fold {
        tie: Tie::Object,
        causes: &[BROKEN_MAPS],
        followers: &[
            "da-",
            "dir-missing-block",
            "dir-bad-size",
            "dir-no-dotdot",
            "dirfree-",
            "dirleaf-",
            "dirindex-",
            "dquot-bad-id",
            "inode-nblocks-mismatch",
        ],
    },
    Fold {
        tie: Tie::Object,
        causes: &[&["inode-nblocks-mismatch", "inode-nextents-mismatch"]],
        followers: &[
            "dquot-bad-magic",
            "dquot-bad-id",
            "da-bad-magic",
            "da-bad-pointer",
            "dir-missing-block",
            "dir-bad-size",
            "dirfree-missing-block",
        ],
    },
    // Parent pointers are attributes.
    Fold {
        tie: Tie::Object,
        causes: &[&[
            "attr-",
            "attrleaf-",
            "attrsf-",
            "inode-bad-anextents",
            "inode-bad-padding",
            "inode-bad-flags2",
            "inode-bad-forkoff",
            "inode-bad-aformat",
            "inode-extent-outside",
            "inode-extents-disordered",
            "inode-extent-empty",
            "inode-extent-beyond",
            "inode-nblocks-mismatch",
        ]],
        followers: &["parent-missing-pointer"],
    },
    Fold {
        tie: Tie::Object,
        causes: &[&["attr-bad-name", "attr-bad-flags"]],
        followers: &["attrleaf-bad-hash", "attrleaf-overlap"],
    },
    Fold { tie: Tie::Object, causes: &[&["attrleaf-bad-hash"]], followers: &["da-hash-mismatch"] },
    Fold { tie: Tie::Object, causes: &[&["attrremote-bad-value"]], followers: &["attrleaf-bad-hash"] },
    // An entry that was changed, and its hash in the index.
    Fold {
        tie: Tie::Object,
        causes: &[&["dir-bad-name", "dir-bad-dot", "dir-bad-dotdot", "dirdata-bad-namelen", "dirdata-bad-tag"]],
        followers: &["dirindex-", "dir-entry-without-inode", "dir-bad-filetype"],
    },
    Fold {
        tie: Tie::Object,
        causes: &[&["dirindex-bad-hash"]],
        followers: &["dirindex-entry-twice", "dirindex-missing-entry"],
    },
    // A directory that lost names, or has others: what children say of them.
    Fold {
        tie: Tie::Cause,
        causes: &[&[
            "dir-bad-name",
            "dirindex-",
            "dirdata-",
            "dir-missing-block",
            "dir-entry-without-inode",
            "da-bad-magic",
        ]],
        followers: &["parent-mismatch", "parent-without-entry"],
    },
    Fold {
        tie: Tie::Cause,
        causes: &[&["dir-bad-filetype"]],
        followers: &["parent-missing-pointer", "parent-without-entry"],
    },
    Fold { tie: Tie::Cause, causes: &[BROKEN_MAPS], followers: &["parent-without-entry", "dir-disconnected"] },
    Fold {
        tie: Tie::Cause,
        causes: &[&["dir-entry-without-inode", "dirindex-disagrees", "inode-nblocks-mismatch"]],
        followers: &["dir-disconnected", "parent-without-entry"],
    },
    // A record that is not in the inode btree.
    Fold { tie: Tie::Ag, causes: &[&["agi-count-mismatch"]], followers: &["finobt-chunk-unknown"] },
    Fold {
        tie: Tie::Ag,
        causes: &[&["inobt-bad-", "inobt-chunk-misaligned", "agi-count-mismatch"]],
        followers: &["dir-entry-without-inode", "dir-disconnected"],
    },
    Fold { tie: Tie::Cause, causes: &[&["space-refcount-mismatch"]], followers: &["inode-shared-without-flag"] },
    Fold {
        tie: Tie::Object,
        causes: &[&["rtbitmap-free-but-used", "rtbitmap-used-but-unowned"]],
        followers: &["rtsummary-mismatch"],
    },
    Fold {
        tie: Tie::Only,
        causes: &[&["rtbitmap-free-but-used", "rtbitmap-used-but-unowned"]],
        followers: &["rtbitmap-free-count"],
    },
    Fold { tie: Tie::Object, causes: &[&["rtrmap-record-invalid"]], followers: &["rtrmap-extra-mapping"] },
    Fold { tie: Tie::Only, causes: &[&["sb-bad-rootino", "sb-bad-metadirino"]], followers: &["dir-disconnected"] },
    Fold { tie: Tie::Object, causes: &[&["sb-dalign-without-unit"]], followers: &["sb-stripe-impossible"] },
    Fold { tie: Tie::Object, causes: &[&["sb-agblocks-not-striped"]], followers: &["sb-stripe-impossible"] },
];

fn is_one_of(id: &str, list: &[&str]) -> bool {
    list.iter().any(|&name| id == name || name.ends_with('-') && id.starts_with(name))
}

fn ag(ctx: &Ctx<'_>, object: Object) -> Option<AgNumber> {
    match object {
        Object::Ag(ag, _) | Object::Space(ag) | Object::Superblock(ag) => Some(ag),
        Object::Inode(ino) => ctx.geometry().split_inode(ino).map(|(ag, _)| ag),
        _ => None,
    }
}

impl Fold {
    fn ties(&self, ctx: &Ctx<'_>, cause: &Finding, follower: &Finding) -> bool {
        let tied = match self.tie {
            Tie::Object => cause.object == follower.object,
            Tie::Inode => cause.object == follower.object && cause.object.inode().is_some(),
            Tie::Cause => follower.cause == Some(cause.object),
            Tie::Ag => {
                let within = ag(ctx, follower.cause.unwrap_or(follower.object));
                within.is_some() && within == ag(ctx, cause.object)
            }
            Tie::Only => true,
        };
        tied && cause.rule.id != follower.rule.id
    }
}

/// Which finding each one follows from, where it does.
fn causes(ctx: &Ctx<'_>, findings: &[Finding]) -> Vec<Option<usize>> {
    let mut under: Vec<Option<usize>> = vec![None; findings.len()];
    for fold in FOLDS {
        let of = |ids: &[&[&str]]| -> Vec<(usize, &Finding)> {
            let damage = findings.iter().enumerate().filter(|(_, finding)| finding.rule.class.is_damage());
            damage.filter(|(_, finding)| ids.iter().any(|ids| is_one_of(finding.rule.id, ids))).collect()
        };
        let causes = of(fold.causes);
        if causes.is_empty() {
            continue;
        }
        for (at, follower) in of(&[fold.followers]) {
            let cause = causes.iter().find(|(_, cause)| fold.ties(ctx, cause, follower));
            let Some(&(cause, _)) = cause else { continue };
            let root = root(&under, cause);
            if let Some(slot) = under.get_mut(at).filter(|slot| slot.is_none() && root != at) {
                *slot = Some(root);
            }
        }
    }
    under
}

/// The finding at the end of a chain.
fn root(under: &[Option<usize>], from: usize) -> usize {
    let mut at = from;
    // Chains have no circles: none is entered whose end is its beginning.
    while let Some(&Some(next)) = under.get(at) {
        at = next;
    }
    at
}

/// Folds what follows from other findings under them. Gives what is left, and what was folded.
pub(super) fn fold(ctx: &Ctx<'_>, findings: Vec<Finding>) -> (Vec<Finding>, Vec<Finding>) {
    let under = causes(ctx, &findings);
    let mut kept: Vec<Option<Finding>> = findings.into_iter().map(Some).collect();
    let mut folded = Vec::new();
    for at in 0..kept.len() {
        if under.get(at).is_none_or(Option::is_none) {
            continue;
        }
        let Some(follower) = kept.get_mut(at).and_then(Option::take) else { continue };
        if let Some(Some(cause)) = kept.get_mut(root(&under, at)) {
            let count = follower.more.saturating_add(1);
            match cause.followed.iter_mut().find(|followed| followed.rule.id == follower.rule.id) {
                Some(followed) => followed.count = followed.count.saturating_add(count),
                None => cause.followed.push(Followed { rule: follower.rule, path: follower.path(), count }),
            }
        }
        folded.push(follower);
    }
    (kept.into_iter().flatten().collect(), folded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CATALOGUE;

    #[test]
    fn every_name_is_a_rule() {
        for name in FOLDS.iter().flat_map(|fold| fold.causes.iter().copied().flatten().chain(fold.followers)) {
            let known = CATALOGUE.iter().flat_map(|rules| rules.iter()).any(|rule| is_one_of(rule.id, &[name]));
            assert!(known, "{name}");
        }
    }
}
