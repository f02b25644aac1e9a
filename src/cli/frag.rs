//! `frag`: how many extents there are, how few would do, and who has the most.

use super::damage::Damage;
use super::session::Session;
use super::target::{self, Target};
use crate::error::Result;
use crate::report::json::{SCHEMA, put_bytes};
use crate::report::text::escaped;
use crate::units::Ino;
use crate::walk::frag::{self, Count, Fragmentation, What};
use crate::walk::paths::{self, PathOf};
use crate::walk::{Walk, parallel};
use serde_json::{Map, Value as Json};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Most inodes that are named.
const MOST_NAMED: usize = 100_000;

/// Arguments of `frag`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
An ideal file has one extent for each of its runs without a hole. Without -a, -d, -f and -l all four are counted.

  xfsinspect frag disk.img --worst 10")]
pub struct FragArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Name the N inodes with the most extents too many, with their paths
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub worst: usize,
    /// Attribute forks
    #[arg(short, long)]
    pub attributes: bool,
    /// Directories
    #[arg(short, long)]
    pub directories: bool,
    /// Regular files
    #[arg(short, long)]
    pub files: bool,
    /// Symbolic links
    #[arg(short = 'l', long)]
    pub symlinks: bool,
}

/// Answers.
pub fn run(session: &mut Session, args: &FragArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    answer(session, &target, args);
    target.close(session);
    Ok(())
}

fn what(args: &FragArgs) -> What {
    if args.attributes || args.directories || args.files || args.symlinks {
        What { attributes: args.attributes, directories: args.directories, files: args.files, symlinks: args.symlinks }
    } else {
        What::ALL
    }
}

fn answer(session: &mut Session, target: &Target, args: &FragArgs) {
    let walk = Walk::new(&target.volume);
    let threads = session.common.threads.unwrap_or_else(parallel::default_threads);
    let (what, keep) = (what(args), args.worst.min(MOST_NAMED));
    let parts = parallel::per_ag(&walk, threads, |ag| {
        let mut damage = Damage::default();
        let found = frag::of_ag(&walk, ag, what, keep, &mut |error| damage.add(error));
        (found, damage)
    });
    let (mut all, mut damage) = (Fragmentation::default(), Damage::default());
    for (found, errors) in parts {
        all.merge(found, keep);
        damage.merge(errors);
    }
    let worst = all.worst();
    let inos: Vec<Ino> = worst.iter().map(|(ino, _)| *ino).collect();
    let names =
        if inos.is_empty() { HashMap::new() } else { paths::of_many(&walk, &inos, &mut |error| damage.add(error)) };
    damage.tell(session);
    if session.common.json {
        let object = object(session, target, &all, &worst, &names);
        session.print_json(object);
    } else {
        let mut out = text(all.total);
        table(&mut out, &worst, &names);
        session.print(&out);
    }
}

/// Extents too many, of 100.
fn factor(count: Count) -> f64 {
    if count.actual == 0 { 0.0 } else { count.excess() as f64 * 100.0 / count.actual as f64 }
}

/// The three lines of xfs_db's `frag`.
fn text(count: Count) -> String {
    let Count { actual, ideal } = count;
    let average = match (actual, ideal) {
        (0, 0) => "-nan".to_owned(),
        _ => format!("{:.2}", actual as f64 / ideal as f64),
    };
    format!(
        "actual {actual}, ideal {ideal}, fragmentation factor {:.2}%\nNote, this number is largely meaningless.\nFiles on \
         this filesystem average {average} extents per file\n",
        factor(count)
    )
}

fn path(names: &HashMap<Ino, Vec<PathOf>>, ino: Ino) -> Option<&PathOf> {
    names.get(&ino).and_then(|paths| paths.first())
}

fn table(out: &mut String, worst: &[(Ino, Count)], names: &HashMap<Ino, Vec<PathOf>>) {
    if worst.is_empty() {
        return;
    }
    let width = worst.iter().map(|(ino, _)| ino.to_string().len()).max().unwrap_or(0).max(7);
    let _ = writeln!(out, "{:>width$} {:>10} {:>10}  path", "inode", "actual", "ideal");
    for (ino, count) in worst {
        let name = path(names, *ino).map_or("?".to_owned(), |found| {
            let path = escaped(&found.path);
            match found.from {
                paths::From::Root => {
                    if path.is_empty() {
                        "/".to_owned()
                    } else {
                        path
                    }
                }
                paths::From::Metadata => format!("(metadata directory) {path}"),
                paths::From::Lost(ino) => format!("(inode {ino}, not connected) {path}"),
            }
        });
        let _ = writeln!(out, "{ino:>width$} {:>10} {:>10}  {name}", count.actual, count.ideal);
    }
}

fn object(
    session: &mut Session,
    target: &Target,
    all: &Fragmentation,
    worst: &[(Ino, Count)],
    names: &HashMap<Ino, Vec<PathOf>>,
) -> Map<String, Json> {
    let list: Vec<Json> = worst
        .iter()
        .map(|(ino, count)| {
            let mut row = Map::new();
            row.insert("ino".into(), ino.0.into());
            row.insert("actual".into(), count.actual.into());
            row.insert("ideal".into(), count.ideal.into());
            match path(names, *ino) {
                Some(found) => {
                    let from = match found.from {
                        paths::From::Root => Json::from("root"),
                        paths::From::Metadata => "metadata".into(),
                        paths::From::Lost(ino) => ino.0.into(),
                    };
                    put_bytes(&mut row, "path", &found.path);
                    row.insert("path_from".into(), from);
                }
                None => {
                    row.insert("path".into(), Json::Null);
                }
            }
            row.into()
        })
        .collect();
    let Count { actual, ideal } = all.total;
    let mut object = Map::new();
    object.insert("type".into(), "frag".into());
    object.insert("schema".into(), SCHEMA.into());
    object.insert("target".into(), target.name.clone().into());
    object.insert("inodes".into(), all.inodes.into());
    object.insert("actual".into(), actual.into());
    object.insert("ideal".into(), ideal.into());
    object.insert("factor_percent".into(), factor(all.total).into());
    object
        .insert("extents_per_file".into(), if ideal == 0 { Json::Null } else { (actual as f64 / ideal as f64).into() });
    object.insert("worst".into(), list.into());
    object.insert("warnings".into(), session.take_warnings());
    object
}
