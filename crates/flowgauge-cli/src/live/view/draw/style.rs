//! Styles of texts. All that they mark is also marked by a character.

use ratatui::style::{Color, Modifier, Style};

pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Style of what requires attention.
pub(super) const ALARM: Style =
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD).add_modifier(Modifier::REVERSED);
