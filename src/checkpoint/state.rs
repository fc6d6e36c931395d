//! State of the caller that is saved with each flow.

use super::error::Invalid;
use crate::codec::{Growing, Reader, Writer};

/// Writer of the state of a flow.
pub type StateWriter<'b> = Writer<Growing<'b>>;

/// State that a checkpoint contains: of a flow, for [`Sink::State`](crate::pipeline::Sink::State).
///
/// ```
/// use flowgauge::checkpoint::{Invalid, State, StateWriter};
/// use flowgauge::codec::Reader;
///
/// /// Counter of packets with an ECN mark.
/// #[derive(Debug, Default, PartialEq)]
/// struct Marked(u64);
///
/// impl State for Marked {
///     fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
///         Ok(writer.varint(self.0)?)
///     }
///
///     fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
///         Ok(Self(reader.varint()?))
///     }
/// }
///
/// let mut octets = Vec::new();
/// Marked(300).save(&mut StateWriter::growing(&mut octets))?;
/// assert_eq!(Marked::load(&mut Reader::new(&octets))?, Marked(300));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait State: Sized {
    /// Writes the state.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the state cannot be saved. Nothing else fails: the writer grows.
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid>;

    /// Reads the state, which may contain anything. It must read all octets.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the octets are not a state that [`save`](Self::save) writes.
    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid>;
}

impl State for () {
    fn save(&self, _: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(())
    }

    fn load(_: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(())
    }
}

impl<A: State, B: State> State for (A, B) {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.0.save(writer)?;
        self.1.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok((A::load(reader)?, B::load(reader)?))
    }
}

/// Any type with `serde::Serialize` and `serde::Deserialize` as the state of a flow. It is saved as MessagePack with the
/// names of fields, so that fields may be added later.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serialized<T>(pub T);

#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> State for Serialized<T> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        let octets = rmp_serde::to_vec_named(&self.0)
            .map_err(|_| Invalid::new("a state that cannot be serialized"))?;
        Ok(writer.bytes(octets)?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let octets = reader.bytes(reader.remaining_len())?;
        rmp_serde::from_slice(octets)
            .map(Self)
            .map_err(|_| Invalid::new("a state that cannot be deserialized"))
    }
}
