//! What has to be asked for what is shown.
//!
//! Owns: the query. Refuses: to ask for lists that no screen shows.

use memscope_core::explorer::{At, Query, RowsQuery, SegmentsQuery};

use super::{App, Screen};
use crate::screens;

impl App {
    /// What the shown screen needs to know, in the terminal's present size.
    pub fn query(&self) -> Query {
        let height = self.list_height();
        let mut query = Query { target: self.target, at: self.moment(), ..Query::default() };
        match self.screen {
            Screen::Overview | Screen::Output => {}
            Screen::Allocations => {
                query.rows = Some(RowsQuery {
                    sort: self.allocations.sort,
                    descending: self.allocations.descending,
                    filter: self.allocations.filter.clone(),
                    group: self.allocations.group,
                    window: self.allocations.list.window(height),
                    find: None,
                });
            }
            Screen::Scopes => query.scopes = true,
            Screen::Segments => {
                let slices = screens::segments::slices(self);
                // Each of them is large: no more than are seen.
                let first = self.segments.first;
                query.segments =
                    Some(SegmentsQuery { slices, window: first..first + height.max(1), ..SegmentsQuery::default() });
            }
            Screen::Steps => query.steps = self.steps.window(height),
        }
        query
    }

    /// The moment that is asked for: a view that stands still asks for the moment at which it was stopped.
    pub(crate) fn moment(&self) -> At {
        match (self.at, self.paused) {
            (At::Live, Some(stopped)) => At::Time(stopped),
            (at, _) => at,
        }
    }

    /// Rows of the shown list that are seen.
    pub(crate) fn list_height(&self) -> usize {
        screens::list_area(self).height as usize
    }

    /// Rows of the shown list in all.
    pub(crate) fn list_total(&self) -> usize {
        match self.screen {
            Screen::Overview | Screen::Output => 0,
            Screen::Allocations => self.answer.rows.as_ref().map_or(0, |rows| rows.matching),
            Screen::Scopes => self.scopes.visible().len(),
            Screen::Segments => self.answer.segments.as_ref().map_or(0, |segments| segments.total),
            Screen::Steps => self.answer.steps_total,
        }
    }
}
