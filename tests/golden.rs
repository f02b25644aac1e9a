//! What the program prints and returns, word for word: tests/golden/NAME.txt. `XFSINSPECT_BLESS=1 cargo test --test
//! golden` writes them anew; read the difference before you commit it, the figures must come from the oracle.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::fs;
use std::path::Path;

/// Name of the golden file, and the arguments; `@NAME` is an image.
const RUNS: &[(&str, &[&str])] = &[
    ("info-v5-default", &["info", "@v5-default"]),
    ("info-v5-default-json", &["info", "--json", "@v5-default"]),
    ("info-v4-default-json", &["info", "--json", "@v4-default"]),
    ("info-v5-zoned-json", &["info", "--json", "@v5-zoned"]),
    ("info-several", &["info", "@v4-512b", "@c54-md-member-12", "@c06-sector-4096"]),
    ("info-external-log", &["info", "@v5-extlog", "--logdev", "@v5-extlog.log"]),
    ("info-external-log-not-given", &["info", "@v5-extlog"]),
    ("info-realtime", &["info", "--rtdev", "@v5-rtgroups.rt", "@v5-rtgroups"]),
    ("info-copy-number", &["info", "--sb", "2", "@c10-swidth-zero"]),
    ("info-copy-that-is-none", &["info", "--sb", "9", "@c10-swidth-zero"]),
    ("info-c01-first-sector-zeroed", &["info", "@c01-first-sector-zeroed"]),
    ("info-c01-json", &["info", "--json", "@c01-first-sector-zeroed"]),
    ("info-c02-first-mib-wiped", &["info", "@c02-first-mib-wiped-grown"]),
    ("info-c04-device-too-short", &["info", "@c04-lv-reduced"]),
    ("info-c04-json", &["info", "--json", "@c04-lv-reduced"]),
    ("info-c10-swidth-zero", &["info", "@c10-swidth-zero"]),
    ("info-c23-gpt", &["info", "@c23-gpt-partition"]),
    ("info-c23-offset", &["info", "--offset", "9437184", "@c23-gpt-partition"]),
    ("info-c24-metadump-v1", &["info", "@c24-metadump-v1-v2"]),
    ("info-c24-metadump-v2", &["info", "@c24-metadump-v1-v2-v2"]),
    ("info-c31-dalign-without-unit", &["info", "@c31-dalign-bit-no-unit"]),
    ("info-c32-rextslog", &["info", "@c32-rextslog-32bit"]),
    ("info-c45-absurd-shifts", &["info", "@c45-sb-absurd-shifts"]),
    ("info-c48-single-ag", &["info", "@c48-single-ag-small"]),
    ("info-c48-json", &["info", "--json", "@c48-single-ag-small"]),
    ("info-c54-md-member", &["info", "@c54-md-member-12"]),
    ("info-realtime-device-alone", &["info", "@v5-rtgroups.rt"]),
    ("show-fields", &["show", "@v5-default", "inode", "826", "core.size", "core.mtime", "u3.bmbt"]),
    (
        "show-ranges",
        &["show", "@v5-default", "fsblock", "49336", "--as", "bmapbtd", "recs[2-3]", "recs[1-2].startblock"],
    ),
    ("show-verbose", &["show", "-v", "@v5-default", "agi", "1"]),
    ("show-hex", &["show", "--hex", "@v5-rtgroups", "agfl", "1", "bno[0-9]"]),
    ("show-json-inode", &["show", "--json", "@v5-default", "inode", "131"]),
    ("show-json-sb", &["show", "--json", "@v4-512b", "sb"]),
    ("show-bad-crc", &["show", "@c17-agf-agi-agfl-crc", "agf", "2"]),
    ("show-bad-crc-json", &["show", "--json", "@c17-agf-agi-agfl-crc", "agi", "2", "crc"]),
    ("show-bnobt", &["show", "@v4-512b", "bnobt", "1"]),
    ("show-finobt", &["show", "@v5-default", "finobt", "2"]),
    ("show-rmapbt-node", &["show", "@v5-1k-rmap", "rmapbt"]),
    ("show-refcntbt", &["show", "@v5-1k-rmap", "refcntbt", "0"]),
    ("show-rtrmapbt", &["show", "@v5-rtgroups", "fsblock", "19486"]),
    ("show-rtrmapbt-root", &["show", "@v5-rtgroups", "inode", "155779", "u3"]),
    ("show-rtrefcntbt-root", &["show", "@v5-rtgroups", "inode", "155780", "u3"]),
    ("show-attr-leaf", &["show", "@v5-default", "fsblock", "17280"]),
    ("show-attr-node", &["show", "@v5-default", "fsblock", "17281"]),
    ("show-dir-leaf", &["show", "@v5-default", "fsblock", "14", "lhdr", "lbests", "ltail", "lents[0-2]"]),
    ("show-dqblk", &["show", "@v5-quota", "fsblock", "15"]),
    ("show-dqblk-json", &["show", "--json", "@v5-quota", "fsblock", "15"]),
    ("show-rgbitmap", &["show", "@v5-rtgroups", "fsblock", "19471", "magicnum", "owner", "bno", "rtwords[0-3]"]),
    ("show-rtsb", &["show", "@v5-rtgroups", "--rtdev", "@v5-rtgroups.rt", "rtsb"]),
    ("show-symlink", &["show", "@v5-default", "fsblock", "479"]),
    ("show-agblock", &["show", "@v4-512b", "agblock", "3:1"]),
    ("show-daddr-as", &["show", "@v4-512b", "daddr", "0", "--as", "agf", "magicnum", "seqno"]),
    ("free-json", &["free", "--json", "@v5-rt-64k"]),
    ("free-realtime", &["free", "--realtime", "--summary", "--per-ag", "@v5-rtgroups"]),
    ("free-realtime-json", &["free", "-r", "--json", "@v4-rt-256k"]),
    ("free-dump", &["free", "--dump", "--ag", "2", "@v5-default"]),
    ("free-dump-json", &["free", "-d", "--json", "-a", "2", "-u", "@v5-default"]),
    ("free-from", &["free", "--from", "16,1024", "@v4-512b"]),
    ("frag-worst", &["frag", "--worst", "3", "@v5-default"]),
    ("frag-worst-json", &["frag", "-w", "2", "--json", "@v4-rt-256k"]),
    ("frag-directories", &["frag", "-d", "@v5-1k-rmap"]),
    ("convert-fsblock", &["convert", "@v5-default", "fsblock", "16389"]),
    ("convert-agblock-json", &["convert", "--json", "@v4-512b", "agno", "1", "agblock", "5", "inoidx", "1"]),
    ("convert-agblock-alone", &["convert", "@v4-512b", "agblock", "5"]),
    ("convert-rtblock", &["convert", "@v5-rtgroups", "rtblock", "36000", "rsumlog", "3"]),
    ("convert-zoned", &["convert", "@v5-zoned", "rtblock", "5000"]),
    ("quota-c43-project", &["quota", "@c43-project-quota"]),
    ("quota-c43-json", &["quota", "--json", "--kind", "project", "--id", "42", "@c43-project-quota"]),
    ("quota-all-kinds", &["quota", "@v5-quota"]),
    ("quota-metadir", &["quota", "-k", "group", "@v5-metaquota"]),
    ("error-no-quota", &["quota", "@v5-default"]),
    ("log-c14-frozen", &["info", "-q", "--json", "@c14-frozen-snapshot"]),
    ("log-c15-dirty", &["info", "@c15-dirty-log-stale-counters"]),
    ("log-c16-behind-metadata", &["info", "@c16-lsn-ahead"]),
    ("log-c25-foreign", &["info", "@c25-external-log-wrong-uuid", "--logdev", "@c25-external-log-wrong-uuid.log"]),
    ("log-c42-realtime", &["info", "@c42-rt-dirty-log", "--rtdev", "@c42-rt-dirty-log.rt"]),
    ("log-c44-absurd", &["info", "@c44-log-h_size-huge"]),
    ("log-v5-cut", &["info", "@v5-cut"]),
    ("error-free-no-realtime", &["free", "-r", "@v5-default"]),
    ("error-free-no-such-ag", &["free", "-a", "9", "@v5-default"]),
    ("error-free-zoned", &["free", "-r", "@v5-zoned"]),
    ("error-no-such-btree", &["show", "@v4-default", "rmapbt", "0"]),
    ("error-no-rtsb", &["show", "@v5-rt-28k", "rtsb"]),
    ("error-no-such-agblock", &["show", "@v5-default", "agblock", "3:10240"]),
    ("error-not-known", &["show", "@v5-default", "nonsense"]),
    ("show-path", &["show", "@v5-default", "/files/one_extent", "core.size", "core.nlinkv2"]),
    ("show-dblock", &["show", "@v4-1k-ci", "dblock", "131148", "16", "dhdr", "du[0]"]),
    ("show-ablock", &["show", "@v5-default", "ablock", "/attrs/node", "0"]),
    ("error-no-such-dblock", &["show", "@v5-default", "dblock", "/files/empty", "0"]),
    ("ls", &["ls", "@v5-default", "attrs"]),
    ("ls-long", &["ls", "-l", "@v5-default", "/files"]),
    ("ls-recursive", &["ls", "-R", "@c63-classic-rt-recorder"]),
    ("ls-json", &["ls", "--json", "@v5-default", "/"]),
    ("ls-names-that-hurt", &["ls", "@v5-default", "dirs/names"]),
    ("ls-metadata-inode", &["ls", "@v5-rtgroups", "129"]),
    ("ls-c51-inodes-lost", &["ls", "-l", "@c51-inode-cluster-zeroed", "d"]),
    ("ls-c49", &["ls", "--json", "@c49-bigtime-dates"]),
    ("stat", &["stat", "@v5-default", "/files/one_extent"]),
    ("stat-json", &["stat", "--json", "@v5-default", "files/chr", "files/symlink_local"]),
    ("stat-c07-counts", &["stat", "@c07-nrext64-dir-extents", "131", "1260"]),
    ("stat-metadata", &["stat", "@v5-rtgroups", "155779"]),
    ("cat", &["cat", "@c06-sector-4096", "os-release"]),
    ("cat-c34-realtime-flag", &["cat", "@c34-rtflag-without-rtdev", "f"]),
    ("cat-realtime-device-missing", &["cat", "@c63-classic-rt-recorder", "/rec/cam1.dat"]),
    ("xattr", &["xattr", "@v5-default", "attrs/acl", "attrs/sf"]),
    ("xattr-all-json", &["xattr", "--all", "--json", "@v5-default", "attrs/acl"]),
    ("find-ino", &["find", "@v5-default", "--ino", "820"]),
    ("find-ino-v4", &["find", "@v4-default", "--ino", "132"]),
    ("find-flag", &["find", "@v5-default", "--flag", "immutable", "--kind", "regular"]),
    ("find-c43-project", &["find", "--json", "@c43-project-quota", "--projid", "42", "--kind", "d"]),
    ("find-extents", &["find", "@v5-default", "--extents", "+100", "--size", "+1m"]),
    ("map", &["map", "@v5-stripe", "files/extents_few"]),
    ("map-json", &["map", "--json", "@v5-default", "files/shared_0"]),
    ("map-attr", &["map", "--attr", "--json", "@v5-default", "attrs/remote_big"]),
    ("map-realtime-json", &["map", "--json", "@v5-zoned", "rt/extsize"]),
    ("map-c34", &["map", "@c34-rtflag-without-rtdev", "f"]),
    ("error-no-such-name", &["ls", "@v5-default", "/dirs/nothing/here"]),
    ("error-free-inode", &["stat", "@v5-default", "3847"]),
    ("fsmap-group", &["fsmap", "@v5-rtgroups", "--rtdev", "@v5-rtgroups.rt", "--rg", "2"]),
    ("fsmap-range", &["fsmap", "@v5-stripe", "1m", "1100k"]),
    ("fsmap-free", &["fsmap", "@v4-512b", "--free"]),
    ("fsmap-json", &["fsmap", "--json", "@c64-rtgroups-64m", "--device", "rt"]),
    ("fsmap-dirty-log", &["fsmap", "@v5-cut", "--ag", "3"]),
    ("fsmap-no-such-group", &["fsmap", "@v4-512b", "--ag", "99"]),
    ("owner-c17", &["owner", "@c17-agf-agi-agfl-crc", "daddr:0x80001", "daddr:0x80002", "daddr:0x80003"]),
    ("owner-c51", &["owner", "@c51-inode-cluster-zeroed", "daddr:152", "ino:151"]),
    (
        "owner-c63",
        &[
            "owner",
            "@c63-classic-rt-recorder",
            "--rtdev",
            "@c63-classic-rt-recorder.rt",
            "61440",
            "57344",
            "rtx:163",
            "rtx:10",
        ],
    ),
    (
        "owner-c64",
        &[
            "owner",
            "@c64-rtgroups-64m",
            "--rtdev",
            "@c64-rtgroups-64m.rt",
            "rt:0",
            "rt:daddr:262144",
            "rg:3:0",
            "rg:0:20",
        ],
    ),
    ("owner-c64-json", &["owner", "--json", "@c64-rtgroups-64m", "rg:0:20", "0:16", "1:2"]),
    (
        "owner-every-structure",
        &[
            "owner",
            "@v5-default",
            "0",
            "0:1",
            "0:2",
            "0:3",
            "0:4",
            "0:5",
            "0:6",
            "0:12",
            "0:20",
            "3920s",
            "20000",
            "38000s",
        ],
    ),
    ("owner-no-such-place", &["owner", "@v5-default", "4:0", "999g", "x:1", "rt:0", "0:0"]),
    ("error-no-such-ag", &["show", "@v5-default", "agf", "4"]),
    ("error-no-such-inode", &["show", "@v5-default", "inode", "99999999999"]),
    ("error-no-such-field", &["show", "@v5-default", "agf", "0", "freeblocks"]),
    ("error-index-out-of-range", &["show", "@v5-default", "agfl", "0", "bno[1000]"]),
    ("error-no-such-block", &["show", "@v5-default", "fsblock", "10241", "--as", "bmapbtd"]),
];

#[test]
fn answers_are_as_blessed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("XFSINSPECT_BLESS").is_some();
    let mut faults = Vec::new();
    for (name, args) in RUNS {
        let ours = common::transcript(args);
        let path = folder.join(format!("{name}.txt"));
        if bless {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &ours).unwrap();
            continue;
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        if ours != golden {
            let line = ours.lines().zip(golden.lines()).position(|(a, b)| a != b).unwrap_or(0);
            faults.push(format!(
                "{name}, line {}:\n  now     {}\n  blessed {}",
                line + 1,
                ours.lines().nth(line).unwrap_or(""),
                golden.lines().nth(line).unwrap_or("(nothing)")
            ));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn no_golden_file_is_left_over() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = RUNS.iter().any(|(run, _)| name == format!("{run}.txt"));
        assert!(known, "tests/golden/{name} belongs to no run");
    }
}
