//! The command line: arguments in, text or JSON out, an exit status. A user of the library like any other.

mod address;
mod args;
mod cat;
mod check;
mod convert;
mod damage;
mod devices;
mod explain;
mod find;
mod frag;
mod free;
mod fsmap;
mod info;
mod journal;
mod ls;
mod map;
mod object;
mod owner;
mod preflight;
mod quota;
mod rt;
mod session;
mod show;
mod stat;
mod target;
mod xattr;

pub use session::Outcome;

use args::{Args, Command};
use clap::Parser;
use session::Session;
use std::ffi::OsString;
use std::process::ExitCode;

/// The numbers behind `--ag` as one value, so that `--ag 0 1 TARGET` and `--ag 0,1 TARGET` are the same, and the target
/// is not taken for a number.
fn joined(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let number = |arg: &OsString| {
        arg.to_str().is_some_and(|arg| !arg.is_empty() && arg.bytes().all(|b| b.is_ascii_digit() || b == b','))
    };
    let mut all: Vec<OsString> = Vec::new();
    // How many numbers of `--ag` there were so far; `None` elsewhere.
    let mut numbers: Option<usize> = None;
    for arg in args {
        match (numbers, all.last_mut()) {
            (Some(count), Some(last)) if count > 0 && number(&arg) => {
                last.push(",");
                last.push(arg);
            }
            (Some(count), _) if number(&arg) => {
                numbers = Some(count.saturating_add(1));
                all.push(arg);
            }
            _ => {
                numbers = (arg == "--ag").then_some(0);
                all.push(arg);
            }
        }
    }
    all
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let args = match Args::try_parse_from(joined(std::env::args_os())) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are answers, anything else is a usage error: 2, as clap has it.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return match error.print() {
                Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::from(2),
                _ => ExitCode::from(code),
            };
        }
    };
    let mut session = Session::new(args.common.clone());
    let result = match &args.command {
        Command::Info(info) => info::run(&mut session, info),
        Command::Show(show) => show::run(&mut session, show),
        Command::Ls(ls) => ls::run(&mut session, ls),
        Command::Stat(stat) => stat::run(&mut session, stat),
        Command::Cat(cat) => cat::run(&mut session, cat),
        Command::Xattr(xattr) => xattr::run(&mut session, xattr),
        Command::Find(find) => find::run(&mut session, find),
        Command::Map(map) => map::run(&mut session, map),
        Command::Check(check) => check::run(&mut session, check),
        Command::Preflight(preflight) => preflight::run(&mut session, preflight),
        Command::Explain(explain) => explain::run(&mut session, explain),
        Command::Free(free) => free::run(&mut session, free),
        Command::Frag(frag) => frag::run(&mut session, frag),
        Command::Quota(quota) => quota::run(&mut session, quota),
        Command::Convert(convert) => convert::run(&mut session, convert),
        Command::Fsmap(fsmap) => fsmap::run(&mut session, fsmap),
        Command::Rt(rt) => rt::run(&mut session, rt),
        Command::Owner(owner) => owner::run(&mut session, owner),
    };
    if let Err(error) = result {
        session.error(&error);
    }
    session.finish()
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn numbers_of_ags_are_one_value() {
        let text = |args: &[&str]| {
            let all = joined(args.iter().map(Into::into));
            all.iter().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text(&["check", "--ag", "0", "1", "img"]), "check --ag 0,1 img");
        assert_eq!(text(&["check", "img", "--ag", "0,2", "--ag", "5", "--json"]), "check img --ag 0,2 --ag 5 --json");
        assert_eq!(text(&["show", "img", "agf", "1", "2"]), "show img agf 1 2");
    }
}
