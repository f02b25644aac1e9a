//! JSON: one object for an answer, one object per line for lists. The schema is docs/json.md.
//!
//! Numbers are JSON integers, addresses are also given in bytes with their device, bytes that are no UTF-8 stand
//! lossy under their name and exact under `NAME_hex`.

use super::text::is_hidden;
use super::value::{Value, View, state_name};
use crate::check::Finding;
use crate::error::{Error, Place};
use crate::format::features::{BITS, Word};
use crate::format::superblock::Superblock;
use crate::format::{Body, Field, Format, Node, Null};
use crate::geometry::Geometry;
use serde_json::{Map, Value as Json, json};

/// Version of the schema; grows when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// An object on one line, without its end. What moves a terminal or hides ([`is_hidden`]) is escaped, too, where JSON
/// itself would not ask for it.
pub fn text(object: Map<String, Json>) -> String {
    escape_hidden(Json::Object(object).to_string())
}

/// Text of JSON with its hidden characters escaped. They occur within strings only.
pub fn escape_hidden(json: String) -> String {
    use std::fmt::Write;
    if !json.contains(is_hidden) {
        return json;
    }
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        if is_hidden(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
        out
    })
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len().saturating_mul(2)), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

/// Puts bytes under `name`, and exactly under `name_hex` where they are no UTF-8.
pub fn put_bytes(object: &mut Map<String, Json>, name: &str, bytes: &[u8]) {
    object.insert(name.to_owned(), String::from_utf8_lossy(bytes).into_owned().into());
    if std::str::from_utf8(bytes).is_err() {
        object.insert(format!("{name}_hex"), hex(bytes).into());
    }
}

/// A place as fields of an object: `device`, `byte`, `length_bytes`, `structure`.
pub fn place(place: &Place) -> Map<String, Json> {
    let mut object = Map::new();
    object.insert("device".into(), place.device.name().into());
    object.insert("byte".into(), place.byte.0.into());
    object.insert("length_bytes".into(), place.length.into());
    object.insert("structure".into(), place.structure.clone().into());
    object
}

/// A finding, with the fields that `check` promises.
pub fn finding(finding: &Finding) -> Map<String, Json> {
    let mut object = Map::new();
    let Json::Object(fields) = json!({
        "type": "finding",
        "id": finding.rule.id,
        "class": finding.rule.class.name(),
        "device": finding.place.device.name(),
        "byte": finding.place.byte.0,
        "structure": finding.place.structure,
        "field": finding.place.field.unwrap_or(finding.rule.field),
        "path": finding.path(),
        "found": finding.found,
        "expected": finding.expected,
        "message": finding.rule.summary,
        "object_path": Json::Null,
    }) else {
        return object;
    };
    object.extend(fields);
    if let Some(path) = &finding.object_path {
        match finding.in_metadir {
            true => put_bytes(&mut object, "object_path", &[b"(metadir)/", path.as_slice()].concat()),
            false => put_bytes(&mut object, "object_path", path),
        }
    }
    if finding.more > 0 {
        object.insert("more".into(), finding.more.into());
    }
    if !finding.followed.is_empty() {
        let followed =
            finding.followed.iter().map(|one| json!({"id": one.rule.id, "path": one.path, "count": one.count}));
        object.insert("followed_by".into(), followed.collect());
    }
    object
}

/// An error that an answer goes on after: `kind` tells what it means, the place is null where there is none.
pub fn error(error: &Error) -> Map<String, Json> {
    let (kind, place) = match error {
        Error::Io { place, .. } => ("io", Some(place)),
        Error::Unsupported { place, .. } => ("unsupported", Some(place)),
        Error::Corrupt { place, .. } => ("corrupt", Some(place)),
        Error::System { .. } => ("system", None),
        Error::Request(_) => ("request", None),
        Error::Exhausted { .. } => ("exhausted", None),
        Error::NotXfs(_) => ("not-xfs", None),
    };
    let mut object = Map::new();
    object.insert("type".into(), "error".into());
    object.insert("kind".into(), kind.into());
    object.insert("device".into(), place.map(|place| place.device.name()).into());
    object.insert("byte".into(), place.map(|place| place.byte.0).into());
    object.insert("structure".into(), place.map(|place| place.structure.clone()).into());
    object.insert("field".into(), place.and_then(|place| place.field).into());
    object.insert("message".into(), error.to_string().into());
    object
}

/// Nodes as an object: names as in xfs_db, values as numbers, strings, arrays and objects.
pub fn nodes(view: View<'_>, nodes: &[Node]) -> Map<String, Json> {
    let mut object = Map::new();
    for node in nodes.iter().filter(|node| !node.skip) {
        match &node.body {
            Body::Group(parts) => {
                object.insert(node.name.into(), self::nodes(view, parts).into());
            }
            Body::List { items, .. } => {
                let list: Vec<Json> = items.iter().map(|item| self::nodes(view, &item.nodes).into()).collect();
                object.insert(node.name.into(), list.into());
            }
            Body::Empty => {
                object.insert(node.name.into(), Json::Null);
            }
            Body::Value { bits, count, index: None, format, null } if *count == 1 => {
                value(&mut object, view, node.name, (node.bit, *bits), (*format, *null));
            }
            Body::Value { bits, count, format, null, .. } => {
                let list: Vec<Json> = (0..*count)
                    .map(|i| u64::from(i).saturating_mul(u64::from(*bits)).saturating_add(node.bit))
                    .map(|bit| element(view, (bit, *bits), (*format, *null)))
                    .collect();
                object.insert(node.name.into(), list.into());
            }
            Body::Records { fields, stride, count, .. } => {
                let list: Vec<Json> = (0..*count)
                    .map(|i| u64::from(i).saturating_mul(u64::from(*stride)).saturating_add(node.bit))
                    .map(|bit| record(view, fields, bit))
                    .collect();
                object.insert(node.name.into(), list.into());
            }
        }
    }
    object
}

fn record(view: View<'_>, fields: &[Field], base: u64) -> Json {
    let mut object = Map::new();
    for field in fields.iter().filter(|f| !f.skip && (f.exists)(view.context, view.bytes)) {
        let bit = base.saturating_add(u64::from(field.bit));
        value(&mut object, view, field.name, (bit, field.bits), (field.format, field.null));
    }
    object.into()
}

fn element(view: View<'_>, (bit, bits): (u64, u32), (format, null): (Format, Null)) -> Json {
    match view.read(bit, bits, format, null) {
        Some(Value::Number(n)) => n.into(),
        Some(Value::Signed(n)) => n.into(),
        Some(Value::Uuid(uuid)) => uuid.to_string().into(),
        Some(Value::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned().into(),
        Some(Value::Crc(crc, _)) => crc.into(),
        Some(Value::Null) | None => Json::Null,
    }
}

fn value(object: &mut Map<String, Json>, view: View<'_>, name: &str, bits: (u64, u32), how: (Format, Null)) {
    match view.read(bits.0, bits.1, how.0, how.1) {
        Some(Value::Text(bytes)) => put_bytes(object, name, bytes),
        Some(Value::Crc(crc, state)) => {
            object.insert(name.into(), crc.into());
            object.insert(format!("{name}_state"), state_name(state).into());
        }
        _ => {
            object.insert(name.into(), element(view, bits, how));
        }
    }
}

/// The figures of `info`: everything in blocks and in bytes.
pub fn geometry(sb: &Superblock, zoned: (u64, u64), geometry: &Geometry) -> Map<String, Json> {
    let block = u64::from(sb.blocksize);
    let bytes = |blocks: u64| blocks.checked_mul(block).map_or(Json::Null, Json::from);
    let f = sb.features();
    let words = |word: Word| f.word(word);
    let Json::Object(mut object) = json!({
        "version": f.version(),
        "uuid": sb.uuid.to_string(),
        "meta_uuid": f.has_meta_uuid().then(|| sb.meta_uuid.to_string()),
    }) else {
        return Map::new();
    };
    put_bytes(&mut object, "label", sb.label());
    let features: Map<String, Json> = BITS
        .iter()
        .filter(|bit| f.is_v5() || matches!(bit.word, Word::Version | Word::Features2))
        .map(|bit| (bit.name.to_owned(), Json::from(words(bit.word) & bit.mask != 0)))
        .collect();
    object.insert("features".into(), features.into());
    object.insert(
        "feature_words".into(),
        json!({
            "versionnum": sb.versionnum, "features2": sb.features2, "bad_features2": sb.bad_features2,
            "compat": f.compat, "ro_compat": f.ro_compat, "incompat": f.incompat, "log_incompat": f.log_incompat,
        }),
    );
    let log_start = geometry.log_start.and_then(|start| geometry.block_byte(start)).map(|byte| byte.0);
    let sectors = if f.has_sector() { u32::from(sb.logsectsize) } else { 512 };
    object.insert(
        "data".into(),
        json!({
            "block_size_bytes": sb.blocksize, "sector_size_bytes": sb.sectsize,
            "blocks": sb.dblocks.0, "length_bytes": bytes(sb.dblocks.0),
            "ag_count": sb.agcount.0, "ag_blocks": sb.agblocks, "ag_bytes": bytes(u64::from(sb.agblocks)),
            "last_ag_blocks": geometry.ag_length(crate::units::AgNumber(geometry.ag_count.saturating_sub(1))),
            "inode_max_percent": sb.imax_pct,
            "stripe_unit_blocks": sb.unit, "stripe_unit_bytes": bytes(u64::from(sb.unit)),
            "stripe_width_blocks": sb.width, "stripe_width_bytes": bytes(u64::from(sb.width)),
            "root_ino": sb.rootino.0,
        }),
    );
    object.insert(
        "inodes".into(),
        json!({
            "size_bytes": sb.inodesize, "per_block": sb.inopblock, "align_blocks": sb.inoalignmt.0,
            "sparse_align_blocks": sb.spino_align.0,
        }),
    );
    object.insert("naming".into(), json!({ "version": 2, "block_size_bytes": geometry.context.dir_block_size }));
    object.insert(
        "log".into(),
        json!({
            "internal": geometry.log_start.is_some(), "version": if f.has_logv2() { 2 } else { 1 },
            "start_fsblock": geometry.log_start.map(|b| b.0), "start_bytes": log_start,
            "device": if geometry.log_start.is_some() { "data" } else { "log" },
            "blocks": sb.logblocks.0, "length_bytes": bytes(u64::from(sb.logblocks.0)),
            "sector_size_bytes": sectors, "stripe_unit_bytes": sb.logsunit,
        }),
    );
    let rt = geometry.realtime.as_ref();
    object.insert(
        "realtime".into(),
        json!({
            "present": sb.rblocks.0 != 0,
            "device": rt.map(|rt| rt.device.name()),
            "start_bytes": rt.map(|rt| rt.start_bytes),
            "extent_size_blocks": sb.rextsize, "extent_size_bytes": bytes(u64::from(sb.rextsize)),
            "blocks": sb.rblocks.0, "length_bytes": bytes(sb.rblocks.0), "extents": sb.rextents.0,
            "bitmap_blocks": sb.rbmblocks.0, "bitmap_bytes": bytes(u64::from(sb.rbmblocks.0)),
            "summary_levels": if sb.rblocks.0 == 0 { 0 } else { u32::from(sb.rextslog).saturating_add(1) },
            "groups": f.has_metadir().then_some(sb.rgcount), "group_extents": f.has_metadir().then_some(sb.rgextents),
            "zoned": f.has_zoned(), "start_blocks": zoned.0, "reserved_blocks": zoned.1,
            "reserved_bytes": bytes(zoned.1),
        }),
    );
    object.insert(
        "quota".into(),
        json!({
            "flags": sb.qflags,
            "user_ino": inode_number(sb.uquotino), "group_ino": inode_number(sb.gquotino),
            "project_ino": inode_number(sb.pquotino),
        }),
    );
    object.insert(
        "counters".into(),
        json!({
            "inodes_allocated": sb.icount, "inodes_free": sb.ifree,
            "free_blocks": sb.fdblocks, "free_bytes": bytes(sb.fdblocks),
            "free_realtime_extents": sb.frextents,
            "free_realtime_bytes": bytes(sb.frextents.saturating_mul(u64::from(sb.rextsize))),
        }),
    );
    object
}

fn inode_number(ino: crate::units::Ino) -> Json {
    if ino.is_null() || ino.0 == 0 { Json::Null } else { ino.0.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_beyond_those_of_json() {
        let mut object = Map::new();
        object.insert("name".into(), "a\u{1b}\u{7f}\u{9b}2J\u{e4}".into());
        let text = text(object.clone());
        assert_eq!(text, "{\"name\":\"a\\u001b\\u007f\\u009b2J\u{e4}\"}");
        assert_eq!(serde_json::from_str::<Json>(&text).expect("valid"), Json::Object(object));
    }
}
