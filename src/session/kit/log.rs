//! Rows of the logs of other programs that follow from the rows of the kit.

use std::io;

use super::head::ExchangeHead;
use crate::base::Timestamp;
use crate::row::{DynRow, TableInfo};
use crate::session::{Lack, Role};

/// The program to whose logs a row belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Zeek,
    Eve,
}

/// A row of a log, without the columns that all rows of the log begin with.
#[derive(Clone, Copy)]
pub(crate) struct LogRow<'r> {
    pub(crate) timestamp: Timestamp,
    /// Role of the sender.
    pub(crate) from: Role,
    pub(crate) table: &'static TableInfo,
    pub(crate) row: &'r dyn DynRow,
}

/// Callback that receives rows of logs, and returns whether a row was written.
pub(crate) type EachLogRow<'e> = &'e mut dyn FnMut(LogRow<'_>) -> io::Result<bool>;

/// Function that calls another one with the row of a log.
type Call<T> = fn(&T, Role, &mut dyn FnMut(&dyn DynRow));

/// A log to which rows of a type belong.
pub(crate) struct LogOf<T> {
    pub(crate) format: LogFormat,
    pub(crate) table: &'static TableInfo,
    /// True if request and response have a row each.
    pub(crate) is_of_messages: bool,
    /// Calls a function with the row that belongs to the message of a role.
    pub(crate) call: Call<T>,
}

impl<T> LogOf<T> {
    /// Passes on the rows of an exchange. Returns whether all were written.
    pub(super) fn each(&self, row: &T, head: &ExchangeHead, out: EachLogRow<'_>) -> io::Result<bool> {
        let table = self.table;
        let mut outcome = Ok(true);
        let mut pass = |from, timestamp| {
            (self.call)(row, from, &mut |row| {
                if let Ok(is_written) = outcome {
                    let written = out(LogRow { timestamp, from, table, row });
                    outcome = written.map(|is_new| is_new && is_written);
                }
            });
        };
        if !self.is_of_messages {
            pass(head.from, head.start);
            return outcome;
        }
        if head.lacks != Some(Lack::Request) {
            // A request that was captured after its response has the time of the row's end.
            let is_late = head.response_time.is_none() && head.responded == Some(head.start);
            pass(head.from, if is_late { head.end } else { head.start });
        }
        if let Some(timestamp) = head.responded {
            pass(head.from.other(), timestamp);
        }
        outcome
    }
}

/// Declares a log of [`exchange!`](super::exchange!).
macro_rules! log {
    (
        zeek $name:literal, [$($description:literal)+], $type:ident, [$lifetime:lifetime], $bound:tt, [$($guard:expr)?],
        { $( $(#[doc = $doc:literal])+ $column:literal: $cell:ty = $value:expr; )* }
    ) => {{
        struct Logged<$lifetime>(&$lifetime $type, #[allow(dead_code, reason = "not all logs depend on it")] $crate::session::Role);
        $crate::session::kit::log! {
            @columns concat!("zeek.", $name), [$($description)+], $type, [$lifetime], $bound,
            { $( [$($doc)+] $column: $cell = $value; )* }
        }
        $crate::session::kit::LogOf {
            format: $crate::session::kit::LogFormat::Zeek,
            table: const { &$crate::row::TableInfo::of::<Logged<'_>>() },
            is_of_messages: $crate::session::kit::log!(@is $bound),
            call: |row, from, out| {
                let logged = Logged(row, from);
                $(
                    let $bound = $crate::session::kit::log!(@of $bound, logged);
                    if !$guard {
                        return;
                    }
                )?
                out(&logged);
            },
        }
    }};
    (
        eve $name:literal, [$($description:literal)+], $type:ident, [$lifetime:lifetime], $bound:tt, [$($guard:expr)?],
        { $( $(#[doc = $doc:literal])+ $column:literal: $cell:ty = $value:expr; )* }
    ) => {{
        struct Logged<$lifetime>(&$lifetime $type, #[allow(dead_code, reason = "not all logs depend on it")] $crate::session::Role);
        struct Event<$lifetime>(&$lifetime $type, $crate::session::Role);
        $crate::session::kit::log! {
            @columns concat!("eve.", $name, ".", $name), [$($description)+], $type, [$lifetime], $bound,
            { $( [$($doc)+] $column: $cell = $value; )* }
        }
        $crate::table! {
            @implement [$lifetime] concat!("eve.", $name), [$($description)+], Event<$lifetime>, event;
            [$($description)+] [$name] [$crate::row::Group<Logged<$lifetime>>] []
                [$crate::row::Group(Logged(event.0, event.1))]
        }
        $crate::session::kit::LogOf {
            format: $crate::session::kit::LogFormat::Eve,
            table: const { &$crate::row::TableInfo::of::<Event<'_>>() },
            is_of_messages: $crate::session::kit::log!(@is $bound),
            call: |row, from, out| {
                let logged = Event(row, from);
                $(
                    let $bound = $crate::session::kit::log!(@of $bound, logged);
                    if !$guard {
                        return;
                    }
                )?
                out(&logged);
            },
        }
    }};
    (
        @columns $name:expr, [$($description:literal)+], $type:ident, [$lifetime:lifetime], $bound:tt,
        { $( [$($doc:literal)+] $column:literal: $cell:ty = $value:expr; )* }
    ) => {
        $crate::table! {
            @implement [$lifetime] $name, [$($description)+], Logged<$lifetime>, logged;
            $(
                [$($doc)+] [$column] [$cell] []
                [{
                    let $bound = $crate::session::kit::log!(@of $bound, logged);
                    let value: $cell = $value;
                    value
                }]
            )*
        }
    };
    (@is ($row:ident, $from:ident)) => { true };
    (@is $row:ident) => { false };
    (@of ($row:ident, $from:ident), $logged:ident) => { ($logged.0, $logged.1) };
    (@of $row:ident, $logged:ident) => { $logged.0 };
}
pub(crate) use log;
