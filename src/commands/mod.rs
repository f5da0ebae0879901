//! One file a verb. Each returns the status with which memscope ends.

pub mod attach;
pub mod conclude;
pub mod config;
pub mod demo;
pub mod devices;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod gui;
pub mod live;
pub mod pages;
pub mod recover;
pub mod report;
pub mod run;
pub mod sample;
pub mod sessions;
pub mod techniques;
pub mod top;
pub mod view;
pub mod writing;
