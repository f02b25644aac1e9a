//! What a repair would have to do, in plain words.

use super::finding::{Class, Finding, Object};
use super::{agi, copies, counters, inobt, journal, links, rt, tree};
use crate::format::Type;
use crate::units::{AgNumber, Ino};
use std::collections::{BTreeMap, BTreeSet};

/// What a repair would have to do, in plain words, each once: made of all findings, told or not.
#[derive(Debug, Default)]
pub(super) struct Repair {
    steps: BTreeSet<(u8, String)>,
    /// Superblock copies with the same fault: the field, nothing where the whole copy is to be written.
    copies: BTreeMap<(u8, &'static str), BTreeSet<u32>>,
}

const PRIMARY_FROM_COPIES: &str = "write the primary superblock from its copies";

/// What helps where most copies are from before a grow, which xfs_repair would believe.
const GROW_AGAIN: &str = "not be done by xfs_repair: it would believe the old copies, cut the file system back and drop what lies behind; \
    mount it and grow it once more (xfs_growfs), which writes all copies";

/// The same, where the primary is lost, too.
const PRIMARY_BY_HAND: &str = "not be done by xfs_repair: it would believe the copies from before the grow, cut the file system back and drop what \
    lies behind; write sector 0 from a copy that tells of the whole size, mount it and grow it once more (xfs_growfs)";

/// What helps where the copies are from before the log was moved.
const LOG_FIRST: &str = "not be done by xfs_repair: it would make the old log the log again, and what waits in the new one would be lost; \
    mount and unmount it first, then write the place of the log into all superblocks";

/// The primary says that the log lies on a device of its own, which was not given; the copies say that it is internal.
const LOG_UNCLEAR: &str = "wait: was the log moved to a device of its own? If so, give it (--logdev), mount with it and unmount first; if \
    not, write the primary superblock from its copies";

/// Steps of a repair that are kept.
const STEPS: usize = 10_000;

impl Repair {
    /// What this finding asks for.
    pub fn add(&mut self, finding: &Finding, ag_count: u32) {
        if !finding.rule.class.is_damage() {
            return;
        }
        let step = match finding.object {
            _ if finding.rule.id == copies::COPY_STALE.id => (0, GROW_AGAIN.to_owned()),
            _ if finding.rule.id == copies::LOG_MOVED.id => (0, LOG_FIRST.to_owned()),
            Object::Superblock(AgNumber(0)) => primary(ag_count, finding),
            Object::Superblock(ag) => {
                let field = field_to_mend(finding);
                let step = (u8::from(field.is_none()), field.unwrap_or_default());
                self.copies.entry(step).or_default().insert(ag.0);
                return;
            }
            _ => of(finding),
        };
        self.steps.insert(step);
        if self.steps.len() > STEPS {
            self.steps.pop_last();
        }
    }

    /// All steps, in the order in which they would be taken.
    pub fn plan(mut self) -> Vec<String> {
        if self.steps.contains(&(0, GROW_AGAIN.to_owned())) && self.steps.remove(&(0, PRIMARY_FROM_COPIES.to_owned())) {
            self.steps.remove(&(0, GROW_AGAIN.to_owned()));
            self.steps.insert((0, PRIMARY_BY_HAND.to_owned()));
        }
        for ((order, field), ags) in self.copies {
            let (one, list) = (ags.len() == 1, ranges(&ags));
            let text = match (field, one) {
                ("", true) => format!("write superblock copy {list} from the primary"),
                ("", false) => format!("write superblock copies {list} from the primary"),
                (field, true) => format!("mend {field} of superblock {list}"),
                (field, false) => format!("mend {field} of superblocks {list}"),
            };
            self.steps.insert((order, text));
        }
        self.steps.into_iter().map(|(_, text)| text).collect()
    }
}

/// Numbers as a reader likes them: `1 to 4, 7`.
pub(super) fn ranges(numbers: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &n in numbers {
        match runs.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(n) => last.1 = n,
            _ => runs.push((n, n)),
        }
    }
    let text = |&(first, last): &(u32, u32)| match last.saturating_sub(first) {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// What a repair would have to do about a finding that is about no superblock.
fn of(finding: &Finding) -> (u8, String) {
    match finding.object {
        _ if finding.rule.id == inobt::ZEROED.id => {
            (7, format!("clear {} and every name that leads there", finding.place.structure))
        }
        _ if [links::ORPHAN.id, tree::DISCONNECTED.id].contains(&finding.rule.id) => {
            (8, "put what has no name into lost+found".to_owned())
        }
        _ if finding.rule.id == links::NLINK.id => (8, "set link counts to the number of names".to_owned()),
        _ if finding.rule.id == agi::NOT_EMPTY.id => (8, "free the inodes that were left on unlinked lists".to_owned()),
        _ if [tree::NO_POINTER.id, tree::NO_ENTRY.id, tree::OTHER_POINTER.id].contains(&finding.rule.id) => {
            (8, "rebuild parent pointers from the directories".to_owned())
        }
        Object::Ag(ag, Type::Agf | Type::Agfl | Type::Bnobt | Type::Cntbt) | Object::Space(ag) => {
            (2, format!("rebuild the free space btrees and headers of AG {ag}"))
        }
        Object::Ag(ag, Type::Agi | Type::Inobt | Type::Finobt) => (3, format!("rebuild the inode btrees of AG {ag}")),
        Object::Ag(ag, Type::Rmapbt) => (4, format!("rebuild the reverse mapping btree of AG {ag}")),
        Object::Ag(ag, Type::Refcntbt) => (5, format!("rebuild the refcount btree of AG {ag}")),
        Object::Ag(ag, _) => (6, format!("rebuild the headers of AG {ag}")),
        Object::Inode(ino) => of_inode(finding, ino),
        _ if finding.rule.id == rt::rules::DEVICE_SHORT.id => {
            (0, "wait: give the whole realtime device first".to_owned())
        }
        _ if finding.rule.id == rt::rules::DEVICE_OTHER.id => {
            (0, "wait: give the right realtime device first".to_owned())
        }
        _ if finding.rule.id == rt::rules::RTSB_MAGIC.id => {
            (8, "write the realtime superblock anew, if this is the right device".to_owned())
        }
        _ if finding.rule.structure == "rtsb" => (8, "write the realtime superblock from superblock 0".to_owned()),
        Object::Realtime(group) => (8, format!("rebuild the metadata of realtime group {group}")),
        Object::Log if finding.rule.id == journal::AHEAD.id => (9, "move the log on".to_owned()),
        Object::Log if finding.rule.id == journal::FOREIGN.id => {
            (0, "be kept from doing anything until the right log is found".to_owned())
        }
        Object::Log => (9, "throw the log away (xfs_repair -L), and with it all changes that wait in it".to_owned()),
        _ if finding.rule.id == copies::DEVICE_SHORT.id => {
            (0, "wait: make the device as long as the file system first".to_owned())
        }
        Object::FileSystem | Object::Superblock(_) => (10, "count the superblock's counters anew".to_owned()),
    }
}

/// Rules about fields of an inode that xfs_repair corrects in place: in none of its cases did the file go.
const CORRECTED: &[&str] = &[
    "inode-bad-cowextsize",
    "inode-bad-extsize",
    "inode-bad-nblocks",
    "inode-bad-next-unlinked",
    "inode-bad-onlink",
    "inode-bad-padding",
    "inode-bad-projid",
    "inode-flag-without-shared",
    "inode-inherited-cowextsize-misfit",
    "inode-nblocks-mismatch",
    "inode-unlinked-unlisted",
    "inode-version-1",
];

/// What a repair would have to do about an inode, and what may be lost by it: as xfs_repair does, by what is damaged.
fn of_inode(finding: &Finding, ino: Ino) -> (u8, String) {
    let text = match finding.rule.structure {
        "dquot" if finding.rule.class == Class::Corrupt => {
            format!(
                "write empty quota records in place of the damaged ones of inode {ino} (their limits must be set again)"
            )
        }
        "dquot" => "have usage of quotas counted anew (the next mount with quotas does)".to_owned(),
        "attr" | "attr.leaf" => format!("mend the attributes of inode {ino}, or drop them (the file stays)"),
        "dir" | "dir.data" | "dir.free" | "dir.index" => {
            format!("rebuild directory inode {ino} (what loses its name goes to lost+found)")
        }
        "da" => format!("rebuild the directory, or mend or drop the attributes, of inode {ino}"),
        "symlink" => format!("mend or clear symbolic link inode {ino}"),
        _ if ["inode-bad-aformat", "inode-bad-anextents", "inode-anextents-mismatch"].contains(&finding.rule.id) => {
            format!("mend the attributes of inode {ino}, or drop them (the file stays)")
        }
        _ if CORRECTED.contains(&finding.rule.id) => format!("correct fields of inode {ino} (the file stays)"),
        _ => format!("mend or clear inode {ino}"),
    };
    (7, text)
}

/// The field of a superblock that is to be mended; `None` where all of it is to be written.
fn field_to_mend(finding: &Finding) -> Option<&'static str> {
    let whole =
        ["sb-bad-crc", "sb-bad-magic", copies::UNUSABLE.id, copies::PRIMARY_DIFFERS.id, copies::COPY_DIFFERS.id];
    (!whole.contains(&finding.rule.id)).then_some(finding.place.field.unwrap_or(finding.rule.field))
}

/// What a repair would have to do about the primary superblock.
fn primary(ag_count: u32, finding: &Finding) -> (u8, String) {
    match field_to_mend(finding) {
        _ if finding.rule.id == copies::NEEDS_REPAIR.id => (11, "clear the mark once all is sound".to_owned()),
        None if finding.rule.id == copies::PRIMARY_DIFFERS.id
            && finding.place.field == Some("logstart")
            && finding.found == "0" =>
        {
            (0, LOG_UNCLEAR.to_owned())
        }
        None if ag_count == 1 => (0, "write a new superblock: there is no copy".to_owned()),
        None => (0, PRIMARY_FROM_COPIES.to_owned()),
        Some(field) if counters::COUNTED.contains(&finding.rule.id) => {
            (10, format!("count {field} of the superblock anew"))
        }
        Some(field) => (0, format!("mend {field} of superblock 0")),
    }
}
