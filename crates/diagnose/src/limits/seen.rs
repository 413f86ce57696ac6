// SPDX-License-Identifier: MIT
//! The figures of a half that its judgment is compared with.

use super::judgment::Judgment;
use crate::acks::Watch;
use crate::counts::Counts;
use crate::observer::Observer;
use crate::rate::Rate;
use crate::window::Window;

/// The reports on one half; the judgment is what changes.
pub(crate) struct Seen<'a> {
    pub counts: &'a <Counts as Observer>::Report,
    pub rate: &'a <Rate as Observer>::Report,
    pub acking: &'a <Watch as Observer>::Report,
    pub window: &'a <Window as Observer>::Report,
    pub limits: &'a mut Judgment,
}
