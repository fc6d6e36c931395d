//! Messages as JSON.

use flowgauge::export::{Style, write_message};
use flowgauge::row::Union;

/// Returns a message as a JSON object, with the kinds of its credentials.
pub(crate) fn as_json(message: &impl Union) -> String {
    let mut out = Vec::new();
    let mut style = Style::default();
    style.has_sensitive = true;
    write_message(&mut out, message, style);
    String::from_utf8(out).expect("JSON is UTF-8")
}
