//! Two ways to the owners of blocks must agree: the reverse mapping btrees, and everything that claims blocks. And the
//! answer about one byte is the range that holds it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use serde_json::Value;

/// Images with reverse mapping btrees, and what belongs to them.
const WITH_RMAP: [&str; 10] = [
    "v5-1k-rmap",
    "v5-64k",
    "v5-default",
    "v5-extlog",
    "v5-metaquota",
    "v5-parent",
    "v5-rtgroups",
    "v5-rtgroups-16k",
    "v5-stripe",
    "v5-zoned",
];
/// Images without.
const WITHOUT_RMAP: [&str; 5] = ["v4-1k-ci", "v4-rt-256k", "v5-old", "v5-rt-28k", "v5-rt-64k"];

fn lines(name: &str, command: &[&str], words: &[String]) -> Vec<Value> {
    let (rt, log, data) = (format!("@{name}.rt"), format!("@{name}.log"), format!("@{name}"));
    let mut args: Vec<&str> = command.to_vec();
    if common::find(&rt[1..]).is_some() {
        args.extend(["--rtdev", &rt]);
    }
    if common::find(&log[1..]).is_some() {
        args.extend(["--logdev", &log]);
    }
    args.push(&data);
    args.extend(words.iter().map(String::as_str));
    let out = common::xfsinspect(&args);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    let text = std::str::from_utf8(&out.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_scan_finds_what_the_reverse_mappings_say() {
    for name in WITH_RMAP {
        let mapped = lines(name, &["fsmap", "--json"], &[]);
        let scanned = lines(name, &["fsmap", "--json", "--no-rmap"], &[]);
        assert!(mapped.len() > 1000, "{name}");
        assert_eq!(mapped.len(), scanned.len(), "{name}");
        for (mapped, scanned) in mapped.iter().zip(&scanned) {
            assert_eq!(mapped, scanned, "{name}");
        }
    }
}

/// Fields that a range and an owner have in common. The inode of an inode cluster is told only by `owner`.
fn key(value: &Value) -> String {
    let names = ["start_bytes", "length_bytes", "owner", "fork", "offset_bytes", "state", "bmbt", "shared"];
    let ino = if value["owner"] == "inode" { value["ino"].clone() } else { Value::Null };
    names.iter().map(|name| value[*name].to_string()).collect::<Vec<_>>().join(" ") + &ino.to_string()
}

#[test]
fn the_owner_of_a_byte_is_the_range_that_holds_it() {
    for name in WITH_RMAP.into_iter().chain(WITHOUT_RMAP) {
        let all = lines(name, &["fsmap", "--json"], &[]);
        let bounds = |range: &Value| {
            let (start, length) = (range["start_bytes"].as_u64().unwrap(), range["length_bytes"].as_u64().unwrap());
            (range["device"].as_str().unwrap().to_owned(), start, start + length)
        };
        let places: Vec<_> = all.iter().map(bounds).collect();
        // Every 97th range, its last byte, and the first of all that are no files.
        let mut wanted: Vec<(String, u64)> = Vec::new();
        for (i, range) in all.iter().enumerate() {
            let (device, start, end) = places[i].clone();
            // What lies before an internal realtime section are the AGs, which say more.
            if device == "rt" && range["owner"] == "fs" && name == "v5-zoned" {
                continue;
            }
            if i % 97 == 0 {
                wanted.push((device, end - 1));
            } else if range["owner"] != "inode" {
                wanted.push((device, start));
            }
        }
        let words: Vec<String> = wanted.iter().map(|(device, byte)| format!("{device}:{byte}")).collect();
        let answers = lines(name, &["owner", "--json", "--no-paths"], &words);
        assert_eq!(answers.len(), wanted.len());
        for ((device, byte), answer) in wanted.iter().zip(&answers) {
            assert_eq!((&answer["byte"], &answer["device"]), (&(*byte).into(), &device.as_str().into()));
            let holds =
                |&(_, (of, start, end)): &(&Value, &(String, u64, u64))| start <= byte && byte < end && of == device;
            let mut right: Vec<String> = all.iter().zip(&places).filter(holds).map(|(range, _)| key(range)).collect();
            let owners = answer["owners"].as_array().unwrap();
            let mut ours: Vec<String> = owners.iter().map(key).collect();
            right.sort();
            ours.sort();
            // Free ranges go on over the ends of zoned groups, and a scan gives blocks of an extent map one by one.
            let loose = owners[0]["owner"] == "free" && name == "v5-zoned" && device == "rt";
            let piece = owners[0]["bmbt"] == true && WITHOUT_RMAP.contains(&name);
            assert!(ours == right || loose || piece, "{name} {device} {byte}: {ours:?} {right:?}");
            for owner in owners {
                let named = !owner["structure"].is_null() || owner["owner"] == "free";
                assert!(named, "{name} {device} {byte}: what is it? {owner}");
            }
        }
    }
}
