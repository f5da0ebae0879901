//! Tests of the whole dashboard, from journal entries to cells.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | trace | writing sessions by hand, entry by entry |
//! | sessions | the fixed sessions |
//! | view | a dashboard with an explorer behind it, driven by keys |
//! | screens | snapshots: every screen in three sizes, and the special cases |
//! | behaviour | what keys and the mouse do |
//! | moments | that every figure is of the moment that it seems to be of |
//! | endurance | random events in random sizes |

mod behaviour;
mod endurance;
mod moments;
mod screens;
mod sessions;
mod trace;
mod view;
