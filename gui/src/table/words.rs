//! Text that fits a cell.
//!
//! Owns: where it is cut. Refuses: more than one line.

use std::sync::Arc;

use eframe::egui::{Color32, FontId, Galley, Painter};

/// The part of a text that is kept where there is no room for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    Begin,
    End,
}

/// So much of a text as fits, with `…` for what is left out.
pub fn fitted(painter: &Painter, text: &str, (font, ink): (FontId, Color32), width: f32, kept: Kept) -> Arc<Galley> {
    // What nobody sees is not laid out.
    const MOST: usize = 400;
    let mut line: String = match (kept, text.char_indices().nth(MOST)) {
        (Kept::Begin, Some((end, _))) => text[..end].to_owned(),
        (Kept::End, Some(_)) => text.char_indices().rev().nth(MOST).map_or("", |(at, _)| &text[at..]).to_owned(),
        (_, None) => text.to_owned(),
    };
    if line.contains(char::is_control) {
        line = line.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    }
    let whole = painter.layout_no_wrap(line.clone(), font.clone(), ink);
    if whole.size().x <= width {
        return whole;
    }
    let widths: Vec<f32> =
        whole.rows.iter().flat_map(|row| row.glyphs.iter().map(|glyph| glyph.advance_width)).collect();
    let room = (width - painter.layout_no_wrap("…".to_owned(), font.clone(), ink).size().x).max(0.0);
    let fits = |widths: &mut dyn Iterator<Item = &f32>| {
        let mut taken = 0.0;
        widths.take_while(|width| (taken += **width, taken <= room).1).count()
    };
    let text: String = match kept {
        Kept::Begin => line.chars().take(fits(&mut widths.iter())).chain(['…']).collect(),
        Kept::End => {
            let skipped = line.chars().count().saturating_sub(fits(&mut widths.iter().rev()));
            ['…'].into_iter().chain(line.chars().skip(skipped)).collect()
        }
    };
    painter.layout_no_wrap(text, font, ink)
}

#[cfg(test)]
mod tests {
    use eframe::egui::{self, LayerId};

    use super::*;

    #[test]
    fn the_end_that_says_most_is_kept() {
        let context = egui::Context::default();
        let mut seen = Vec::new();
        let mut output = context.run_ui(egui::RawInput::default(), |ui| {
            let painter = ui.painter().clone().with_layer_id(LayerId::background());
            let mut fit = |text: &str, width, kept| {
                let galley = fitted(&painter, text, (FontId::proportional(12.0), Color32::WHITE), width, kept);
                assert!(galley.size().x <= width, "{} in {width}", galley.text());
                seen.push(galley.text().to_owned());
            };
            fit("model/h.0/attn", 200.0, Kept::End);
            fit("model/h.0/attn", 50.0, Kept::End);
            fit("model/h.0/attn", 50.0, Kept::Begin);
            fit("two\nlines", 200.0, Kept::Begin);
            fit(&"a".repeat(10_000), 100.0, Kept::End);
        });
        output.textures_delta.clear();
        assert_eq!(seen[0], "model/h.0/attn");
        assert!(seen[1].starts_with('…') && seen[1].ends_with("/attn"), "{}", seen[1]);
        assert!(seen[2].starts_with("model") && seen[2].ends_with('…'), "{}", seen[2]);
        assert_eq!(seen[3], "two lines");
        assert!(seen[4].starts_with("…aaa"), "{}", seen[4]);
    }
}
