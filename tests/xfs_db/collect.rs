//! What to ask about: every metadata block of a file system, found by walking from the headers. Deliberately simple,
//! and apart from the library's own walks.

use std::collections::HashSet;
use xfsinspect::format::bmbt::{self, Extent};
use xfsinspect::format::btree_block::Shape;
use xfsinspect::format::dinode::{self, Fork, flags, fork_format, fork_range, metatype, mode};
use xfsinspect::format::{
    Structure, Type, agf::Agf, agi::Agi, bits, bnobt, cntbt, finobt, inobt, refcountbt, rmapbt, rtrefcountbt, rtrmapbt,
};
use xfsinspect::units::{AgBlock, AgIno, AgNumber, FsBlock, Ino, RtBlock};
use xfsinspect::volume::{AgHeader, Volume};

/// Commands that make xfs_db print a structure, and the bytes of that structure.
pub struct Question {
    pub commands: Vec<String>,
    pub kind: Type,
    pub bytes: Vec<u8>,
}

pub struct Collector<'a> {
    volume: &'a Volume,
    questions: Vec<Question>,
    seen: HashSet<(Type, u64)>,
}

impl<'a> Collector<'a> {
    pub fn collect(volume: &'a Volume) -> Vec<Question> {
        let mut collector = Self { volume, questions: Vec::new(), seen: HashSet::new() };
        for ag in 0..volume.geometry().ag_count {
            collector.group(AgNumber(ag));
        }
        collector.realtime_superblock();
        collector.questions
    }

    fn put(&mut self, kind: Type, bytes: Vec<u8>, commands: &[String]) {
        let mut commands = commands.to_vec();
        commands.push("print".to_owned());
        self.questions.push(Question { commands, kind, bytes });
    }

    /// A block of the data device, as a structure of that type. `false` if it was asked for before.
    fn block(&mut self, kind: Type, block: FsBlock) -> Option<Vec<u8>> {
        if !self.seen.insert((kind, block.0)) {
            return None;
        }
        let mut bytes = self.volume.blocks(block, 1, kind.name()).ok()?.bytes;
        let read = bytes.clone();
        bytes.truncate(kind.size(self.volume.context()) as usize);
        let name = match (kind, self.volume.context().has_crc()) {
            (Type::Attr3, false) => "attr",
            (Type::Dir3, false) => "dir2",
            (kind, _) => kind.name(),
        };
        self.put(kind, bytes, &[format!("fsblock {block}"), format!("type {name}")]);
        Some(read)
    }

    fn group(&mut self, ag: AgNumber) {
        for (kind, header) in [
            (Type::Sb, AgHeader::Superblock),
            (Type::Agf, AgHeader::Agf),
            (Type::Agi, AgHeader::Agi),
            (Type::Agfl, AgHeader::Agfl),
        ] {
            let bytes = self.volume.ag_header(ag, header).unwrap().bytes;
            self.put(kind, bytes, &[format!("{} {ag}", header.name())]);
        }
        let agf = Agf::decode(&self.volume.ag_header(ag, AgHeader::Agf).unwrap().bytes).unwrap();
        let agi = Agi::decode(&self.volume.ag_header(ag, AgHeader::Agi).unwrap().bytes).unwrap();
        let features = self.volume.context().features;
        self.ag_tree(ag, &bnobt::SHAPE, agf.bno_root, &mut |_| {});
        self.ag_tree(ag, &cntbt::SHAPE, agf.cnt_root, &mut |_| {});
        if features.has_rmapbt() {
            self.ag_tree(ag, &rmapbt::SHAPE, agf.rmap_root, &mut |_| {});
        }
        if features.has_reflink() {
            self.ag_tree(ag, &refcountbt::SHAPE, agf.refcount_root, &mut |_| {});
        }
        if features.has_finobt() {
            self.ag_tree(ag, &finobt::SHAPE, agi.free_root, &mut |_| {});
        }
        let mut inodes = Vec::new();
        let context = self.volume.context().clone();
        self.ag_tree(ag, &inobt::SHAPE, agi.root, &mut |record| {
            let chunk = inobt::Chunk::at(&context, record, 0).unwrap();
            inodes.extend((0..64).filter(|&i| chunk.has_space(i)).map(|i| AgIno(chunk.startino.0 + i)));
        });
        // Some data, to see how plain bytes are shown.
        for kind in [Type::Data, Type::Text] {
            self.block(kind, self.volume.geometry().join(ag, AgBlock(0)).unwrap());
        }
        for agino in inodes {
            self.inode(self.volume.geometry().join_inode(ag, agino).unwrap());
        }
    }

    fn ag_tree(&mut self, ag: AgNumber, shape: &Shape, root: AgBlock, leaf: &mut dyn FnMut(&[u8])) {
        let context = self.volume.context().clone();
        let Some(block) = self.volume.geometry().join(ag, root) else { return };
        let Some(bytes) = self.block(shape.kind, block) else { return };
        shape.records(&context, &bytes).for_each(&mut *leaf);
        for (_, child) in shape.children(&context, &bytes) {
            self.ag_tree(ag, shape, AgBlock(child as u32), leaf);
        }
    }

    fn long_tree(&mut self, shape: &Shape, block: u64, leaf: &mut dyn FnMut(&[u8])) {
        let context = self.volume.context().clone();
        let Some(bytes) = self.block(shape.kind, FsBlock(block)) else { return };
        shape.records(&context, &bytes).for_each(&mut *leaf);
        for (_, child) in shape.children(&context, &bytes) {
            self.long_tree(shape, child, leaf);
        }
    }

    fn inode(&mut self, ino: Ino) {
        let bytes = self.volume.inode(ino).unwrap().bytes;
        self.put(Type::Inode, bytes.clone(), &[format!("inode {ino}")]);
        let used = bits::be16(&bytes, 2) != Some(0);
        if !used {
            return;
        }
        let meta = dinode::flags2_of(&bytes) & dinode::flags2::METADATA != 0;
        let metakind = if meta { bits::be16(&bytes, 6).unwrap() } else { metatype::UNKNOWN };
        for (kind, shape) in [(metatype::RTRMAP, &rtrmapbt::SHAPE), (metatype::RTREFCOUNT, &rtrefcountbt::SHAPE)] {
            if metakind == kind && bytes[5] == fork_format::META_BTREE {
                let (at, len) = fork_range(&bytes, Fork::Data).unwrap();
                let children: Vec<u64> = shape.root(&bytes[at..at + len]).unwrap().children().map(|c| c.1).collect();
                children.iter().for_each(|&child| self.long_tree(shape, child, &mut |_| {}));
            }
        }
        let data = self.extents(&bytes, Fork::Data);
        let attr = self.extents(&bytes, Fork::Attr);
        self.data_fork(ino, &bytes, metakind, &data);
        for extent in attr {
            for i in 0..u64::from(extent.blockcount) {
                let bytes = self.volume.blocks(FsBlock(extent.startblock.0 + i), 1, "attr3").unwrap().bytes;
                let commands = [format!("inode {ino}"), format!("ablock {}", extent.startoff.0 + i)];
                self.put(Type::Attr3, bytes, &commands);
            }
        }
    }

    /// The extents of a fork; asks about the blocks of its btree.
    fn extents(&mut self, inode: &[u8], fork: Fork) -> Vec<Extent> {
        let Some((at, len)) = fork_range(inode, fork) else { return Vec::new() };
        let bytes = &inode[at..at + len];
        let mut list = Vec::new();
        let (format, shape) = match fork {
            Fork::Data => (inode[5], &bmbt::SHAPE),
            Fork::Attr => (inode[83], &bmbt::ATTR_SHAPE),
        };
        match format {
            fork_format::EXTENTS => {
                let count = dinode::extent_count(inode, fork) as usize;
                list.extend((0..count).map_while(|i| Extent::at(bytes, i * 16)));
            }
            fork_format::BTREE => {
                let children: Vec<u64> = shape.root(bytes).unwrap().children().map(|c| c.1).collect();
                for child in children {
                    self.long_tree(shape, child, &mut |record| list.extend(Extent::at(record, 0)));
                }
            }
            _ => {}
        }
        list
    }

    fn data_fork(&mut self, ino: Ino, inode: &[u8], metakind: u16, extents: &[Extent]) {
        let sb = self.volume.superblock();
        let kind = bits::be16(inode, 2).unwrap() & mode::TYPE;
        let quotas = [sb.uquotino, sb.gquotino, sb.pquotino];
        let features = self.volume.context().features;
        if kind == mode::DIRECTORY {
            return self.directory(ino, extents);
        }
        let what = match metakind {
            metatype::USRQUOTA | metatype::GRPQUOTA | metatype::PRJQUOTA => Type::Dqblk,
            metatype::RTBITMAP => Type::Rgbitmap,
            metatype::RTSUMMARY => Type::Rgsummary,
            _ if kind == mode::SYMLINK => Type::Symlink,
            _ if quotas.contains(&ino) && !features.has_metadir() => Type::Dqblk,
            _ if ino == sb.rbmino && sb.rblocks.0 > 0 && !features.has_metadir() => Type::Rtbitmap,
            _ if ino == sb.rsumino && sb.rblocks.0 > 0 && !features.has_metadir() => Type::Rtsummary,
            _ => return,
        };
        assert!(bits::be16(inode, 90).unwrap() & flags::REALTIME == 0, "metadata on the realtime device");
        for extent in extents.iter().filter(|extent| !extent.unwritten) {
            for i in 0..u64::from(extent.blockcount) {
                let block = FsBlock(extent.startblock.0 + i);
                if what == Type::Symlink {
                    // `type symlink` would read only a part of the block and find its checksum wrong.
                    let bytes = self.volume.blocks(block, 1, "symlink").unwrap().bytes;
                    self.put(what, bytes, &[format!("inode {ino}"), format!("dblock {}", extent.startoff.0 + i)]);
                    continue;
                }
                let bytes = self.block(what, block);
                if let (Type::Dqblk, Some(bytes)) = (what, bytes) {
                    self.quotas(ino, metakind, extent.startoff.0 + i, &bytes);
                }
            }
        }
    }

    /// Each record of a quota block by its id.
    fn quotas(&mut self, ino: Ino, metakind: u16, file_block: u64, bytes: &[u8]) {
        let sb = self.volume.superblock();
        let option = match metakind {
            metatype::USRQUOTA => "-u",
            metatype::GRPQUOTA => "-g",
            metatype::PRJQUOTA => "-p",
            _ if ino == sb.uquotino => "-u",
            _ if ino == sb.pquotino => "-p",
            _ => "-g",
        };
        let per_block = self.volume.context().block_size as u64 / 136;
        for (i, record) in bytes.chunks_exact(136).enumerate() {
            let id = file_block * per_block + i as u64;
            // xfs_db reads the id with strtol: what does not fit a signed number is another id to it.
            if id < 1 << 31 {
                self.put(Type::Dqblk, record.to_vec(), &[format!("dquot {option} {id}")]);
            }
        }
    }

    /// Each directory block, which may be put together of several pieces.
    fn directory(&mut self, ino: Ino, extents: &[Extent]) {
        let context = self.volume.context();
        let blocks = u64::from(context.dir_block_size / context.block_size);
        let mut starts: Vec<u64> = extents
            .iter()
            .flat_map(|e| (0..u64::from(e.blockcount)).map(|i| e.startoff.0 + i))
            .map(|offset| offset / blocks * blocks)
            .collect();
        starts.dedup();
        let place = |offset: u64| {
            let extent =
                extents.iter().find(|e| (e.startoff.0..e.startoff.0 + u64::from(e.blockcount)).contains(&offset));
            extent.map(|e| FsBlock(e.startblock.0 + offset - e.startoff.0)).unwrap()
        };
        for start in starts {
            let bytes: Vec<u8> =
                (0..blocks).flat_map(|i| self.volume.blocks(place(start + i), 1, "dir3").unwrap().bytes).collect();
            self.put(Type::Dir3, bytes, &[format!("inode {ino}"), format!("dblock {start}")]);
        }
    }

    fn realtime_superblock(&mut self) {
        let own_device = self.volume.devices().rt.is_some();
        if self.volume.context().features.has_metadir() && own_device && self.volume.superblock().rblocks.0 > 0 {
            let bytes = self.volume.rt_blocks(RtBlock(0), 1, "rtsb").unwrap().bytes;
            self.put(Type::Rtsb, bytes, &["rtsb".to_owned()]);
        }
    }
}
