//! The answer of `preflight` as JSON lines.

use super::explain::range_of;
use crate::hazard::{About, Answer, Applied, Evaluation, Kernel, LogState, Modes, Row, Severity, Verdict};
use serde_json::{Map, Value as Json, json};

/// The answer as JSON lines: a head, a verdict per kernel, a line per row and kernel, a line per row of loaders and tools.
pub fn lines(name: &str, evaluation: &Evaluation<'_>, kernels: &[Kernel], warnings: Json) -> Vec<Map<String, Json>> {
    let f = evaluation.facts;
    let log = match f.log {
        LogState::Clean => json!("clean"),
        LogState::Dirty => json!("dirty"),
        LogState::Unknown => Json::Null,
    };
    let headers = f.headers.as_ref().ok();
    let mut lines = vec![object(json!({
        "type": "preflight",
        "schema": super::json::SCHEMA,
        "target": name,
        "log": log,
        "ags_looked_at": headers.map(|h| h.looked_at),
        "ags": f.sb.agcount.0,
        "superblock": super::json::place(&f.place),
        "warnings": warnings,
    }))];
    for kernel in kernels {
        let verdict = evaluation.verdict(kernel);
        let ids = |list: &[Applied<'_>]| list.iter().map(|a| a.row.id).collect::<Vec<_>>();
        let needs = [("rt-device-needed", "rtdev"), ("log-device-needed", "logdev")];
        let needs: Vec<&str> = needs
            .into_iter()
            .filter(|(id, _)| matches!(evaluation.answer(id), Some(Answer::Yes(_))))
            .map(|(_, option)| option)
            .collect();
        lines.push(object(json!({
            "type": "verdict",
            "kernel": kernel.name,
            "upstream": kernel.version.to_string(),
            "mount": verdict.mount.name(),
            "decided": !verdict.is_open(),
            "reasons": ids(&verdict.reasons),
            "modes": {
                "rw": verdict.modes.meets(Modes::RW),
                "ro": verdict.modes.meets(Modes::RO),
                "ro_norecovery": verdict.modes.meets(Modes::NOREC),
            },
            "notes": ids(&verdict.notes),
            "not_looked_at": verdict.undecided.iter().map(|u| u.row.id).collect::<Vec<_>>(),
            "needs": needs,
            "assumptions": kernel.assumptions(),
        })));
    }
    for kernel in kernels {
        let verdict = evaluation.verdict(kernel);
        for (row, answer) in evaluation.answers.iter().filter(|(row, _)| row.about == About::Kernel) {
            lines.push(hazard(evaluation, row, answer, kernel, &verdict));
        }
    }
    for (row, answer) in evaluation.answers.iter().filter(|(row, _)| row.about != About::Kernel) {
        let outcome = row.effects.first().map(|e| (e.severity, e.outcome));
        let applies = match answer {
            Answer::No => json!(false),
            Answer::Yes(_) => json!(true),
            Answer::Unknown(_) => Json::Null,
        };
        let mut line = head(row, outcome.map_or(Severity::Note, |(s, _)| s), applies, Json::Null);
        let versions: Vec<String> = row.effects.iter().map(|e| range_of(row.about, e)).collect();
        line.insert("about".into(), if row.about == About::Grub { "grub".into() } else { "xfsprogs".into() });
        line.insert("versions".into(), versions.into());
        line.insert("outcome".into(), outcome.map(|(_, text)| text).into());
        finish(&mut line, answer);
        lines.push(line);
    }
    lines
}

fn object(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(map) => map,
        _ => Map::new(),
    }
}

fn head(row: &Row, severity: Severity, applies: Json, kernel: Json) -> Map<String, Json> {
    object(json!({
        "type": "hazard", "id": row.id, "ref": row.refs, "severity": severity.name(), "applies": applies, "kernel": kernel,
    }))
}

fn finish(line: &mut Map<String, Json>, answer: &Answer) {
    let (evidence, place) = match answer {
        Answer::No => (Json::Null, None),
        Answer::Yes(evidence) => (evidence.text.clone().into(), evidence.place.as_ref()),
        Answer::Unknown(why) => (why.clone().into(), None),
    };
    line.insert("evidence".into(), evidence);
    let place = place.map(|place| {
        let mut object = super::json::place(place);
        object.insert("field".into(), place.field.into());
        object
    });
    line.insert("place".into(), place.into());
}

fn hazard(
    evaluation: &Evaluation<'_>,
    row: &'static Row,
    answer: &Answer,
    kernel: &Kernel,
    verdict: &Verdict<'_>,
) -> Map<String, Json> {
    let effect = evaluation.effect(row, kernel);
    let listed = |list: &[Applied<'_>]| list.iter().any(|a| a.row.id == row.id);
    let applies = match (answer, effect) {
        (Answer::No, _) => json!(false),
        (Answer::Yes(_), _) => json!(listed(&verdict.reasons) || listed(&verdict.notes)),
        // What no image decides stays open on every release; what is not looked at yet, where something would follow.
        (Answer::Unknown(_), Some(effect)) => {
            if effect.modes.meets(verdict.modes) || effect.severity != Severity::Danger {
                Json::Null
            } else {
                json!(false)
            }
        }
        (Answer::Unknown(_), None) => json!(false),
    };
    let severity = effect.map_or_else(|| row.severity(), |e| e.severity);
    let mut line = head(row, severity, applies, kernel.name.clone().into());
    line.insert("outcome".into(), effect.map(|e| e.outcome).into());
    let remark = effect.and_then(|e| e.remark(kernel.version));
    finish(&mut line, answer);
    line.insert("remark".into(), remark.into());
    line
}
