//! The table of the transitions between the states of a session.

/// Kind of a session state, without the data of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StateKind {
    New,
    Stream,
    Resuming,
    Datagrams,
    Parsing,
    Paused,
    Awaiting,
    Off,
}

/// Cause of a transition between session states; the module documentation states when each cause occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    Undecided,
    Recognized,
    Searched,
    Handover,
    Unparsed,
    Refused,
    Paused,
    Closed,
}

/// A transition of a session: state before, cause, state after.
pub(super) type Transition = (StateKind, Cause, StateKind);

/// All transitions that a session can make.
pub(super) const TRANSITIONS: [Transition; 36] = {
    use Cause::{Closed, Handover, Recognized, Refused, Searched, Undecided, Unparsed};
    use StateKind::{Awaiting, Datagrams, New, Off, Parsing, Paused, Resuming, Stream};
    [
        (New, Undecided, Stream),
        (New, Undecided, Datagrams),
        (New, Undecided, Awaiting),
        (New, Recognized, Parsing),
        (New, Searched, Resuming),
        (New, Unparsed, Off),
        (New, Refused, Off),
        (New, Closed, Off),
        (Stream, Undecided, Awaiting),
        (Stream, Recognized, Parsing),
        (Stream, Searched, Resuming),
        (Stream, Unparsed, Off),
        (Stream, Refused, Off),
        (Stream, Closed, Off),
        (Resuming, Recognized, Parsing),
        (Resuming, Unparsed, Off),
        (Resuming, Refused, Off),
        (Resuming, Closed, Off),
        (Datagrams, Recognized, Parsing),
        (Datagrams, Unparsed, Off),
        (Datagrams, Refused, Off),
        (Datagrams, Closed, Off),
        (Parsing, Handover, Parsing),
        (Parsing, Handover, Stream),
        (Parsing, Handover, Datagrams),
        (Parsing, Unparsed, Off),
        (Parsing, Refused, Off),
        (Parsing, Closed, Off),
        (Parsing, Cause::Paused, Paused),
        (Paused, Recognized, Parsing),
        (Paused, Refused, Off),
        (Paused, Closed, Off),
        (Awaiting, Recognized, Parsing),
        (Awaiting, Unparsed, Off),
        (Awaiting, Refused, Off),
        (Awaiting, Closed, Off),
    ]
};

#[cfg(test)]
thread_local! {
    /// The transitions that sessions made, for the test that compares them with the table.
    pub(super) static SEEN: std::cell::RefCell<std::collections::BTreeSet<Transition>> =
        const { std::cell::RefCell::new(std::collections::BTreeSet::new()) };
}
