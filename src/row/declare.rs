//! Macros that declare tables.

/// Declares the table of a type: its name, and name, Rust type, attributes and value of each column. Doc comments are
/// the descriptions.
///
/// The Rust type of a value is a [`Cell`](crate::row::Cell), from which the type of the column follows; attributes are
/// the methods of [`Column`](crate::row::Column) that take a column and return one. A value after `=>` instead of `=` may
/// have another Rust type whose columns have the same type, such as a list made by an iterator without a name.
///
/// ```
/// struct Sample<'a> {
///     name: &'a str,
///     lengths: &'a [u16],
/// }
///
/// flowgauge::table! {
///     /// Lengths of the first packets.
///     impl['a] "sample" for Sample<'a> as sample {
///         /// Name of the sample.
///         "name": &'a str = sample.name;
///         /// Lengths of the packets.
///         "lengths": flowgauge::row::List<&'a [u16]> [octets, sparse] = flowgauge::row::List(sample.lengths);
///     }
/// }
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[doc = $description:literal])+
        impl $([$($lifetime:lifetime),+])? $name:literal for $type:ty as $row:ident { $(
            $(#[doc = $doc:literal])+
            $column:literal: $cell:ty $([ $($attributes:tt)+ ])? $(= $value:expr)? $(=> $other:expr)?;
        )* }
    ) => {
        $crate::table! {
            @implement [$($($lifetime),+)?] $name, [$($description)+], $type, $row;
            $(
                [$($doc)+]
                [$column]
                [$cell]
                [$($($attributes)+)?]
                [$({ let value: $cell = $value; value })? $($other)?]
            )*
        }
    };
    (
        @implement [$($lifetime:lifetime),*] $name:expr, [$($description:literal)+], $type:ty, $row:ident;
        $(
            [$($doc:literal)+]
            [$column:expr]
            [$cell:ty]
            [$( $attribute:ident $( ($argument:expr) )? ),* $(,)?]
            [$value:expr]
        )*
    ) => {
        impl<$($lifetime),*> $crate::row::Table for $type {
            const NAME: &'static str = $name;
            const DESCRIPTION: &'static str = concat!($($description),+).trim_ascii();
            const COLUMNS: &'static [$crate::row::Column] = &[$(
                $crate::row::Column::new(
                    $column,
                    concat!($($doc),+).trim_ascii(),
                    <$cell as $crate::row::Cell>::TYPE,
                    <$cell as $crate::row::Cell>::IS_NULLABLE,
                ) $( .$attribute( $($argument)? ) )*
            ),*];
        }

        impl<$($lifetime),*> $crate::row::RowType for $type {
            fn columns() -> ::std::vec::Vec<&'static $crate::row::Column> {
                <Self as $crate::row::Table>::COLUMNS.iter().collect()
            }
        }

        impl<$($lifetime),*> $crate::row::Row for $type {
            fn own_columns(&self) -> ::std::vec::Vec<&'static $crate::row::Column> {
                <Self as $crate::row::RowType>::columns()
            }

            #[inline]
            #[allow(
                unused_variables,
                unused_mut,
                unused_assignments,
                clippy::indexing_slicing,
                reason = "indices of the declared columns, which may be none"
            )]
            fn visit(&self, visitor: &mut (impl $crate::row::Visitor + ?Sized)) {
                let $row = self;
                let mut index = 0;
                $(
                    let column = &<Self as $crate::row::Table>::COLUMNS[index];
                    if visitor.wants(column) {
                        $crate::row::Cell::visit(&$value, column, visitor);
                    }
                    index += 1;
                )*
            }
        }
    };
}

/// Declares the struct of a message together with its table: each field is a column, except those after `..`, which
/// only the library returns. Attributes of a column follow the type of its field.
///
/// ```
/// use flowgauge::session::Text;
///
/// flowgauge::message! {
///     /// A greeting.
///     #[derive(Clone, Debug)]
///     "chat.greeting" pub struct Greeting<'m> {
///         /// Name of the sender.
///         pub name: Text<'m>,
///         /// Length of the greeting.
///         pub len: u64 [octets],
///         ..
///         /// The greeting.
///         pub octets: &'m [u8],
///     }
/// }
/// ```
#[macro_export]
macro_rules! message {
    (
        $(#[doc = $description:literal])+
        #[derive($($derive:ident),+)]
        $name:literal pub struct $type:ident $(<$lifetime:lifetime>)? {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $cell:ty $([ $($attributes:tt)+ ])?,
            )*
            $(
                ..
                $(
                    $(#[doc = $hidden_doc:literal])+
                    $hidden_vis:vis $hidden:ident: $hidden_type:ty,
                )+
            )?
        }
    ) => {
        $(#[doc = $description])+
        #[derive($($derive),+)]
        #[non_exhaustive]
        pub struct $type $(<$lifetime>)? {
            $( $(#[doc = $doc])+ pub $field: $cell, )*
            $( $( $(#[doc = $hidden_doc])+ $hidden_vis $hidden: $hidden_type, )+ )?
        }

        $crate::table! {
            @implement [$($lifetime)?] $name, [$($description)+], $type $(<$lifetime>)?, message;
            $( [$($doc)+] [stringify!($field)] [$cell] [$($($attributes)+)?] [message.$field] )*
        }
    };
}

/// Declares an enum whose variants are messages, each a row of a table. A name after a variant replaces that of the
/// variant's table. A last variant after `..` is a [`Union`](crate::row::Union) itself.
///
/// ```
/// # use flowgauge::message;
/// message! {
///     /// A greeting.
///     #[derive(Clone, Copy, Debug)]
///     "chat.greeting" pub struct Greeting {
///         /// Length of the greeting.
///         pub len: u64,
///     }
/// }
///
/// flowgauge::messages! {
///     /// A message of the chat.
///     #[derive(Debug)]
///     pub enum Message<> {
///         /// The first message.
///         Greeting(Greeting),
///         /// The last message.
///         Farewell(Greeting) = "chat.farewell",
///     }
/// }
/// ```
#[macro_export]
macro_rules! messages {
    (
        $(#[$meta:meta])*
        pub enum $type:ident < $($lifetime:lifetime)? > { $(
            $(#[$variant_meta:meta])*
            $variant:ident($row:ty) $(= $name:literal)?,
        )+ $(
            ..
            $(#[$union_meta:meta])*
            $union:ident($union_type:ty),
        )? }
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        #[allow(clippy::large_enum_variant, reason = "rows are passed by reference")]
        pub enum $type $(<$lifetime>)? { $(
            $(#[$variant_meta])*
            $variant($row),
        )+ $(
            $(#[$union_meta])*
            $union($union_type),
        )? }

        impl $(<$lifetime>)? $crate::row::Union for $type $(<$lifetime>)? {
            fn tables() -> ::std::vec::Vec<&'static $crate::row::TableInfo> {
                let tables = ::std::vec![$( $crate::messages!(@table $row $(, $name)?) ),+];
                $( let tables = [tables, <$union_type as $crate::row::Union>::tables()].concat(); )?
                tables
            }

            #[inline]
            fn row(&self) -> $crate::row::TableRow<'_> {
                match self {
                    $( Self::$variant(row) => $crate::row::TableRow::new($crate::messages!(@table $row $(, $name)?), row), )+
                    $( Self::$union(row) => $crate::row::Union::row(row), )?
                }
            }
        }
    };
    (@table $row:ty) => { const { &$crate::row::TableInfo::of::<$row>() } };
    (@table $row:ty, $name:literal) => { const { &$crate::row::TableInfo::of::<$row>().named($name) } };
}

/// Makes types with a table, or enums with names, usable as values of columns: a group, or a name.
///
/// ```text
/// cells! { group Header; name Kind { Request => "request", Response => "response" } }
/// ```
#[cfg(feature = "protocols")]
macro_rules! cells {
    () => {};
    (group $type:ident $(<$lifetime:lifetime>)?; $($rest:tt)*) => {
        impl $(<$lifetime>)? $crate::row::Cell for $type $(<$lifetime>)? {
            const TYPE: $crate::row::Type = $crate::row::Type::Group(<Self as $crate::row::Table>::COLUMNS);

            #[inline]
            fn visit(&self, column: &'static $crate::row::Column, visitor: &mut (impl $crate::row::Visitor + ?Sized)) {
                visitor.group(column, &mut |visitor| $crate::row::Row::visit(self, visitor));
            }
        }
        $crate::row::cells! { $($rest)* }
    };
    (name $type:ident { $($variant:ident => $name:literal),+ $(,)? } $($rest:tt)*) => {
        impl $type {
            /// Returns the name of the value, as in all formats.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )+
                }
            }
        }
        $crate::row::cells! { named $type; $($rest)* }
    };
    (named $type:ident; $($rest:tt)*) => {
        impl $crate::row::Cell for $type {
            const TYPE: $crate::row::Type = $crate::row::Type::Name;

            #[inline]
            fn visit(&self, column: &'static $crate::row::Column, visitor: &mut (impl $crate::row::Visitor + ?Sized)) {
                visitor.name(column, self.name());
            }
        }
        $crate::row::cells! { $($rest)* }
    };
    // A number of a registry, as its name or else as it is displayed.
    (registered $type:ident; $($rest:tt)*) => {
        impl $crate::row::Cell for $type {
            const TYPE: $crate::row::Type = $crate::row::Type::Name;

            #[inline]
            fn visit(&self, column: &'static $crate::row::Column, visitor: &mut (impl $crate::row::Visitor + ?Sized)) {
                match self.name() {
                    Some(name) => visitor.name(column, name),
                    None => visitor.display(column, self),
                }
            }
        }
        $crate::row::cells! { $($rest)* }
    };
    // What `Display` writes.
    (displayed $type:ident $(<$lifetime:lifetime>)?; $($rest:tt)*) => {
        impl $(<$lifetime>)? $crate::row::Cell for $type $(<$lifetime>)? {
            const TYPE: $crate::row::Type = $crate::row::Type::Text;

            #[inline]
            fn visit(&self, column: &'static $crate::row::Column, visitor: &mut (impl $crate::row::Visitor + ?Sized)) {
                visitor.display(column, self);
            }
        }
        $crate::row::cells! { $($rest)* }
    };
}
#[cfg(feature = "protocols")]
pub(crate) use cells;
