//! `explain`: what an id means, or which there are.

use super::args::ExplainArgs;
use super::session::Session;
use crate::error::{Error, Result};
use crate::hazard::{self, About, Row};
use crate::report::explain;
use crate::report::warning::{WARNINGS, warning};
use crate::{check, report::text::escaped};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// Explains each id; an unknown one is an error and does not keep the others from being explained.
pub fn run(session: &mut Session, args: &ExplainArgs) -> Result<()> {
    if args.catalogue {
        session.print(&explain::catalogue());
        return Ok(());
    }
    if args.ids.is_empty() {
        list(session);
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
                "tests": tests(rule),
            }))),
            Some(rule) => session.print(&explain::rule(rule)),
            None if rows.is_empty() => match warning(id) {
                Some(warning) if session.common.json => session.print_json(object(json!({
                    "type": "warning_info", "id": warning.id, "summary": warning.summary,
                    "explanation": warning.explanation, "advice": warning.advice,
                }))),
                Some(warning) => session.print(&explain::warning(warning)),
                None => session.error(&Error::request(unknown(id))),
            },
            None => {}
        }
    }
    Ok(())
}

/// The kernel's own tests of the same.
fn tests(rule: &check::RuleInfo) -> Vec<Json> {
    hazard::iget::tests_of(rule)
        .map(|test| json!({ "what": test.what, "field": test.field, "when": test.at.name(), "releases": test.releases(), "source": test.source }))
        .collect()
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

/// Every id with what it says, in the order of the alphabet.
fn every_id() -> BTreeMap<&'static str, (&'static str, &'static str)> {
    let rules = check::CATALOGUE.iter().flat_map(|rules| rules.iter());
    let rules = rules.map(|rule| (rule.id, ("finding", rule.summary)));
    let warnings = WARNINGS.iter().map(|warning| (warning.id, ("warning", warning.summary)));
    // An id that is two things is explained as the first of hazard, finding, warning.
    let hazards = hazard::rows().map(|row| (row.id, ("hazard", row.title)));
    warnings.chain(rules).chain(hazards).collect()
}

fn list(session: &mut Session) {
    let all = every_id();
    let width = all.keys().map(|id| id.len()).max().unwrap_or(0);
    for (id, (kind, says)) in all {
        if session.common.json {
            session.print_json(object(json!({ "type": "id", "id": id, "kind": kind, "summary": says })));
        } else {
            session.print(&format!("{id:<width$}  {kind:<7}  {says}\n"));
        }
    }
}

/// No such id; those that have it in their name are offered, else those that are written nearly so.
fn unknown(id: &str) -> String {
    let all = every_id();
    let mut near: Vec<&str> =
        all.keys().copied().filter(|known| !id.is_empty() && known.contains(id)).take(8).collect();
    if near.is_empty() {
        let mut ranked: Vec<(f64, &str)> = all.keys().map(|known| (strsim::jaro_winkler(id, known), *known)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        near = ranked.into_iter().take_while(|(score, _)| *score > 0.8).map(|(_, known)| known).take(4).collect();
    }
    let offer = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
    let id = escaped(id.as_bytes());
    format!("{id}: no hazard, finding or warning has that id{offer} (explain without an id lists them all)")
}
