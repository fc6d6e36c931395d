//! Declaration of configurations.

/// Declares a configuration: a struct that only its crate creates by a literal, so that fields can be added, and a
/// setter of the same name for each public field. The setter of an optional field takes the value without `Some`.
#[doc(hidden)]
#[macro_export]
macro_rules! configuration {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($fields:tt)* }
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        pub struct $name { $($fields)* }

        $crate::configuration! { @setters $name [] $($fields)* }
    };
    (@setters $name:ident [$($done:tt)*] $(#[$doc:meta])* pub $field:ident: Option<$type:ty>, $($rest:tt)*) => {
        $crate::configuration! {
            @setters $name [$($done)*
                #[doc = concat!("Sets the field `", stringify!($field), "`.")]
                #[must_use]
                pub fn $field(mut self, value: impl Into<Option<$type>>) -> Self {
                    self.$field = value.into();
                    self
                }
            ] $($rest)*
        }
    };
    (@setters $name:ident [$($done:tt)*] $(#[$doc:meta])* pub $field:ident: $type:ty, $($rest:tt)*) => {
        $crate::configuration! {
            @setters $name [$($done)*
                #[doc = concat!("Sets the field `", stringify!($field), "`.")]
                #[must_use]
                pub fn $field(mut self, value: $type) -> Self {
                    self.$field = value;
                    self
                }
            ] $($rest)*
        }
    };
    (@setters $name:ident [$($done:tt)*] $(#[$doc:meta])* $visibility:vis $field:ident: $type:ty, $($rest:tt)*) => {
        $crate::configuration! { @setters $name [$($done)*] $($rest)* }
    };
    (@setters $name:ident [$($done:tt)*]) => {
        impl $name { $($done)* }
    };
}

pub(crate) use configuration;
