//! The closed set of protocols that a driver knows, put together at compile time.

use super::parser::Parser;
use super::protocol::Protocol;

/// A protocol of a set, and how its parser begins.
#[derive(Debug)]
pub struct Entry<P> {
    /// The protocol.
    pub protocol: &'static Protocol,
    /// A fresh parser; none for a protocol that is recognised only.
    pub start: Option<fn() -> P>,
}

impl<P> Clone for Entry<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Entry<P> {}

/// How many entries [`table`] has.
#[doc(hidden)]
#[must_use]
pub const fn count<P>(listed: &[Entry<P>], added: &[&[&'static Protocol]]) -> usize {
    match added {
        [added, ..] => listed.len() + added.len(),
        [] => listed.len(),
    }
}

/// The entries of a list, and behind them those of protocols that are recognised only, if there is a slice of such; for
/// [`protocols!`](crate::protocols).
///
/// # Panics
///
/// When compiled, if `COUNT` is not their [`count`], or the list has none.
#[doc(hidden)]
#[must_use]
#[allow(clippy::indexing_slicing, reason = "runs when compiled")]
pub const fn table<P, const COUNT: usize>(
    listed: &[Entry<P>],
    added: &[&[&'static Protocol]],
) -> [Entry<P>; COUNT] {
    assert!(count(listed, added) == COUNT);
    let mut table = [listed[0]; COUNT];
    let mut place = 0;
    while place < COUNT {
        table[place] = match place < listed.len() {
            true => listed[place],
            false => Entry { protocol: added[0][place - listed.len()], start: None },
        };
        place += 1;
    }
    table
}

/// A set of parsers that is a parser itself: an enum of them, written by [`protocols!`](crate::protocols).
pub trait Protocols: Parser + 'static {
    /// The protocols in the order in which their probes are asked: where two match, the first one counts. At most 128.
    const TABLE: &'static [Entry<Self>];
}

/// Writes an enum of parsers, the enum of their messages, and [`Protocols`](crate::session::Protocols) for it.
///
/// Each line of `parsers` is `Variant: ParserType = &PROTOCOL`, where the type is a [`Parser`](crate::session::Parser) with
/// `Default`. `recognised` lists protocols without a parser; `recognised_in` adds a slice of such, as
/// [`recognised::ALL`](crate::session::recognised::ALL), behind them. Probes are asked in this order.
///
/// ```
/// use flowgauge::session::{Fault, Input, Out, Parser, Progress, Protocol};
///
/// /// Reports lines.
/// #[derive(Debug, Default)]
/// pub struct Lines;
///
/// impl Parser for Lines {
///     type Message<'m> = &'m [u8];
///
///     fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
///         let mut taken = 0;
///         for line in input.bytes.split_inclusive(|octet| *octet == b'\n').filter(|line| line.ends_with(b"\n")) {
///             taken += line.len();
///             out(line);
///         }
///         Ok(Progress::Took(taken))
///     }
/// }
///
/// static LINES: Protocol = Protocol::new("lines").over_streams(&[7001], None);
///
/// flowgauge::protocols! {
///     /// What this program parses.
///     #[derive(Debug)]
///     pub enum Mine;
///     /// What it hears.
///     #[derive(Debug)]
///     pub enum Heard;
///     parsers { Lines: Lines = &LINES }
///     recognised {}
/// }
/// ```
#[macro_export]
macro_rules! protocols {
    (
        $(#[$set_meta:meta])* $set_vis:vis enum $Set:ident;
        $(#[$message_meta:meta])* $message_vis:vis enum $Message:ident;
        parsers { $( $(#[$variant_meta:meta])* $Variant:ident: $Parser:ty = $protocol:expr ),+ $(,)? }
        recognised { $( $recognised:expr ),* $(,)? }
        $( recognised_in $all:expr )?
    ) => {
        $(#[$set_meta])*
        $set_vis enum $Set {
            $( #[doc = concat!("A parser of `", stringify!($Parser), "`.")] $Variant($Parser), )+
        }

        $(#[$message_meta])*
        $message_vis enum $Message<'m> {
            $(
                $(#[$variant_meta])*
                #[doc = concat!("From a parser of `", stringify!($Parser), "`.")]
                $Variant(<$Parser as $crate::session::Parser>::Message<'m>),
            )+
        }

        impl $crate::session::Parser for $Set {
            type Message<'m> = $Message<'m>;

            #[inline]
            fn bytes(
                &mut self,
                input: &$crate::session::Input<'_>,
                out: $crate::session::Out<'_, Self>,
            ) -> ::core::result::Result<$crate::session::Progress, $crate::session::Fault> {
                match self {
                    $( Self::$Variant(parser) => $crate::session::Parser::bytes(
                        parser,
                        input,
                        &mut |message| out($Message::$Variant(message)),
                    ), )+
                }
            }

            #[inline]
            fn datagram(
                &mut self,
                datagram: &$crate::session::Datagram<'_>,
                out: $crate::session::Out<'_, Self>,
            ) -> ::core::result::Result<$crate::session::Progress, $crate::session::Fault> {
                match self {
                    $( Self::$Variant(parser) => $crate::session::Parser::datagram(
                        parser,
                        datagram,
                        &mut |message| out($Message::$Variant(message)),
                    ), )+
                }
            }

            fn gap(
                &mut self,
                missing: &$crate::session::Missing<'_>,
                out: $crate::session::Out<'_, Self>,
            ) -> $crate::session::AfterGap {
                match self {
                    $( Self::$Variant(parser) => $crate::session::Parser::gap(
                        parser,
                        missing,
                        &mut |message| out($Message::$Variant(message)),
                    ), )+
                }
            }

            fn end(&mut self, end: &$crate::session::End<'_>, out: $crate::session::Out<'_, Self>) {
                match self {
                    $( Self::$Variant(parser) => $crate::session::Parser::end(
                        parser,
                        end,
                        &mut |message| out($Message::$Variant(message)),
                    ), )+
                }
            }

            fn tick(&mut self, now: $crate::base::Timestamp, out: $crate::session::Out<'_, Self>) {
                match self {
                    $( Self::$Variant(parser) => $crate::session::Parser::tick(
                        parser,
                        now,
                        &mut |message| out($Message::$Variant(message)),
                    ), )+
                }
            }

            #[inline]
            fn is_content(message: &$Message<'_>) -> bool {
                match message {
                    $( $Message::$Variant(message) => <$Parser as $crate::session::Parser>::is_content(message), )+
                }
            }

            #[inline]
            fn heap_len(&self) -> usize {
                match self {
                    $( Self::$Variant(parser) => $crate::session::Parser::heap_len(parser), )+
                }
            }
        }

        impl $crate::session::Protocols for $Set {
            const TABLE: &'static [$crate::session::Entry<Self>] = {
                const LISTED: &[$crate::session::Entry<$Set>] = &[
                    $( $crate::session::Entry {
                        protocol: $protocol,
                        start: ::core::option::Option::Some(|| $Set::$Variant(<$Parser>::default())),
                    }, )+
                    $( $crate::session::Entry { protocol: $recognised, start: ::core::option::Option::None }, )*
                ];
                const ADDED: &[&[&$crate::session::Protocol]] = &[$( $all )?];
                const COUNT: usize = $crate::session::count(LISTED, ADDED);
                &$crate::session::table::<$Set, COUNT>(LISTED, ADDED)
            };
        }
    };
}
