//! Single inodes, looked at as a check looks at them: fields, maps, and what metadata files must be. For callers that go
//! over few inodes and cannot tell what only a walk over everything tells: links, names, who else owns a block.

use super::context::{Ctx, Hooks, Options};
use super::finding::{Class, Finding};
use super::inode::Worker;
use super::recovery::LogFacts;
use super::{dinode, forks, inode, metafile};
use crate::walk::{Inode, Walk};
use std::sync::Arc;

/// Looks at single inodes.
#[derive(Debug)]
pub struct Alone<'c> {
    worker: Worker<'c>,
}

impl Alone<'_> {
    /// The fields of an inode in use: what is damaged.
    pub fn fields(&self, inode: Inode<'_>) -> Vec<Finding> {
        if inode::is_sound(&self.worker, inode) {
            dinode::check(&self.worker, inode);
        }
        self.take()
    }

    /// The fields of an inode in use, its maps, and what it must be where it is a metadata file: what is damaged.
    ///
    /// Memory: 24 bytes for each extent of the inode, 8 for each shared extent of the realtime section.
    pub fn whole(&mut self, inode: Inode<'_>) -> Vec<Finding> {
        if inode::is_sound(&self.worker, inode) && dinode::check(&self.worker, inode).forks {
            let forks = forks::check(&mut self.worker, inode);
            metafile::check(&self.worker, inode, forks.data);
        }
        // Nobody asks who else owns the blocks.
        self.worker.flush();
        for map in [&self.worker.ctx.owners, &self.worker.ctx.rt_owners] {
            map.ags().into_iter().for_each(|ag| drop(map.take(ag)));
        }
        self.take()
    }

    fn take(&self) -> Vec<Finding> {
        forks::unannounced(self.worker.ctx);
        let mut findings = self.worker.ctx.take_collected().gathered.take();
        findings.retain(|finding| matches!(finding.rule.class, Class::Corrupt | Class::XCorrupt));
        findings
    }
}

/// Gives `each` what looks at single inodes.
pub fn with<R>(walk: &Walk<'_>, each: impl FnOnce(&mut Alone<'_>) -> R) -> R {
    let (options, cancel) = (Options { threads: 1, ..Options::default() }, Arc::default());
    let hooks = Hooks { progress: &|_| {}, cancel: &cancel };
    let ctx = Ctx::new(walk, &options, LogFacts::default(), hooks);
    each(&mut Alone { worker: Worker::new(&ctx) })
}
