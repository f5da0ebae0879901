//! memscope's window: what core answers about a profile or a running session, drawn with egui.
//!
//! Owns: pixels, pointer and keys. Refuses: figures; they come from `memscope-core`, and are the terminal's and the report's.
//!
//! | module | what it does |
//! | --- | --- |
//! | app | the window: documents as tabs, menu, dialogs, which panes there are |
//! | action | the one table of actions: menu, shortcut sheet and accessible names are made from it |
//! | document | one profile or session: opening it and asking about it, on threads of their own |
//! | shared | what all views of a document follow: cursor, range, selection, target, zoom |
//! | view | what a view is |
//! | views | the views, one file or folder each |
//! | panels | what is beside the views: header, the moment, findings |
//! | table | a long table, of which the rows that are seen are drawn |
//! | theme | core's colours as egui has them |
//! | export | a view as SVG, PNG or text |
//! | settings | what is kept from one start to the next |

pub mod action;
pub mod app;
pub mod document;
pub mod export;
pub mod panels;
pub mod settings;
pub mod shared;
pub mod table;
pub mod theme;
pub mod view;
pub mod views;

pub use eframe::egui;
