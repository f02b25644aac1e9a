//! The layers hold: every `crate::MODULE` in a file of src/ is one that its own layer may use.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;

/// Layer and what it may use; the table of docs/architecture.md.
const LAYERS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("error", &["units"]),
    ("source", &["error", "units"]),
    ("format", &["error", "units"]),
    ("geometry", &["format", "error", "units"]),
    ("volume", &["source", "geometry", "format", "error", "units"]),
    ("walk", &["volume", "geometry", "format", "error", "units"]),
    ("check", &["walk", "volume", "geometry", "format", "error", "units"]),
    ("hazard", &["check", "walk", "volume", "geometry", "format", "error", "units"]),
    ("report", &["check", "hazard", "geometry", "format", "error", "units"]),
    ("xfs", &["report", "hazard", "check", "walk", "volume", "source", "geometry", "format", "error", "units"]),
    ("cli", &["source", "format", "geometry", "volume", "walk", "check", "hazard", "report", "error", "units"]),
];

/// The module names that follow `crate::` (also in groups) in code, comments left aside.
fn uses(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // Unit tests may look anywhere: the layers are about the program.
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    for (n, line) in code.lines().enumerate() {
        let line = line.split("//").next().unwrap();
        for rest in line.split("crate::").skip(1) {
            let names = rest.strip_prefix('{').unwrap_or(rest);
            let name: String = names.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            found.push((n + 1, name));
        }
    }
    found
}

fn check(folder: &Path, layer: &str, allowed: &[&str], faults: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check(&path, layer, allowed, faults);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            check_file(&path, layer, allowed, faults);
        }
    }
}

fn check_file(path: &Path, layer: &str, allowed: &[&str], faults: &mut Vec<String>) {
    let known: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    for (line, name) in uses(&fs::read_to_string(path).unwrap()) {
        if name != layer && known.contains(&name.as_str()) && !allowed.contains(&name.as_str()) {
            faults.push(format!("{}:{line}: {layer} uses {name}", path.display()));
        }
    }
}

#[test]
fn no_arrow_points_up() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut faults = Vec::new();
    for (layer, allowed) in LAYERS {
        let (folder, file) = (src.join(layer), src.join(format!("{layer}.rs")));
        if folder.is_dir() {
            check(&folder, layer, allowed, &mut faults);
        }
        if file.is_file() {
            check_file(&file, layer, allowed, &mut faults);
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_module_has_a_layer() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(src).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").unwrap_or(&name);
        let known = LAYERS.iter().any(|(layer, _)| *layer == module) || ["lib", "main"].contains(&module);
        assert!(known, "src/{name} stands in no layer: add it to LAYERS and docs/architecture.md");
    }
}
