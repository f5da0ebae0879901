//! Why memory ran out, in few lines: what was refused, to whom, what was free, what held most, and what to do.
//!
//! Owns: that this is read without a click and without scrolling. Refuses: figures, and to be long where another moment is looked
//! at: then it is one line that leads to it.

use std::fmt::Write as _;

use eframe::egui::accesskit::Role;
use eframe::egui::text::{LayoutJob, TextWrapping};
use eframe::egui::{Color32, FontId, Rect, RichText, Sense, Ui, Vec2, WidgetInfo, pos2, vec2};
use memscope_core::Origin;
use memscope_core::explorer::{Answer, At, Gravest};
use memscope_core::findings::{Detail, Finding, Holder, Oom};
use memscope_core::report::{Group, units};

use super::{findings, time};
use crate::document::out_of_memory;
use crate::shared::{Selection, Shared};
use crate::theme::Theme;

/// Groups that are listed: where there is little height, and at most.
const GROUPS: (usize, usize) = (3, 5);
/// Height from which on all of them are.
const HIGH: f32 = 660.0;
const ROW: f32 = 34.0;

/// The error that met the most live memory, its finding, and its numbers.
fn gravest(answer: &Answer) -> Option<(&Gravest, &Finding, &Oom)> {
    let gravest = answer.gravest.as_ref()?;
    let finding = answer.findings.get(gravest.finding)?;
    match &finding.detail {
        Detail::Oom(oom) => Some((gravest, finding, oom)),
        _ => None,
    }
}

/// Who asked for it, where that line of the program is, when, and what was free: name and value.
fn facts(gravest: &Gravest, oom: &Oom) -> Vec<(&'static str, String)> {
    let scope = oom.scope.clone().unwrap_or_else(|| "outside all scopes".to_owned());
    let mut facts = vec![("Asked for by", scope)];
    facts.extend(oom.sizes().map(|sizes| ("Asked for", sizes)));
    facts.extend(oom.line.iter().map(|line| ("At the line", line.clone())));
    let mut when: Vec<String> = Vec::new();
    when.push(oom.step.map_or("before the first step".to_owned(), |step| format!("step {step}")));
    when.extend(oom.phase.clone());
    when.push(format!("at {}", time(gravest.time.0)));
    if oom.refusals > 1 {
        when.push(format!("the fullest of {} refusals", units::grouped(oom.refusals)));
    }
    facts.push(("When", when.join(", ")));
    let mut free = match (oom.free, oom.total) {
        (Some(free), Some(total)) => format!("{} of {}", units::bytes(free), units::bytes(total)),
        (Some(free), None) => units::bytes(free),
        (None, _) => "not told by the driver".to_owned(),
    };
    if oom.cached > 0 {
        let _ = write!(free, ", and {} cached", units::bytes(oom.cached));
    }
    facts.push(("Free", free));
    facts
}

/// What a click on a group selects: what of its category was made in its scope.
fn selection(group: &Group) -> Selection {
    let category = findings::category(&group.category).unwrap_or_default();
    match &group.scope {
        Some(scope) => Selection::Group(category, scope.clone()),
        None => Selection::Category(category),
    }
}

/// The groups that are listed: not those that hold next to nothing.
fn largest(oom: &Oom, count: usize) -> impl Iterator<Item = &Group> {
    let counts = |(position, group): &(usize, &Group)| *position == 0 || units::share(group.bytes, oom.live) >= 0.5;
    oom.largest_groups.iter().take(count).enumerate().filter(counts).map(|(_, group)| group)
}

/// Who holds a group; where that is all that is known, as in files of earlier versions, by its category.
fn holder(group: &Group) -> String {
    let of_category = || Holder::of(findings::category(&group.category).unwrap_or_default(), Origin::None, 0).text();
    group.held_by().unwrap_or_else(|| of_category().to_owned())
}

/// A path, and the same without what is outermost, one after another: where there is little room its end tells most.
fn shorter(path: &str) -> impl Iterator<Item = String> {
    let inner = path.match_indices('/').map(|(at, _)| format!("…{}", &path[at..]));
    std::iter::once(path.to_owned()).chain(inner)
}

/// A file's name and a number: a line without its function and its folder.
fn place_of(line: &str) -> &str {
    let place = line.split_once(" in ").map_or(line, |(place, _)| place);
    place.rsplit_once('/').map_or(place, |(_, name)| name)
}

/// The title of a group, and the same in fewer words: what tells it from others stays.
fn titles(group: &Group) -> Vec<String> {
    let title = group.title();
    let mut titles: Vec<String> = shorter(&title).collect();
    if let Some(each) = group.line.as_ref().and_then(|line| title.strip_prefix(line.as_str())) {
        titles.push(format!("{}{each}", place_of(group.line.as_deref().unwrap_or_default())));
    }
    titles
}

/// Holder, number and module of a group, and its line where the title does not have that; then the same in fewer words, as long as the
/// line is whole: it says where to look. Files of earlier versions do not tell where it was made.
fn about(group: &Group) -> Vec<String> {
    let (holder, number) = (holder(group), format!("{}×", units::grouped(group.allocations)));
    let number = Some(number).filter(|_| group.allocations > 1);
    let line = group.line.clone().filter(|line| !group.title().starts_with(line.as_str()));
    let place = line.as_deref().map(|line| place_of(line).to_owned());
    let scopes: Vec<String> = match &group.scope {
        Some(scope) if *scope != group.name => shorter(scope).collect(),
        None if group.holder.is_some() => vec!["outside all scopes".to_owned()],
        _ => Vec::new(),
    };
    let together = |holder: Option<&str>, scope: Option<&String>, line: &Option<String>| {
        let parts = holder.map(str::to_owned).into_iter().chain(number.clone()).chain(scope.cloned());
        parts.chain(line.clone()).collect::<Vec<String>>().join(" · ")
    };
    let (whole, last) = (Some(holder.as_str()), scopes.last());
    let mut about: Vec<String> = scopes.iter().map(|scope| together(whole, Some(scope), &line)).collect();
    about.extend(scopes.is_empty().then(|| together(whole, None, &line)));
    about.push(together(whole, last, &place));
    if place.is_some() {
        about.push(together(whole, None, &place));
        about.push(together(holder.split(" (").next(), None, &place));
        about.push(together(None, None, &place));
    }
    about.dedup();
    about
}

/// A group in one sentence, for whoever hears it.
fn sentence(group: &Group, live: u64) -> String {
    let share = units::share(group.bytes, live);
    let mut sentence =
        format!("{}: {}, {share:.0} % of live, {}, ", group.title(), units::bytes(group.bytes), group.category);
    if group.holder.is_some() {
        let scope = group.scope.as_deref().map_or("outside all scopes".to_owned(), |scope| format!("in {scope}"));
        let _ = write!(sentence, "{scope}, ");
    }
    let count = units::count(group.allocations, "allocation", "allocations");
    let _ = write!(sentence, "{}, {count}", holder(group));
    if let Some(line) = &group.line {
        let _ = write!(sentence, ", most of it at {line}");
    }
    sentence
}

/// Draws it; nothing where memory did not run out.
pub fn ui(ui: &mut Ui, answer: &Answer, shared: &mut Shared, theme: &Theme, height: f32) {
    let Some((gravest, finding, oom)) = gravest(answer) else { return };
    let title = format!("Out of memory: {} refused", units::bytes(oom.requested));
    if shared.cursor != At::Refused(gravest.time) {
        let link = ui.link(RichText::new(format!("{title} at {}", time(gravest.time.0))).color(theme.error()));
        if link.on_hover_text("goes there").clicked() {
            (shared.cursor, shared.target) = out_of_memory(answer, gravest);
        }
        ui.separator();
        return;
    }
    ui.label(RichText::new(title).color(theme.error()).strong().size(16.0));
    for (name, value) in facts(gravest, oom) {
        super::fact(ui, name, value, theme);
    }
    if !oom.largest_groups.is_empty() {
        let live = units::bytes(oom.live);
        ui.label(RichText::new(format!("Held most of {live} live:")).color(theme.faint()));
    }
    ui.scope(|ui| {
        ui.spacing_mut().item_spacing.y = 0.0;
        let count = if height < HIGH { GROUPS.0 } else { GROUPS.1 };
        for (position, group) in largest(oom, count).enumerate() {
            row(ui, position, (group, oom.live), shared, theme);
        }
    });
    if !finding.advice.is_empty() {
        ui.label(RichText::new(format!("To do: {}.", answer.sentence(&finding.advice))).strong());
    }
    ui.separator();
}

/// One group: name, bytes and share; below, who holds it and where it was made.
fn row(ui: &mut Ui, position: usize, (group, live): (&Group, u64), shared: &mut Shared, theme: &Theme) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW), Sense::hover());
    let response = ui.interact(rect, ui.scope_id().with(("group", position)), Sense::click());
    let selects = selection(group);
    let selected = shared.selection == selects;
    let said = sentence(group, live);
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, selected, said.as_str()));
    if selected || response.hovered() {
        ui.painter().rect_filled(rect, 2.0, theme.selected());
    }
    let colour = theme.category(findings::category(&group.category).unwrap_or_default());
    let swatch = Rect::from_min_size(rect.min + vec2(0.0, 4.0), Vec2::splat(10.0));
    ui.painter().rect_filled(swatch, 2.0, colour);
    let figures = format!("{}  {:.0} %", units::bytes(group.bytes), units::share(group.bytes, live));
    let figures = ui.painter().layout_no_wrap(figures, FontId::proportional(13.0), theme.text());
    let left = rect.left() + 16.0;
    let room = rect.right() - figures.size().x - 8.0 - left;
    ui.painter().galley(pos2(rect.right() - figures.size().x, rect.top()), figures, theme.text());
    let titles = titles(group);
    line(ui, (&titles, 13.0, theme.text()), room, left, rect.top());
    line(ui, (&about(group), 11.5, theme.faint()), rect.right() - left, left, rect.top() + 17.0);
    if response.on_hover_text(said).clicked() {
        shared.toggle(selects);
    }
}

/// One line: the first of several texts that has room, else the last one, cut.
fn line(ui: &Ui, (texts, size, ink): (&[String], f32, Color32), room: f32, left: f32, top: f32) {
    let font = FontId::proportional(size);
    let fits = |text: &&String| ui.painter().layout_no_wrap((*text).clone(), font.clone(), ink).size().x <= room;
    let Some(text) = texts.iter().find(fits).or(texts.last()) else { return };
    let mut job = LayoutJob::simple_singleline(text.clone(), font.clone(), ink);
    job.wrap = TextWrapping::truncate_at_width(room);
    let galley = ui.painter().layout_job(job);
    ui.painter().galley(pos2(left, top), galley, ink);
}

/// The same as text; empty where memory did not run out.
pub fn text(answer: &Answer) -> String {
    let mut text = String::new();
    let Some((gravest, finding, oom)) = gravest(answer) else { return text };
    let _ = writeln!(text, "Out of memory: {} refused", units::exact(oom.requested));
    for (name, value) in facts(gravest, oom) {
        let _ = writeln!(text, "{name}: {value}");
    }
    for group in largest(oom, GROUPS.1) {
        let _ = writeln!(text, "\t{}", sentence(group, oom.live));
    }
    let _ = writeln!(text, "To do: {}.\n", answer.sentence(&finding.advice));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_little_room_a_module_keeps_its_end() {
        let all: Vec<String> = shorter("transformer/h.*/attn").collect();
        assert_eq!(all, ["transformer/h.*/attn", "…/h.*/attn", "…/attn"]);
        let group = |holder| Group {
            name: "h.*.out".into(),
            category: "activations".into(),
            allocations: 22,
            scope: Some("model/h.*".into()),
            holder,
            origin: Some("inferred".into()),
            ..Group::default()
        };
        assert_eq!(
            about(&group(Some(Holder::SavedForBackward))),
            ["saved for backward (inferred) · 22× · model/h.*", "saved for backward (inferred) · 22× · …/h.*",]
        );
        // Where there is no room for all of it, the line is what stays.
        let line = Some("models/layers.py:17 in Block.forward".to_owned());
        let kept = Group { line, kept_steps: Some(3), ..group(Some(Holder::KeptByProgram)) };
        assert_eq!(
            about(&kept),
            [
                "kept by the program across up to 3 steps (inferred) · 22× · model/h.* · models/layers.py:17 in Block.forward",
                "kept by the program across up to 3 steps (inferred) · 22× · …/h.* · models/layers.py:17 in Block.forward",
                "kept by the program across up to 3 steps (inferred) · 22× · …/h.* · layers.py:17",
                "kept by the program across up to 3 steps (inferred) · 22× · layers.py:17",
                "kept by the program across up to 3 steps · 22× · layers.py:17",
                "22× · layers.py:17",
            ]
        );
        // Its title says the line, and which of that line's they are.
        let name = "(outside all scopes), 64.00 MiB each".to_owned();
        let unnamed = Group { name, scope: None, ..kept };
        let cut = "…/layers.py:17 in Block.forward, 64.00 MiB each";
        let whole = "models/layers.py:17 in Block.forward, 64.00 MiB each";
        assert_eq!(titles(&unnamed), [whole, cut, "layers.py:17, 64.00 MiB each"]);
        assert_eq!(about(&unnamed), ["kept by the program across up to 3 steps (inferred) · 22× · outside all scopes"]);
        // As in a file of an earlier version.
        let early = Group { scope: None, origin: None, ..group(None) };
        assert_eq!(about(&early), ["saved for backward · 22×"]);
        assert_eq!(sentence(&early, 1), "h.*.out: 0 B, 0 % of live, activations, saved for backward, 22 allocations");
    }
}
