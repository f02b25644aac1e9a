//! `explain`: what an id means.

use super::args::ExplainArgs;
use super::session::Session;
use crate::error::{Error, Result};
use crate::hazard::{self, About, Row};
use crate::report::explain;
use crate::{check, report::text::escaped};
use serde_json::{Map, Value as Json, json};

/// Explains each id; an unknown one is an error and does not keep the others from being explained.
pub fn run(session: &mut Session, args: &ExplainArgs) -> Result<()> {
    if args.catalogue {
        session.print(&explain::catalogue());
        return Ok(());
    }
    for (i, id) in args.ids.iter().enumerate() {
        if i > 0 && !session.common.json {
            session.print("\n");
        }
        let rows = hazard::rows_of(id);
        for (i, row) in rows.iter().enumerate() {
            if session.common.json {
                session.print_json(of_hazard(row));
            } else {
                session.print(&format!("{}{}", if i > 0 { "\n" } else { "" }, explain::hazard(row)));
            }
        }
        match check::rule(id).filter(|_| rows.is_empty()) {
            Some(rule) if session.common.json => session.print_json(object(json!({
                "type": "rule", "id": rule.id, "class": rule.class.name(), "structure": rule.structure, "field": rule.field,
                "summary": rule.summary, "explanation": words(rule.explanation), "source": rule.source, "since": rule.since,
            }))),
            Some(rule) => session.print(&explain::rule(rule)),
            None if rows.is_empty() => session.error(&Error::request(unknown(id))),
            None => {}
        }
    }
    Ok(())
}

fn object(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(map) => map,
        _ => Map::new(),
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn of_hazard(row: &Row) -> Map<String, Json> {
    let about = match row.about {
        About::Kernel => "kernel",
        About::Grub => "grub",
        About::Tools => "xfsprogs",
    };
    let effects: Vec<Json> = row
        .effects
        .iter()
        .map(|e| json!({ "versions": explain::range_of(row.about, e), "severity": e.severity.name(), "conditional": e.only.is_some(), "outcome": e.outcome }))
        .collect();
    object(json!({
        "type": "hazard_info", "id": row.id, "ref": row.refs, "about": about, "severity": row.severity().name(), "title": row.title,
        "effects": effects, "explanation": words(row.explanation), "advice": words(row.advice), "source": row.source,
        "confidence": row.confidence.name(), "example": row.fire,
    }))
}

/// No such id; those that have it in their name are offered.
fn unknown(id: &str) -> String {
    let rules = check::CATALOGUE.iter().flat_map(|rules| rules.iter()).map(|rule| rule.id);
    let near: Vec<&str> =
        hazard::rows().map(|row| row.id).chain(rules).filter(|known| known.contains(id)).take(8).collect();
    let offer =
        if near.is_empty() || id.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
    format!("{}: no hazard or finding has that id{offer}", escaped(id.as_bytes()))
}
