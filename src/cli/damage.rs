//! What walks on several threads report: kept in bounds, and told when they are done.

use super::session::{Outcome, Session};
use crate::error::Error;

/// Errors that are kept of each walk.
const KEPT: usize = 64;

/// The first errors of a walk, and what the others were.
#[derive(Debug, Default)]
pub struct Damage {
    first: Vec<Error>,
    more_corrupt: bool,
    more_unread: bool,
}

impl Damage {
    /// Notes an error.
    pub fn add(&mut self, error: Error) {
        if self.first.len() < KEPT {
            self.first.push(error);
        } else if matches!(error, Error::Corrupt { .. }) {
            self.more_corrupt = true;
        } else {
            self.more_unread = true;
        }
    }

    /// None so far?
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Takes the errors of another walk in.
    pub fn merge(&mut self, other: Self) {
        other.first.into_iter().for_each(|error| self.add(error));
        self.more_corrupt |= other.more_corrupt;
        self.more_unread |= other.more_unread;
    }

    /// Tells them.
    pub fn tell(self, session: &mut Session) {
        self.first.iter().for_each(|error| session.problem(error));
        if self.more_corrupt {
            session.outcome(Outcome::Findings);
        }
        if self.more_unread {
            session.outcome(Outcome::Incomplete);
        }
    }
}
