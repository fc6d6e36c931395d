//! Visitor for the fields of messages of application protocols, for custom formats.

use serde::ser::{Error as _, Impossible, Serialize, SerializeMap, SerializeStruct, Serializer};

/// Receives the fields of a message, in the order in which the message describes them.
pub trait MessageVisitor {
    /// Error of the visitor, which ends the visit.
    type Error: serde::ser::Error;

    /// Processes one field of the message. The visitor may serialize the value once.
    ///
    /// # Errors
    ///
    /// Returns the errors of the visitor and of the value; they end the visit.
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Self::Error>;
}

/// Passes the fields of a message to a visitor.
///
/// The `Serialize` implementation of a message defines its fields. Formats and filters are visitors, so that
/// none of them parses the output of another. Fields of flattened parts are fields of the message, and the
/// tag of an internally tagged variant is the first field. Nothing is allocated, unless a map passes keys and
/// values separately.
///
/// ```
/// use flowgauge::export::{MessageVisitor, visit_message};
/// use serde::Serialize;
///
/// #[derive(Serialize)]
/// #[serde(tag = "message", rename = "greeting")]
/// struct Greeting {
///     text: &'static str,
///     len: usize,
/// }
///
/// /// Lists names.
/// struct Names(Vec<String>);
///
/// impl MessageVisitor for Names {
///     type Error = serde_json::Error;
///
///     fn field<T: Serialize + ?Sized>(&mut self, name: &str, _: &T) -> Result<(), serde_json::Error> {
///         self.0.push(name.to_owned());
///         Ok(())
///     }
/// }
///
/// let mut names = Names(Vec::new());
/// visit_message(&Greeting { text: "hello", len: 5 }, &mut names)?;
/// assert_eq!(names.0, ["message", "text", "len"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
///
/// Returns the errors of the visitor and of the values, and an error if the message is not a structure or a map with
/// strings as keys.
pub fn visit_message<V: MessageVisitor>(
    message: &(impl Serialize + ?Sized),
    visitor: &mut V,
) -> Result<(), V::Error> {
    message.serialize(Fields(visitor))
}

/// Serializer that passes the fields of a structure or a map to a visitor.
struct Fields<'v, V>(&'v mut V);

/// Serializer of a field's name, which passes the field with this name and `value` to a visitor.
struct Named<'a, V, F: ?Sized> {
    visitor: &'a mut V,
    value: &'a F,
}

/// Serializer that returns the name of a field as a string, for a map that passes keys and values separately.
struct Name<E>(std::marker::PhantomData<E>);

/// Serializer of a map, which passes the entries of the map to a visitor.
struct Entries<'v, V> {
    visitor: &'v mut V,
    /// Key whose value has not been passed yet.
    key: String,
}

/// Implements the methods of `Serializer` for types that are not accepted, so that they return an error with
/// the given message.
macro_rules! refuse {
    ($what:literal: $($method:ident($($type:ty),*);)+) => {
        $( fn $method(self, $(_: $type),*) -> Result<Self::Ok, Self::Error> {
            Err(Self::Error::custom($what))
        } )+

        fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Self::Ok, Self::Error> {
            value.serialize(self)
        }

        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            value: &T,
        ) -> Result<Self::Ok, Self::Error> {
            value.serialize(self)
        }

        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<Self::Ok, Self::Error> {
            Err(Self::Error::custom($what))
        }

        fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Self::Error> {
            Err(Self::Error::custom($what))
        }

        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Self::Error> {
            Err(Self::Error::custom($what))
        }

        fn serialize_tuple_struct(
            self,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleStruct, Self::Error> {
            Err(Self::Error::custom($what))
        }

        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, Self::Error> {
            Err(Self::Error::custom($what))
        }

        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, Self::Error> {
            Err(Self::Error::custom($what))
        }
    };
}

/// Defines the types and methods of a `Serializer` that accepts only strings.
macro_rules! texts_only {
    () => {
        type SerializeSeq = Impossible<Self::Ok, Self::Error>;
        type SerializeTuple = Impossible<Self::Ok, Self::Error>;
        type SerializeTupleStruct = Impossible<Self::Ok, Self::Error>;
        type SerializeTupleVariant = Impossible<Self::Ok, Self::Error>;
        type SerializeMap = Impossible<Self::Ok, Self::Error>;
        type SerializeStruct = Impossible<Self::Ok, Self::Error>;
        type SerializeStructVariant = Impossible<Self::Ok, Self::Error>;

        refuse! { "the name of a field must be a text":
            serialize_bool(bool);
            serialize_i8(i8);
            serialize_i16(i16);
            serialize_i32(i32);
            serialize_i64(i64);
            serialize_u8(u8);
            serialize_u16(u16);
            serialize_u32(u32);
            serialize_u64(u64);
            serialize_f32(f32);
            serialize_f64(f64);
            serialize_char(char);
            serialize_bytes(&[u8]);
            serialize_none();
            serialize_unit();
            serialize_unit_struct(&'static str);
        }

        fn serialize_unit_variant(
            self,
            _: &'static str,
            _: u32,
            variant: &'static str,
        ) -> Result<Self::Ok, Self::Error> {
            self.serialize_str(variant)
        }

        fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Self::Error> {
            Err(Self::Error::custom("the name of a field must be a text"))
        }

        fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Self::Error> {
            Err(Self::Error::custom("the name of a field must be a text"))
        }
    };
}

impl<'v, V: MessageVisitor> Serializer for Fields<'v, V> {
    type Ok = ();
    type Error = V::Error;
    type SerializeSeq = Impossible<(), V::Error>;
    type SerializeTuple = Impossible<(), V::Error>;
    type SerializeTupleStruct = Impossible<(), V::Error>;
    type SerializeTupleVariant = Impossible<(), V::Error>;
    type SerializeMap = Entries<'v, V>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<(), V::Error>;

    refuse! { "a message must be a structure or a map":
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'v, V>, V::Error> {
        Ok(Entries { visitor: self.0, key: String::new() })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, V::Error> {
        Ok(self)
    }
}

impl<V: MessageVisitor> SerializeStruct for Fields<'_, V> {
    type Ok = ();
    type Error = V::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), V::Error> {
        self.0.field(name, value)
    }

    fn end(self) -> Result<(), V::Error> {
        Ok(())
    }
}

impl<V: MessageVisitor> SerializeMap for Entries<'_, V> {
    type Ok = ();
    type Error = V::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), V::Error> {
        self.key = key.serialize(Name(std::marker::PhantomData))?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), V::Error> {
        self.visitor.field(&self.key, value)
    }

    fn serialize_entry<K: Serialize + ?Sized, T: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &T,
    ) -> Result<(), V::Error> {
        key.serialize(Named { visitor: &mut *self.visitor, value })
    }

    fn end(self) -> Result<(), V::Error> {
        Ok(())
    }
}

impl<V: MessageVisitor, F: Serialize + ?Sized> Serializer for Named<'_, V, F> {
    type Ok = ();
    type Error = V::Error;

    fn serialize_str(self, name: &str) -> Result<(), V::Error> {
        self.visitor.field(name, self.value)
    }

    texts_only!();
}

impl<E: serde::ser::Error> Serializer for Name<E> {
    type Ok = String;
    type Error = E;

    fn serialize_str(self, name: &str) -> Result<String, E> {
        Ok(name.to_owned())
    }

    texts_only!();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    #[serde(untagged)]
    enum Any {
        Tagged(Tagged),
    }

    #[derive(Serialize)]
    #[serde(tag = "message", rename_all = "snake_case")]
    enum Tagged {
        Reply(Reply),
        Empty,
    }

    #[derive(Serialize)]
    struct Reply {
        code: u16,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'static str>,
        #[serde(flatten)]
        more: BTreeMap<&'static str, Vec<u8>>,
        absent: Option<u8>,
    }

    struct Texts(Vec<String>);

    impl MessageVisitor for Texts {
        type Error = serde_json::Error;

        fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), serde_json::Error> {
            self.0.push(format!("{name}={}", serde_json::to_string(value)?));
            Ok(())
        }
    }

    fn fields(message: &impl Serialize) -> Result<Vec<String>, serde_json::Error> {
        let mut texts = Texts(Vec::new());
        visit_message(message, &mut texts)?;
        Ok(texts.0)
    }

    #[test]
    fn fields_are_visited_in_json_order() {
        let more = BTreeMap::from([("a", vec![1, 2]), ("b", vec![])]);
        let reply = Any::Tagged(Tagged::Reply(Reply { code: 220, text: None, more, absent: None }));
        let expected = ["message=\"reply\"", "code=220", "a=[1,2]", "b=[]", "absent=null"];
        assert_eq!(fields(&reply).unwrap(), expected);
        assert_eq!(fields(&Any::Tagged(Tagged::Empty)).unwrap(), ["message=\"empty\""]);
        assert_eq!(fields(&Some(serde_json::json!({"x": {"y": 1}}))).unwrap(), ["x={\"y\":1}"]);
    }

    #[test]
    fn a_value_without_fields_is_an_error() {
        let error = fields(&[1, 2]).unwrap_err();
        assert_eq!(error.to_string(), "a message must be a structure or a map");
        let error = fields(&BTreeMap::from([(1, 2)])).unwrap_err();
        assert_eq!(error.to_string(), "the name of a field must be a text");
    }
}
