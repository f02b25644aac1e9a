//! Keys and records of btrees, so that they can be compared and told: what the walk over blocks has to know of each kind.
//! `init_key_from_rec`, `init_high_key_from_rec`, `cmp_two_keys` of each btree (xfs_*_btree.c).

use super::owners::Within;
use crate::format::{Type, bits};

/// A key, comparable: most significant part first.
pub type Key = [u64; 3];

/// The key of a record, as a node above it would hold it.
pub(super) fn record_key(kind: Type, record: &[u8]) -> Key {
    let u32_at = |at| u64::from(bits::be32(record, at).unwrap_or(0));
    let u64_at = |at| bits::be64(record, at).unwrap_or(0);
    match kind {
        Type::Bnobt | Type::Inobt | Type::Finobt | Type::Refcntbt | Type::Rtrefcntbt => [u32_at(0), 0, 0],
        Type::Cntbt => [u32_at(4), u32_at(0), 0],
        Type::Rmapbt | Type::Rtrmapbt => [u32_at(0), u64_at(8), u64_at(16) & !Within::UNWRITTEN],
        _ => [(u64_at(0) & 0x7fff_ffff_ffff_ffff) >> 9, 0, 0],
    }
}

/// Low and high key of a child in a node.
pub(super) fn node_keys(kind: Type, key: &[u8]) -> (Key, Option<Key>) {
    let u32_at = |at| u64::from(bits::be32(key, at).unwrap_or(0));
    let u64_at = |at| bits::be64(key, at).unwrap_or(0);
    match kind {
        Type::Bnobt | Type::Inobt | Type::Finobt | Type::Refcntbt | Type::Rtrefcntbt => ([u32_at(0), 0, 0], None),
        Type::Cntbt => ([u32_at(4), u32_at(0), 0], None),
        Type::Rmapbt | Type::Rtrmapbt => {
            let pair = |at: usize| {
                [u32_at(at), u64_at(at.saturating_add(4)), u64_at(at.saturating_add(12)) & !Within::UNWRITTEN]
            };
            (pair(0), Some(pair(20)))
        }
        _ => ([u64_at(0), 0, 0], None),
    }
}

/// Has the low or the high key of a child the mark of unwritten extents?
pub(super) fn is_unwritten(key: &[u8]) -> bool {
    [12, 32].into_iter().any(|at| bits::be64(key, at).unwrap_or(0) & Within::UNWRITTEN != 0)
}

/// End of what a record of a reverse mapping btree covers (`xfs_rmapbt_init_high_key_from_rec`).
pub(super) fn record_high(record: &[u8]) -> Key {
    let [start, owner, offset] = record_key(Type::Rmapbt, record);
    let more = u64::from(bits::be32(record, 4).unwrap_or(0)).saturating_sub(1);
    let file = owner >> 63 == 0 && offset & Within::TREE == 0;
    let offset =
        if file { (offset.wrapping_add(more) & 0x3f_ffff_ffff_ffff) | (offset & !0x3f_ffff_ffff_ffff) } else { offset };
    [start.saturating_add(more), owner, offset]
}

/// May `b` follow `a`?
pub(super) fn in_order(kind: Type, a: &[u8], b: &[u8]) -> bool {
    let u32_at = |bytes, at| u64::from(bits::be32(bytes, at).unwrap_or(0));
    match kind {
        Type::Bnobt | Type::Refcntbt | Type::Rtrefcntbt => u32_at(a, 0).saturating_add(u32_at(a, 4)) <= u32_at(b, 0),
        Type::Inobt | Type::Finobt => u32_at(a, 0).saturating_add(64) <= u32_at(b, 0),
        Type::Cntbt => record_key(kind, a) < record_key(kind, b),
        Type::Rmapbt | Type::Rtrmapbt => record_key(kind, a) <= record_key(kind, b),
        _ => {
            let length = bits::be64(a, 8).unwrap_or(0) & 0x1f_ffff;
            record_key(kind, a)[0].saturating_add(length) <= record_key(kind, b)[0]
        }
    }
}

/// Keys of a node: only those of reverse mapping btrees may be equal.
pub(super) fn keys_in_order(kind: Type, a: Key, b: Key) -> bool {
    if matches!(kind, Type::Rmapbt | Type::Rtrmapbt) { a <= b } else { a < b }
}

/// Text of a key.
pub(super) fn key_text(kind: Type, key: Key) -> String {
    let [a, b, c] = key;
    match kind {
        Type::Cntbt => format!("length {a}, block {b}"),
        Type::Rmapbt | Type::Rtrmapbt => format!("block {a}, owner {}, offset {c:#x}", b.cast_signed()),
        _ => a.to_string(),
    }
}

/// Text of a record for an order finding.
pub(super) fn record_text(kind: Type, record: &[u8]) -> String {
    let length = |at| bits::be32(record, at).unwrap_or(0);
    match kind {
        Type::Bnobt | Type::Cntbt => format!("[{},{}]", length(0), length(4)),
        Type::Refcntbt | Type::Rtrefcntbt => format!("[{:#x},{}]", length(0), length(4)),
        _ => key_text(kind, record_key(kind, record)),
    }
}
