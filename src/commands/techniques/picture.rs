//! A profile as a picture: live bytes by category over time, stacked, as SVG of our own.
//!
//! Owns: the drawing. Refuses: fonts, scripts and anything outside the file. Colours are those of the dashboard, and so is the
//! order of the categories.

use std::fmt::Write;

use memscope_core::Category;
use memscope_core::explorer::STACKED;
use memscope_core::ledger::CATEGORIES;
use memscope_core::report::units;
use memscope_tui::palette::{Depth, Palette, Scheme};

use super::curve::{COLUMNS, Curve, Span};

/// Size of the plot and its margins.
const WIDTH: u64 = 720;
const HEIGHT: u64 = 180;
const LEFT: u64 = 76;
const TOP: u64 = 14;
const BELOW: u64 = 44;
/// Colour of the line of what is reserved.
const RESERVED: &str = "#57606a";

impl Curve {
    /// The picture with its name at the lower right; `top` is the value at the upper edge, so that pictures can be compared, and `baseline` a line across.
    pub fn svg(&self, name: &str, title: &str, top: u64, baseline: Option<u64>) -> String {
        let top = top.max(self.most()).max(1);
        let (width, height) = (LEFT + WIDTH + 8, TOP + HEIGHT + BELOW);
        let title = escape(title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"11\">\n<title>{title}</title>\n"
        );
        let palette = Palette::new(Scheme::Default, Depth::True);
        for (position, category) in STACKED.into_iter().enumerate().rev() {
            if self.columns.iter().any(|live| live[category as usize] > 0) {
                let path = self.outline(&STACKED[..=position], top);
                let _ = writeln!(svg, "<path fill=\"{}\" d=\"{path}\"/>", palette.category(category));
            }
        }
        if self.reserves() {
            let line = Curve::line(&self.reserved, top);
            let _ = writeln!(svg, "<path fill=\"none\" stroke=\"{RESERVED}\" stroke-width=\"1.5\" d=\"{line}\"/>");
        }
        self.axes(&mut svg, top, baseline);
        self.legend(&mut svg, &palette);
        let _ = writeln!(
            svg,
            "<text fill=\"#6e7781\" font-weight=\"bold\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT + WIDTH,
            TOP + HEIGHT + 34,
            escape(name)
        );
        svg + "</svg>\n"
    }

    /// The area under a stack of categories.
    fn outline(&self, categories: &[Category], top: u64) -> String {
        let sum = |live: &[u64; CATEGORIES]| categories.iter().map(|category| live[*category as usize]).sum();
        let sums: Vec<u64> = self.columns.iter().map(sum).collect();
        let floor = TOP + HEIGHT;
        let mut path = format!("M{LEFT} {floor}");
        for (x, y) in corners(&sums, top) {
            let _ = write!(path, "H{x}V{y}");
        }
        let _ = write!(path, "H{}V{floor}Z", LEFT + WIDTH);
        path
    }

    /// A line along values, a column each.
    fn line(values: &[u64], top: u64) -> String {
        let mut path = String::new();
        for (x, y) in corners(values, top) {
            let step = if path.is_empty() { format!("M{x} {y}") } else { format!("H{x}V{y}") };
            path += &step;
        }
        path + &format!("H{}", LEFT + WIDTH)
    }

    fn axes(&self, svg: &mut String, top: u64, baseline: Option<u64>) {
        let grey = "#6e7781";
        let (floor, right) = (TOP + HEIGHT, LEFT + WIDTH);
        let _ = writeln!(svg, "<path fill=\"none\" stroke=\"{grey}\" d=\"M{LEFT} {TOP}V{floor}H{right}\"/>");
        for bytes in [top, top / 2, 0] {
            let y = height_of(bytes, top) + 4.0;
            let text = units::bytes(bytes);
            let _ = writeln!(
                svg,
                "<text fill=\"{grey}\" text-anchor=\"end\" x=\"{}\" y=\"{y:.1}\">{text}</text>",
                LEFT - 6
            );
        }
        if let Some(bytes) = baseline {
            let y = height_of(bytes, top);
            let _ = writeln!(
                svg,
                "<path fill=\"none\" stroke=\"{grey}\" stroke-dasharray=\"4 3\" d=\"M{LEFT} {y:.1}H{right}\"/>"
            );
            let _ = writeln!(
                svg,
                "<text fill=\"{grey}\" text-anchor=\"end\" x=\"{right}\" y=\"{:.1}\">peak of the baseline</text>",
                y - 4.0
            );
        }
        for (column, number) in &self.steps {
            let x = LEFT as f64 + column * WIDTH as f64 / COLUMNS as f64;
            let _ = writeln!(svg, "<path fill=\"none\" stroke=\"{grey}\" d=\"M{x:.1} {TOP}V{}\"/>", floor + 4);
            let _ =
                writeln!(svg, "<text fill=\"{grey}\" x=\"{:.1}\" y=\"{}\">step {number}</text>", x + 2.0, floor + 14);
        }
        let span = match self.span {
            Span::Time(nanoseconds) => units::time(nanoseconds as f64 / 1e9),
            Span::Changes(count) => format!("{count} allocations and frees"),
        };
        let _ =
            writeln!(svg, "<text fill=\"{grey}\" text-anchor=\"end\" x=\"{right}\" y=\"{}\">{span}</text>", floor + 14);
    }

    fn legend(&self, svg: &mut String, palette: &Palette) {
        let y = TOP + HEIGHT + 34;
        let mut x = LEFT;
        for category in STACKED {
            if self.columns.iter().any(|live| live[category as usize] > 0) {
                let (colour, name) = (palette.category(category), category.name());
                let _ = writeln!(svg, "<rect fill=\"{colour}\" x=\"{x}\" y=\"{}\" width=\"9\" height=\"9\"/>", y - 8);
                let _ = writeln!(svg, "<text fill=\"#6e7781\" x=\"{}\" y=\"{y}\">{name}</text>", x + 13);
                x += 26 + 7 * name.len() as u64;
            }
        }
        if self.reserves() {
            let _ = writeln!(svg, "<rect fill=\"{RESERVED}\" x=\"{x}\" y=\"{}\" width=\"9\" height=\"2\"/>", y - 5);
            let _ = writeln!(svg, "<text fill=\"#6e7781\" x=\"{}\" y=\"{y}\">reserved</text>", x + 13);
        }
    }
}

/// Where a line along values, a column each, turns: x, and the y from there on.
fn corners(values: &[u64], top: u64) -> Vec<(u64, String)> {
    let mut corners: Vec<(u64, String)> = Vec::new();
    for (column, value) in values.iter().enumerate() {
        let y = format!("{:.1}", height_of(*value, top));
        if corners.last().is_none_or(|(_, before)| *before != y) {
            corners.push((LEFT + column as u64 * WIDTH / COLUMNS, y));
        }
    }
    corners
}

fn height_of(bytes: u64, top: u64) -> f64 {
    TOP as f64 + HEIGHT as f64 * (1.0 - bytes as f64 / top as f64)
}

/// Text as it stands in XML, in attributes too.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_well_formed_and_to_scale() {
        let mut columns = vec![[0; CATEGORIES]; COLUMNS as usize];
        columns.iter_mut().for_each(|live| live[Category::Weights as usize] = 50);
        columns[120][Category::Activations as usize] = 50;
        let reserved = vec![102; COLUMNS as usize];
        let mut curve = Curve { columns, reserved, steps: vec![(0.0, 4)], span: Span::Time(1_000_000) };
        assert_eq!(curve.most(), 100);
        let svg = curve.svg("n+m", "a < b & \"c\"", 200, Some(200));
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        let fills: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("path"))
            .filter_map(|node| node.attribute("fill").filter(|fill| *fill != "none").zip(node.attribute("d")))
            .collect();
        assert_eq!(fills.len(), 2, "weights and activations");
        // 50 of 200 bytes are a quarter of the plot: 14 + 180 · 3/4 = 149; 100 of 200 a half, 104, in column 120 alone.
        assert_eq!(fills[1], ("#4C9BE8", "M76 194H76V149.0H796V194Z"));
        assert_eq!(fills[0].1, "M76 194H76V149.0H436V104.0H439V149.0H796V194Z");
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && svg.contains(">n+m</text>"));
        assert!(!svg.contains("reserved"), "a fiftieth more is the driver's rounding");
        curve.reserved[10] = 150;
        assert_eq!(curve.most(), 150);
        let svg = curve.svg("", "", 200, None);
        // 102 of 200 from the top: 14 + 180 · 98/200 = 102.2; 150: 59.
        assert!(svg.contains("d=\"M76 102.2H106V59.0H109V102.2H796\"") && svg.contains(">reserved<"), "{svg}");
    }
}
