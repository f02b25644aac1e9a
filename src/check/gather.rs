//! Findings as they come, from any thread in any order. What is kept of them, and what folded, hangs on the findings alone:
//! always the first in the order of the disk, never those that came first.

use super::finding::{Class, Finding, Object};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

/// Findings of one rule that are kept; the rest is counted.
const KEPT_PER_RULE: usize = 200;

/// Objects of which a rule keeps findings: more than are ever shown.
const OBJECTS: usize = 1000;

/// What findings of a rule are folded by: an object, and what else tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Under {
    pub object: Object,
    pub detail: String,
}

/// Findings of one rule about one object.
#[derive(Debug)]
struct Group {
    count: u64,
    most: usize,
    /// The first `most` in the order of the disk, each with when it came.
    kept: Vec<(u64, Finding)>,
}

impl Group {
    fn add(&mut self, when: u64, finding: Finding) {
        self.count = self.count.saturating_add(1);
        let at = self.kept.partition_point(|(_, kept)| order(kept, &finding) != Ordering::Greater);
        if at < self.most {
            self.kept.insert(at, (when, finding));
            self.kept.truncate(self.most);
        }
    }

    fn shown(count: u64, most: usize) -> u64 {
        count.min(u64::try_from(most).unwrap_or(u64::MAX))
    }
}

#[derive(Debug, Default)]
struct OfRule {
    groups: BTreeMap<Under, Group>,
    /// Findings about objects behind those: how many, and how many are shown.
    beyond: HashMap<Under, (u64, usize)>,
}

/// Where a finding stands among those of its rule.
fn order(a: &Finding, b: &Finding) -> Ordering {
    let place = |f: &Finding| (f.place.device, f.place.byte, f.place.length);
    place(a)
        .cmp(&place(b))
        .then_with(|| a.place.structure.cmp(&b.place.structure))
        .then_with(|| a.place.field.cmp(&b.place.field))
        .then_with(|| a.object.cmp(&b.object))
        .then_with(|| (&a.found, &a.expected).cmp(&(&b.found, &b.expected)))
        .then_with(|| a.cause.cmp(&b.cause))
}

/// The order of a report: damage first, then what could not be judged because of it, then what could not be looked at, and
/// what is merely odd; each in the order of the disk.
pub(super) fn in_report(a: &Finding, b: &Finding) -> Ordering {
    let rank = |finding: &Finding| match finding.rule.class {
        Class::Corrupt | Class::XCorrupt => 0,
        Class::XFailed => 1,
        Class::Incomplete => 2,
        Class::Preen | Class::Warning => 3,
    };
    let key = |finding: &Finding| (rank(finding), finding.place.device, finding.place.byte, finding.rule.id);
    key(a).cmp(&key(b)).then_with(|| order(a, b))
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    rules: BTreeMap<&'static str, OfRule>,
    classes: BTreeMap<&'static str, Class>,
    came: u64,
}

/// What is told of all that was found.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The findings that are kept.
    pub findings: Vec<Finding>,
    /// All findings, by rule.
    pub by_rule: BTreeMap<&'static str, u64>,
    /// All findings, by class.
    pub by_class: BTreeMap<Class, u64>,
    /// Findings that are folded under another one of the same rule and object, and not counted above.
    pub folded: u64,
}

impl Gathered {
    /// Adds a finding; of those of its rule `under` the same at most `most` are kept.
    pub fn add(&mut self, finding: Finding, under: Under, most: usize) {
        self.came = self.came.saturating_add(1);
        self.classes.insert(finding.rule.id, finding.rule.class);
        let of = self.rules.entry(finding.rule.id).or_default();
        if let Some((count, _)) = of.beyond.get_mut(&under) {
            *count = count.saturating_add(1);
            return;
        }
        let group = of.groups.entry(under).or_insert_with(|| Group { count: 0, most, kept: Vec::new() });
        group.add(self.came, finding);
        if of.groups.len() > OBJECTS
            && let Some((under, group)) = of.groups.pop_last()
        {
            of.beyond.insert(under, (group.count, group.most));
        }
    }

    /// Is there one of this rule?
    pub fn has(&self, rule: &str) -> bool {
        self.rules.contains_key(rule)
    }

    /// The findings that are kept, as they came, and nothing of them any more.
    pub fn take(&mut self) -> Vec<Finding> {
        let rules = std::mem::take(&mut self.rules);
        let mut all: Vec<(u64, Finding)> =
            rules.into_values().flat_map(|of| of.groups.into_values().flat_map(|group| group.kept)).collect();
        all.sort_unstable_by_key(|(when, _)| *when);
        all.into_iter().map(|(_, finding)| finding).collect()
    }

    /// What is told of them.
    pub fn told(self) -> Told {
        let mut told = Told::default();
        for (rule, of) in self.rules {
            let groups = of.groups.values().map(|group| (group.count, group.most));
            let (mut count, mut shown) = (0u64, 0u64);
            for (all, most) in groups.chain(of.beyond.into_values()) {
                count = count.saturating_add(all);
                shown = shown.saturating_add(Group::shown(all, most));
            }
            told.folded = told.folded.saturating_add(count.saturating_sub(shown));
            told.by_rule.insert(rule, shown);
            if let Some(class) = self.classes.get(rule) {
                let of_class = told.by_class.entry(*class).or_insert(0);
                *of_class = of_class.saturating_add(shown);
            }
            let mut kept = Vec::new();
            for mut group in of.groups.into_values() {
                let rest = group.count.saturating_sub(u64::try_from(group.kept.len()).unwrap_or(0));
                if let Some((_, last)) = group.kept.last_mut() {
                    last.more = last.more.saturating_add(rest);
                }
                kept.extend(group.kept.into_iter().map(|(_, finding)| finding));
            }
            kept.sort_by(order);
            kept.truncate(KEPT_PER_RULE);
            told.findings.append(&mut kept);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Place;
    use crate::units::{ByteOffset, Device, Ino};

    fn finding(byte: u64, ino: u64) -> (Finding, Under) {
        let place = Place::new(Device::Data, ByteOffset(byte), 1, "x");
        let object = Object::Inode(Ino(ino));
        (
            Finding::new(crate::check::context::NOT_LOOKED_AT, place, byte, ino).about(object),
            Under { object, detail: String::new() },
        )
    }

    /// Thousands of findings in any order: always the same are kept, and the same are counted.
    #[test]
    fn what_is_kept_hangs_on_no_order() {
        let all: Vec<u64> = (0..5000).collect();
        let told = |of: &dyn Fn(u64) -> u64| {
            let mut gathered = Gathered::default();
            for &i in &all {
                let n = of(i);
                let (finding, under) = finding(n, n / 3);
                gathered.add(finding, under, 2);
            }
            let told = gathered.told();
            let bytes: Vec<_> = told.findings.iter().map(|f| (f.place.byte.0, f.more)).collect();
            (bytes, told.by_rule, told.by_class, told.folded)
        };
        let forward = told(&|i| i);
        assert_eq!(forward, told(&|i| 4999 - i));
        assert_eq!(forward, told(&|i| i * 2477 % 5000));
        assert_eq!(forward.0.iter().take(4).copied().collect::<Vec<_>>(), [(0, 0), (1, 1), (3, 0), (4, 1)]);
        assert_eq!((forward.0.len(), forward.3), (200, 1666));
    }
}
