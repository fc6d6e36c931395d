//! Keys of the view.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::Model;
use super::selected::FlowCondition;
use flowgauge_condition::Problem;

/// Maximum number of characters of a condition that is entered.
const INPUT_LEN_MAX: usize = 1000;

/// Number of rows that Page Up and Page Down move.
const PAGE_LEN: isize = 10;

/// What the keys apply to.
#[derive(Debug, Default)]
pub(super) enum Mode {
    /// A table, or the flow that is shown.
    #[default]
    Browse,
    /// A condition that is being entered.
    Input(Input),
    Help,
}

/// A condition that is being entered, and its problem.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) text: String,
    pub(super) problem: Option<Problem>,
}

/// What a key changed, from the smallest change to the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// Only what is drawn from the same rows.
    Drawing,
    /// Which rows there are.
    Rows,
    /// The view ends.
    Quit,
}

/// The state of the keys.
#[derive(Debug, Default)]
pub(super) struct Controls {
    pub(super) mode: Mode,
    /// Number of messages behind those that are visible of the flow that is shown.
    pub(super) scroll: usize,
}

impl Controls {
    /// Processes a key.
    pub(super) fn key(&mut self, key: KeyEvent, model: &mut Model) -> Change {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Change::Quit;
        }
        match &mut self.mode {
            Mode::Input(_) => self.input_key(key.code, is_control, model),
            Mode::Help => {
                self.mode = Mode::Browse;
                Change::Drawing
            }
            Mode::Browse => match (key.code, &model.shown) {
                (KeyCode::Char('q'), _) => Change::Quit,
                (KeyCode::Char('?'), _) => {
                    self.mode = Mode::Help;
                    Change::Drawing
                }
                (code, Some(_)) => self.flow_key(code, model),
                (code, None) => self.table_key(code, model),
            },
        }
    }

    fn table_key(&mut self, code: KeyCode, model: &mut Model) -> Change {
        match code {
            KeyCode::Char('p' | ' ') => model.is_paused = !model.is_paused,
            KeyCode::Char('s') => {
                model.order = model.order.or_default_in(model.tab).next(model.tab);
                return Change::Rows;
            }
            KeyCode::Char('r') => {
                model.is_reversed = !model.is_reversed;
                return Change::Rows;
            }
            KeyCode::Tab => {
                model.select_tab(model.tab.next());
                return Change::Rows;
            }
            KeyCode::Char('/') => {
                let text = model.condition.as_ref().map(|condition| condition.text.clone());
                self.mode = Mode::Input(Input { text: text.unwrap_or_default(), problem: None });
            }
            KeyCode::Esc if model.marked_index().is_some() => model.mark(None),
            KeyCode::Esc => {
                model.close();
                return Change::Rows;
            }
            KeyCode::Char('j') | KeyCode::Down => model.move_mark(1),
            KeyCode::Char('k') | KeyCode::Up => model.move_mark(-1),
            KeyCode::PageDown => model.move_mark(PAGE_LEN),
            KeyCode::PageUp => model.move_mark(-PAGE_LEN),
            KeyCode::Char('g') | KeyCode::Home => model.mark(Some(0)),
            KeyCode::Char('G') | KeyCode::End => model.mark(Some(usize::MAX)),
            KeyCode::Enter => {
                self.scroll = 0;
                model.open();
                return Change::Rows;
            }
            _ => {}
        }
        Change::Drawing
    }

    fn flow_key(&mut self, code: KeyCode, model: &mut Model) -> Change {
        let last = model.shown.as_ref().map_or(0, |shown| shown.lines.iter().len().saturating_sub(1));
        let by = match code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace => {
                model.shown = None;
                return Change::Drawing;
            }
            KeyCode::Char('j') | KeyCode::Down => -1,
            KeyCode::Char('k') | KeyCode::Up => 1,
            KeyCode::PageDown => -PAGE_LEN,
            KeyCode::PageUp => PAGE_LEN,
            KeyCode::Char('g') | KeyCode::Home => isize::MAX,
            KeyCode::Char('G') | KeyCode::End => isize::MIN,
            _ => 0,
        };
        self.scroll = self.scroll.saturating_add_signed(by).min(last);
        Change::Drawing
    }

    fn input_key(&mut self, code: KeyCode, is_control: bool, model: &mut Model) -> Change {
        let Mode::Input(Input { text, problem }) = &mut self.mode else { return Change::Drawing };
        match code {
            KeyCode::Esc => self.mode = Mode::Browse,
            KeyCode::Char('u') if is_control => {
                text.clear();
                *problem = None;
            }
            KeyCode::Backspace => {
                text.pop();
                *problem = None;
            }
            KeyCode::Char(letter) if !is_control && text.chars().count() < INPUT_LEN_MAX => {
                text.push(letter);
                *problem = None;
            }
            KeyCode::Enter => {
                let condition = Some(&*text).filter(|text| !text.trim().is_empty());
                match condition.map(|text| FlowCondition::parse(text)).transpose() {
                    Ok(condition) => {
                        model.condition = condition;
                        model.select_tab(super::order::Tab::Flows);
                        self.mode = Mode::Browse;
                        return Change::Rows;
                    }
                    Err(error) => *problem = Some(error),
                }
            }
            _ => {}
        }
        Change::Drawing
    }
}
