//! Extended attributes: names, namespaces, lists that the kernel reads itself, parent pointers, and attributes that lie
//! in their inode. Leaves and large values: [`attr_leaf`](super::attr_leaf).
//!
//! `xfs_attr_shortform_verify` (xfs_attr_leaf.c), `scrub/attr.c`, `xfs_parent_valuecheck` (xfs_parent.c);
//! `process_attributes`, `xfs_acl_valid` (xfs_repair, attr_repair.c).

use super::attr_leaf;
use super::context::{Ctx, Spot};
use super::fork::{self, Buffers};
use super::names::{self, Target};
use super::raised;
use crate::format::attr_shortform::{self, flags};
use crate::format::bits;
use crate::format::dinode::{Fork, fork_format};
use crate::units::Ino;
use crate::walk::Inode;

raised! { RAISED, structure "attr";
    /// An attribute in the inode leaves the list, or the list does not end where its header says.
    SF_SIZE: "attrsf-entries-do-not-fit" corrupt "totsize", "attributes do not end with the list",
        source "xfs_attr_leaf.c:xfs_attr_shortform_verify; repair/attr_repair.c:process_shortform_attr", since "4.16";
    /// Bits of an attribute that mean nothing, or more than one namespace.
    BAD_FLAGS: "attr-bad-flags" corrupt "flags", "flags that exclude each other, or mean nothing",
        source "xfs_attr.c:xfs_attr_check_namespace; scrub/attr.c:xchk_xattr_rec; repair/attr_repair.c:process_shortform_attr",
        since "4.12";
    /// Names of attributes have 1 to 255 bytes, none of them zero. xfs_repair removes the attribute.
    BAD_NAME: "attr-bad-name" corrupt "name", "name that no attribute can have",
        source "xfs_attr.c:xfs_attr_namecheck; scrub/attr.c:xchk_xattr_actor; repair/attr_repair.c:process_shortform_attr",
        since "4.17";
    /// Lookups find the first of two attributes with one name, and changes are made to that: the other stays for ever.
    NAME_TWICE: "attr-name-twice" corrupt "name", "two attributes with the same name",
        source "xfs_attr_leaf.c:xfs_attr3_leaf_lookup_int (finds the first)", since "none";
    /// The value of an access control list or of capabilities is none. The kernel denies access to the file, or ignores
    /// the list. xfs_repair removes the attribute.
    BAD_VALUE: "attr-bad-list" corrupt "value", "value is no access control list, or no set of capabilities",
        source "xfs_acl.c:xfs_acl_from_disk; repair/attr_repair.c:valuecheck", since "2.6";
    /// An attribute was being changed when the file system stopped. It is not visible, and the next change removes it.
    INCOMPLETE: "attr-incomplete" preen "incomplete", "attribute left over from a change",
        source "scrub/attr.c:xchk_xattr_actor; repair/attr_repair.c:process_leaf_attr_block", since "scrub";
    /// A parent pointer has a directory and its generation as its value, 12 bytes beside its name, and is never being
    /// changed.
    BAD_PARENT: "parent-bad-pointer" corrupt "parent_dir", "no sound parent pointer",
        source "xfs_parent.c:xfs_parent_valuecheck, xfs_parent_namecheck; repair/attr_repair.c:process_shortform_attr",
        since "6.10";
    /// A parent pointer names an inode that does not exist. Where an inode btree is damaged, it may exist all the same.
    PARENT_NOWHERE: "parent-to-no-inode" xcorrupt "parent_dir", "parent pointer names what is no inode",
        source "scrub/parent.c:xchk_parent_iget; repair/phase6.c:check_parent_ptrs", since "scrub";
}

/// Names of access control lists, and of capabilities, in namespace trusted.
const ACLS: [&[u8]; 2] = [b"SGI_ACL_FILE", b"SGI_ACL_DEFAULT"];
const CAPABILITIES: &[u8] = b"SGI_CAP_FILE";

/// An attribute as it is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute<'a> {
    pub flags: u8,
    pub name: &'a [u8],
    /// The value where it lies beside the name.
    pub value: Option<&'a [u8]>,
}

impl Attribute<'_> {
    /// Are these two of one name? What is being changed may stand beside its successor; parent pointers are told apart by
    /// their values as well.
    pub fn is_same(&self, other: &Self) -> bool {
        let spaces = |attribute: &Self| attribute.flags & (flags::NAMESPACES | flags::INCOMPLETE);
        let parent = self.flags & flags::PARENT != 0;
        let complete = (self.flags | other.flags) & flags::INCOMPLETE == 0;
        complete && spaces(self) == spaces(other) && self.name == other.name && (!parent || self.value == other.value)
    }
}

/// Must the value be a list that the kernel reads?
pub(super) fn is_list(flag_bits: u8, name: &[u8]) -> bool {
    flag_bits & flags::ROOT != 0 && (ACLS.contains(&name) || name == CAPABILITIES)
}

/// Checks the attributes of an inode.
pub fn check(ctx: &Ctx<'_>, inode: Inode<'_>, buffers: &mut Buffers) {
    let sound = match (inode.fork(Fork::Attr), inode.format(Fork::Attr)) {
        (None, _) => true,
        (Some(bytes), fork_format::LOCAL) => shortform(ctx, inode, bytes),
        (Some(_), fork_format::EXTENTS) if inode.extents(Fork::Attr) == 0 => true,
        (Some(_), fork_format::EXTENTS | fork_format::BTREE) => attr_leaf::check(ctx, inode, buffers),
        // What is wrong with the inode is said elsewhere.
        _ => false,
    };
    if !sound {
        ctx.names.parents_unknown(ctx, inode.ino);
    }
}

/// Attributes in the inode. False: not all could be read.
fn shortform(ctx: &Ctx<'_>, inode: Inode<'_>, fork: &[u8]) -> bool {
    let spot = || fork::inode_spot(ctx, inode.ino);
    let Some(header) = attr_shortform::header(fork) else {
        ctx.raise(SF_SIZE, &spot(), format_args!("{} bytes", fork.len()), "room for the header");
        return false;
    };
    let mut end = 4usize;
    let mut found = 0u8;
    for entry in attr_shortform::entries(fork).take_while(|entry| !entry.name.is_empty()) {
        end = entry.at.saturating_add(entry.size);
        found = found.saturating_add(1);
    }
    if found != header.count {
        let right = format!("{} attributes, each with a name", header.count);
        ctx.raise(SF_SIZE, &spot(), format_args!("{found} that fit"), right);
        return false;
    }
    if end != usize::from(header.totsize) {
        ctx.raise(SF_SIZE, &spot(), header.totsize, end);
        return false;
    }
    for (i, entry) in attr_shortform::entries(fork).enumerate() {
        let part = || spot().part(format_args!("sfattr.list[{i}]"));
        if entry.flags & !flags::NAMESPACES != 0 {
            ctx.raise(BAD_FLAGS, &part(), format_args!("{:#x}", entry.flags), "namespace bits alone");
            continue;
        }
        let attribute = Attribute { flags: entry.flags, name: entry.name, value: Some(entry.value) };
        let mut before = attr_shortform::entries(fork).take(i);
        if before.any(|b| attribute.is_same(&Attribute { flags: b.flags, name: b.name, value: Some(b.value) })) {
            ctx.raise(NAME_TWICE, &part(), super::dir::shown(entry.name), "another name");
        }
        judge(ctx, inode, &attribute, &part);
    }
    true
}

/// Flags, name, and values that mean something to the kernel.
pub(super) fn judge(ctx: &Ctx<'_>, inode: Inode<'_>, attribute: &Attribute<'_>, spot: &dyn Fn() -> Spot) {
    let Attribute { flags: bits, name, value } = *attribute;
    let parents = ctx.context().features.has_parent();
    let spaces = bits & flags::NAMESPACES;
    if spaces.count_ones() > 1 || (spaces == flags::PARENT && !parents) {
        ctx.raise(BAD_FLAGS, &spot(), format_args!("{bits:#x}"), "one namespace");
        return;
    }
    if spaces == flags::PARENT {
        parent(ctx, inode, attribute, spot);
        return;
    }
    if name.is_empty() || name.contains(&0) {
        ctx.raise(BAD_NAME, &spot(), super::dir::shown(name), "1 to 255 bytes, none of them zero");
        return;
    }
    if bits & flags::INCOMPLETE != 0 {
        ctx.raise(INCOMPLETE, &spot(), super::dir::shown(name), "no attribute");
        return;
    }
    if is_list(bits, name)
        && let Some(value) = value
    {
        list(ctx, name, value, spot);
    }
}

/// A value that must be a list.
pub(super) fn list(ctx: &Ctx<'_>, name: &[u8], value: &[u8], spot: &dyn Fn() -> Spot) {
    let sound = if name == CAPABILITIES { value.len() == 24 } else { is_acl(ctx, value) };
    if !sound {
        let found = format!("{} bytes of {}", value.len(), super::dir::shown(name));
        ctx.raise(BAD_VALUE, &spot(), found, "entries as access control lists have them");
    }
}

/// Are these bytes an access control list?
fn is_acl(ctx: &Ctx<'_>, value: &[u8]) -> bool {
    let most = if ctx.context().has_crc() { (65536 - 4) / 12 } else { 25 };
    let Some(count) = bits::be32(value, 0).filter(|&count| count <= most) else { return false };
    let entries = value.get(4..).unwrap_or_default();
    let entries = entries.chunks_exact(12).take(usize::try_from(count).unwrap_or(0));
    let mut found = 0;
    // user, group, other, mask: each once at most.
    let (mut seen, mut named) = ([0u32; 4], Vec::new());
    for entry in entries {
        found += 1;
        let (tag, id) = (bits::be32(entry, 0).unwrap_or(0), bits::be32(entry, 4).unwrap_or(0));
        if bits::be16(entry, 8).unwrap_or(0) & !7 != 0 {
            return false;
        }
        let slot = match tag {
            0x01 => 0,
            0x04 => 1,
            0x20 => 2,
            0x10 => 3,
            0x02 | 0x08 => {
                named.push((tag, id));
                continue;
            }
            _ => return false,
        };
        if let Some(times) = seen.get_mut(slot) {
            *times += 1;
        }
    }
    let all = named.len();
    named.sort_unstable();
    named.dedup();
    let [user, group, other, mask] = seen;
    let once = user == 1 && group == 1 && other == 1 && mask <= 1;
    found == count && once && named.len() == all && (all == 0 || mask == 1)
}

/// A parent pointer.
fn parent(ctx: &Ctx<'_>, inode: Inode<'_>, attribute: &Attribute<'_>, spot: &dyn Fn() -> Spot) {
    let Attribute { flags: bits, name, value } = *attribute;
    let bad = |rule, found: String, right: &str| {
        ctx.raise(rule, &spot(), found, right);
        ctx.names.parents_unknown(ctx, inode.ino);
    };
    if bits & flags::INCOMPLETE != 0 {
        return bad(BAD_PARENT, "incomplete".to_owned(), "never being changed");
    }
    if name.is_empty() || name.iter().any(|&byte| byte == b'/' || byte == 0) {
        return bad(BAD_PARENT, super::dir::shown(name), "a name that a file can have");
    }
    let Some((parent, generation)) = value.and_then(attr_shortform::parent_of) else {
        let found = value.map_or_else(|| "value in blocks".to_owned(), |value| format!("{} bytes", value.len()));
        return bad(BAD_PARENT, found, "12 bytes beside the name");
    };
    if is_nowhere(ctx, parent) {
        return bad(PARENT_NOWHERE, format!("inode {parent}"), "a directory");
    }
    ctx.names.balance(ctx.slot(inode.ino), names::entry_number(parent, generation, name), true);
}

/// Can there be no directory of this number?
fn is_nowhere(ctx: &Ctx<'_>, ino: Ino) -> bool {
    ctx.geometry().split_inode(ino).is_none() || ctx.names.target(ctx, ino) == Target::Absent
}
