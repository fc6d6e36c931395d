//! Rows: how everything that leaves describes itself.
//!
//! A [`Row`] is a flow record, a message, an event or a packet: a list of [columns](Column), and one call of a
//! [`Visitor`] for the value of each column. A format is one visitor; it needs neither the type of the row nor an
//! intermediate value. A [`RowType`] knows its columns without a value; a [`TableRow`] is a row of any table. A [`Table`] is a row with a name and a static list of columns, as [`table!`](crate::table!) and
//! [`message!`](crate::message!) declare it.
//!
//! ```
//! use flowgauge::row::{Row, Table, Value};
//!
//! /// Time to open a connection.
//! struct Opening {
//!     server: std::net::IpAddr,
//!     rtt: Option<std::time::Duration>,
//! }
//!
//! flowgauge::table! {
//!     /// Time to open a connection.
//!     impl "opening" for Opening as opening {
//!         /// Address of the server.
//!         "server": std::net::IpAddr = opening.server;
//!         /// Round-trip time of the handshake.
//!         "rtt": Option<std::time::Duration> = opening.rtt;
//!     }
//! }
//!
//! let opening = Opening { server: [192, 0, 2, 1].into(), rtt: None };
//! assert_eq!(Opening::COLUMNS[1].description, "Round-trip time of the handshake.");
//! assert_eq!((opening.value(0).to_string(), opening.value(1)), ("192.0.2.1".to_owned(), Value::Null));
//! ```

mod base;
mod cell;
mod column;
mod column_set;
#[cfg_attr(
    not(feature = "protocols"),
    allow(unused_macros, unused_imports, reason = "messages of protocols")
)]
mod declare;
#[cfg(feature = "serde")]
mod serialized;
mod shape;
mod table;
mod union;
mod value;
mod visitor;

pub use cell::{Cell, Displayed, Group, List, ListOf, Name};
pub use column::{Column, ColumnSide, InformationElement, Merge, Type, Unit};
pub use column_set::ColumnSet;
#[cfg(feature = "protocols")]
pub(crate) use declare::cells;
#[cfg(feature = "serde")]
pub use serialized::{Serialized, SerializedUnion};
#[doc(hidden)]
pub use shape::Shape;
#[cfg(feature = "protocols")]
pub(crate) use table::concat;
pub use table::{DynRow, Row, RowType, Table, TableInfo};
pub use union::{TableRow, Union};
pub use value::Value;
pub use visitor::{Members, Visitor};
