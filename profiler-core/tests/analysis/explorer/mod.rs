//! The explorer: what views are told, against reports and against a naive reference.
//!
//! Index: `ended` holds answers about whole sessions and profiles against their reports; `live` holds answers while a session
//! runs against a history made anew at every moment; `forget` holds what little is kept against everything; `lists` has figures
//! worked out by hand; `follower` follows journals that grow, end and break off; `segments` holds containers block by block, and
//! `spans` spans of time and bands, against the naive reference, `flame` the tree of what holds memory, `tracks` telemetry and lanes,
//! and `scale` those of a session of many chunks against plain sums.

mod ended;
mod flame;
mod follower;
mod forget;
mod lists;
mod live;
mod scale;
mod segments;
mod spans;
mod tracks;
