//! What an exchange or a transaction lacks.

/// What a transaction lacks. If it lacks several things, the first one in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Lack {
    /// More transactions were open, or a text was longer, than the limits permit.
    Limit,
    /// The request was not captured, or not parsed.
    Request,
    /// No response was captured before the flow ended, or its parser stopped.
    Response,
    /// The flow ended, or its parser stopped, before the transaction was complete.
    End,
    /// Octets of a body are missing.
    Body,
}

crate::checkpoint::state! { enum Lack { 0 = Limit, 1 = Request, 2 = Response, 3 = End, 4 = Body } }

crate::row::cells! {
    name Lack {
        Limit => "limit",
        Request => "request",
        Response => "response",
        End => "end",
        Body => "body",
    }
}
