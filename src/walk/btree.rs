//! The one btree walk: any index of an AG, the extent maps of inodes, the btrees of realtime groups.
//!
//! Blocks come in the order of their keys, a node before its children. The blocks below a node are read together,
//! in ascending disk order. `xfs_btree_visit_blocks`, `xfs_btree_simple_query_range` (xfs_btree.c).

use super::batch::Batch;
use super::{Visited, Walk, corrupt, index};
use crate::error::{Error, Place, Result};
use crate::format::btree_block::{Children, Parts, Shape, head};
use crate::format::checksum::{self, CrcState};
use crate::format::{Context, bits};
use crate::units::{AgBlock, AgNumber, Device, FsBlock, Ino};

/// More levels than any btree has (`XFS_BTREE_MAXLEVELS` is 9).
const MAX_LEVELS: u32 = 16;
/// Bytes of leaves and of nodes that are read ahead at most.
const AHEAD: [u64; 2] = [1 << 20, 256 << 10];
/// Blocks read ahead at first: whoever wants only the beginning should not pay for all.
const FIRST_AHEAD: usize = 8;

/// Where a btree begins.
#[derive(Clone, Copy, Debug)]
pub enum Root<'a> {
    /// A block that an AG header names.
    Ag {
        /// The AG; short pointers are blocks of it.
        ag: AgNumber,
        /// The root block.
        block: AgBlock,
        /// Levels, as the header says: 1 for a single leaf.
        levels: u32,
    },
    /// A fork of an inode.
    Fork {
        /// The inode.
        ino: Ino,
        /// The bytes of the fork.
        bytes: &'a [u8],
    },
}

/// Where a block of a btree lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A block of the data device.
    Block(FsBlock),
    /// The root, in the inode.
    Inode(Ino),
}

/// A block of a btree, in memory.
#[derive(Clone, Copy, Debug)]
pub struct TreeBlock<'a> {
    /// Where it lies.
    pub at: At,
    /// 0 for leaves.
    pub level: u16,
    /// The block; the fork where the root lies in an inode.
    pub bytes: &'a [u8],
    /// Its checksum.
    pub crc: CrcState,
    shape: &'static Shape,
    context: &'a Context,
}

impl<'a> TreeBlock<'a> {
    /// The records of a leaf; none for a node. The count is cut to what the block can hold.
    pub fn records(&self) -> Parts<'a> {
        match self.at {
            At::Block(_) => self.shape.records(self.context, self.bytes),
            At::Inode(_) => match self.shape.root(self.bytes) {
                Some(root) => root.records(),
                None => Parts::new(&[], 0, 1, 0),
            },
        }
    }

    /// Key and pointer of each child of a node; none for a leaf.
    pub fn children(&self) -> Option<Children<'a>> {
        match self.at {
            At::Block(_) => Some(self.shape.children(self.context, self.bytes)),
            At::Inode(_) => self.shape.root(self.bytes).map(|root| root.children()),
        }
    }
}

/// A child of a node, before it is entered.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    /// Its level.
    pub level: u16,
    /// Its key in the node; low and high key where records may overlap.
    pub key: &'a [u8],
    /// Key of the child after it; `None` for the last one.
    pub next_key: Option<&'a [u8]>,
}

/// Which children are entered.
struct Filter<'a>(Box<dyn Fn(&Child<'_>) -> bool + 'a>);

impl std::fmt::Debug for Filter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Filter")
    }
}

/// The pointers of the children that are to be entered.
fn chosen<'b>(filter: Option<&'b Filter<'_>>, level: u16, children: Children<'b>) -> impl Iterator<Item = u64> + 'b {
    let mut children = children.peekable();
    std::iter::from_fn(move || {
        loop {
            let (key, pointer) = children.next()?;
            let next_key = children.peek().map(|&(key, _)| key);
            if filter.is_none_or(|filter| (filter.0)(&Child { level, key, next_key })) {
                return Some(pointer);
            }
        }
    })
}

/// The blocks below one node.
#[derive(Debug, Default)]
struct Frame {
    level: u16,
    pointers: Vec<FsBlock>,
    next: usize,
    loaded_to: usize,
    ahead: usize,
    batch: Batch,
}

impl Frame {
    fn fill(&mut self, level: u16, pointers: impl Iterator<Item = FsBlock>) {
        self.level = level;
        self.pointers.clear();
        self.pointers.extend(pointers);
        (self.next, self.loaded_to, self.ahead) = (0, 0, FIRST_AHEAD);
    }
}

/// Where the current block lies in memory.
#[derive(Clone, Copy, Debug)]
enum Current {
    /// The root in the inode.
    Root,
    /// A block of the batch of that frame.
    Frame(usize, FsBlock, u16, CrcState),
}

/// The blocks of a btree, one after the other. Not an `Iterator`, since each block is only lent.
#[derive(Debug)]
pub struct Blocks<'a> {
    walk: &'a Walk<'a>,
    shape: &'static Shape,
    root: Root<'a>,
    frames: Vec<Frame>,
    spare: Vec<Frame>,
    wanted: Vec<FsBlock>,
    visited: Visited,
    current: Option<Current>,
    /// A block that follows the errors about it.
    queued: Option<Current>,
    errors: Vec<Error>,
    filter: Option<Filter<'a>>,
    started: bool,
    done: bool,
}

impl<'a> Blocks<'a> {
    /// The blocks of the btree of that shape that begins at `root`.
    pub fn new(walk: &'a Walk<'a>, shape: &'static Shape, root: Root<'a>) -> Self {
        Self {
            walk,
            shape,
            root,
            frames: Vec::new(),
            spare: Vec::new(),
            wanted: Vec::new(),
            visited: Visited::default(),
            current: None,
            queued: None,
            errors: Vec::new(),
            filter: None,
            started: false,
            done: false,
        }
    }

    /// Only those blocks for which `wanted` holds, and for all blocks above them: to look something up by its key.
    pub fn only(
        walk: &'a Walk<'a>,
        shape: &'static Shape,
        root: Root<'a>,
        wanted: impl Fn(&Child<'_>) -> bool + 'a,
    ) -> Self {
        Self { filter: Some(Filter(Box::new(wanted))), ..Self::new(walk, shape, root) }
    }

    /// The next block, or what is wrong with one. `None` at the end.
    ///
    /// A block that cannot be read or entered is an error, and the walk goes on with its siblings. A block whose
    /// checksum or count is wrong is an error, and then comes itself.
    pub fn next_block(&mut self) -> Option<Result<TreeBlock<'_>>> {
        match self.advance()? {
            Ok(()) => self.current().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// Moves on: [`Blocks::current`] then has the block. `None` at the end; errors as in [`Blocks::next_block`].
    pub fn advance(&mut self) -> Option<Result<()>> {
        self.current = None;
        if !self.started {
            self.started = true;
            self.enter_root();
        }
        loop {
            if let Some(error) = self.errors.pop() {
                return Some(Err(error));
            }
            if let Some(queued) = self.queued.take() {
                self.current = Some(queued);
                return Some(Ok(()));
            }
            if self.done {
                return None;
            }
            self.next_child();
        }
    }

    /// The block that the last step came to.
    pub fn current(&self) -> Option<TreeBlock<'_>> {
        let (shape, context) = (self.shape, self.walk.context());
        match (self.current?, self.root) {
            (Current::Root, Root::Fork { ino, bytes }) => {
                let level = shape.root(bytes)?.level;
                Some(TreeBlock { at: At::Inode(ino), level, bytes, crc: CrcState::Unchecked, shape, context })
            }
            (Current::Frame(frame, block, level, crc), _) => {
                let bytes = self.frames.get(frame)?.batch.get(block, index(context.block_size))?;
                Some(TreeBlock { at: At::Block(block), level, bytes, crc, shape, context })
            }
            _ => None,
        }
    }

    /// The place of a block of this btree.
    pub fn place(&self, at: At) -> Place {
        let name = self.shape.kind.name();
        let owner = match self.root {
            Root::Ag { ag, .. } => format!("agf {ag}"),
            Root::Fork { ino, .. } => format!("inode {ino}"),
        };
        match at {
            At::Block(block) => self.walk.place(block, format!("{owner} › {name} block {block}")),
            At::Inode(ino) => {
                let byte = self.walk.geometry().inode_byte(ino).unwrap_or_default();
                let length = u64::from(self.walk.context().inode_size);
                Place::new(Device::Data, byte, length, format!("{owner} › {name} root"))
            }
        }
    }

    fn enter_root(&mut self) {
        match self.root {
            Root::Ag { ag, block, levels } => self.enter_ag_root(ag, block, levels),
            Root::Fork { ino, bytes } => self.enter_fork_root(ino, bytes),
        }
    }

    fn enter_ag_root(&mut self, ag: AgNumber, block: AgBlock, levels: u32) {
        let name = self.shape.kind.name();
        let header = self.walk.geometry().ag_start(ag).unwrap_or_default();
        let size = u64::from(self.walk.context().sector_size).saturating_mul(4);
        let place = Place::new(Device::Data, header, size, format!("headers of AG {ag} › {name}"));
        self.done = true;
        let level = levels.checked_sub(1).filter(|_| levels <= MAX_LEVELS).and_then(|n| u16::try_from(n).ok());
        let Some(level) = level else {
            self.errors.push(corrupt(place, "levels of the btree", levels, format_args!("1 to {MAX_LEVELS}")));
            return;
        };
        let Some(root) = self.walk.geometry().join(ag, block) else {
            let most = self.walk.geometry().ag_length(ag).unwrap_or(0);
            self.errors.push(corrupt(place, "root of the btree", block, format_args!("a block below {most}")));
            return;
        };
        self.done = false;
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.fill(level, std::iter::once(root));
        self.frames.push(frame);
    }

    fn enter_fork_root(&mut self, ino: Ino, bytes: &'a [u8]) {
        let place = self.place(At::Inode(ino));
        let Some(root) = self.shape.root(bytes) else {
            self.done = true;
            self.errors.push(corrupt(place, "the fork has no room for a btree root", bytes.len(), "4 bytes or more"));
            return;
        };
        let most = if root.level == 0 { root.max_records } else { root.max_keys };
        if u32::from(root.numrecs) > most {
            self.errors.push(corrupt(place.field("numrecs"), "more than the fork can hold", root.numrecs, most));
        }
        self.queued = Some(Current::Root);
        if u32::from(root.level) >= MAX_LEVELS {
            let bound = format!("below {MAX_LEVELS}");
            self.errors.push(corrupt(place.field("level"), "levels of the btree", root.level, bound));
            return;
        }
        if let Some(level) = root.level.checked_sub(1) {
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.fill(level, chosen(self.filter.as_ref(), level, root.children()).map(FsBlock));
            self.frames.push(frame);
        }
    }

    /// Comes to the next child of the innermost node, or leaves that node.
    fn next_child(&mut self) {
        let depth = self.frames.len();
        let Some(frame) = self.frames.last_mut() else {
            self.done = true;
            return;
        };
        let Some(&block) = frame.pointers.get(frame.next) else {
            self.spare.extend(self.frames.pop());
            return;
        };
        if let Err(error) = self.walk.step(1) {
            self.errors.push(error);
            self.done = true;
            return;
        }
        if frame.next >= frame.loaded_to {
            let size = self.walk.geometry().block_size();
            let most = AHEAD.get(usize::from(frame.level.min(1))).and_then(|n| n.checked_div(size)).unwrap_or(1);
            let most = usize::try_from(most).unwrap_or(1).clamp(1, frame.ahead);
            self.wanted.clear();
            let ahead = frame.pointers.iter().skip(frame.next).take(most);
            self.wanted.extend(ahead.filter(|block| !self.visited.contains(block.0)));
            frame.loaded_to = frame.next.saturating_add(most);
            frame.ahead = frame.ahead.saturating_mul(4);
            frame.batch.load(self.walk.volume(), &mut self.wanted);
        }
        frame.next = frame.next.saturating_add(1);
        let level = frame.level;
        if !self.visited.first_time(block.0) {
            let place = self.place(At::Block(block));
            self.errors.push(corrupt(place, "the block is reached twice", block, "each block once"));
            return;
        }
        self.enter(depth.saturating_sub(1), block, level);
    }

    /// Looks at a block that was read: may it be entered, and what is below it?
    fn enter(&mut self, depth: usize, block: FsBlock, level: u16) {
        let context = self.walk.context();
        let bytes = self.frames.get(depth).and_then(|f| f.batch.get(block, index(context.block_size)));
        let Some(bytes) = bytes else {
            let place = self.place(At::Block(block));
            // Ask again, for the error.
            self.errors.push(match self.walk.volume().blocks(block, 1, place.structure.clone()) {
                Err(Error::Request(_)) => {
                    corrupt(place, "pointer to a block that does not exist", block, "a block of the AG")
                }
                Err(error) => error,
                Ok(_) => corrupt(place, "the block could not be read with its neighbours", block, "a readable block"),
            });
            return;
        };
        let Some(head) = head(bytes) else { return };
        let right = self.shape.magic_of(context);
        let refused = if head.magic != right {
            Some(("magic", "no block of this btree", format!("{:#x}", head.magic), format!("{right:#x}")))
        } else if head.level != level {
            Some(("level", "level of the block", head.level.to_string(), level.to_string()))
        } else {
            None
        };
        if let Some((field, what, found, expected)) = refused {
            let place = self.place(At::Block(block)).field(field);
            self.errors.push(corrupt(place, what, found, expected));
            return;
        }
        let most = if level == 0 { self.shape.max_records(context) } else { self.shape.max_keys(context) };
        let numrecs = u32::from(head.numrecs);
        let crc = match context.has_crc() {
            true => checksum::verify(bytes, self.shape.crc_offset()),
            false => CrcState::Unchecked,
        };
        let stored = bits::array(bytes, self.shape.crc_offset()).map_or(0, u32::from_le_bytes);
        if let Some(below) = level.checked_sub(1) {
            let mut frame = self.spare.pop().unwrap_or_default();
            let (root, geometry) = (self.root, self.walk.geometry());
            let children = self.shape.children(context, bytes);
            let pointers = chosen(self.filter.as_ref(), below, children).map(|pointer| match root {
                // A pointer out of the AG stays visible as a block that does not exist.
                Root::Ag { ag, .. } => u32::try_from(pointer)
                    .ok()
                    .and_then(|block| geometry.join(ag, AgBlock(block)))
                    .unwrap_or(FsBlock(u64::MAX ^ pointer)),
                Root::Fork { .. } => FsBlock(pointer),
            });
            frame.fill(below, pointers);
            self.frames.push(frame);
        }
        self.queued = Some(Current::Frame(depth, block, level, crc));
        if numrecs > most {
            let place = self.place(At::Block(block)).field("numrecs");
            self.errors.push(corrupt(place, "more than the block can hold", numrecs, most));
        }
        if let CrcState::Bad { computed } = crc {
            let place = self.place(At::Block(block)).field("crc");
            let (stored, computed) = (crate::format::Crc(stored).to_string(), crate::format::Crc(computed).to_string());
            self.errors.push(corrupt(place, "the checksum is wrong", stored, computed));
        }
    }
}
