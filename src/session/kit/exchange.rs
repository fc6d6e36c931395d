//! The macro that declares the row of an exchange.

/// Declares the row of an exchange, a request with its response: each field is a column, and those of
/// [`ExchangeHead`](super::ExchangeHead) follow. All values must be [`Saved`](crate::checkpoint::Saved) and [`Measured`](super::Measured).
/// Fields after `..` are no columns.
///
/// `announces f;` after the struct says that `f` returns the flow that a row announces, if it does.
///
/// Logs of other programs follow the struct, each with its columns:
///
/// - `zeek "radius" ['a] as row { .. }` declares a row of Zeek's `radius.log`, where `row` is the exchange.
/// - `zeek "ntp" ['a] as (row, from) { .. }` declares two, one for the request and one for the response, if they were captured;
///   `from` is the role of the sender.
///   `if (..)` before the columns is a condition on `row` and `from`.
/// - `eve "snmp" ['a] as (row, from) { .. }` declares the object `snmp` of an event of this type, in the same way.
macro_rules! exchange {
    (
        $(#[doc = $description:literal])+
        $name:literal pub struct $type:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $cell:ty $([ $($attributes:tt)+ ])?,
            )*
            $( .. $( $(#[doc = $hidden_doc:literal])+ $hidden:ident: $hidden_type:ty, )+ )?
        }
        $( announces $announced:expr; )?
        $(
            $(#[doc = $log_description:literal])+
            $format:ident $log:literal [$lifetime:lifetime] as $bound:tt $(if ($guard:expr))? { $($columns:tt)* }
        )*
    ) => {
        $(#[doc = $description])+
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct $type {
            $( $(#[doc = $doc])+ pub $field: $cell, )*
            $( $( $(#[doc = $hidden_doc])+ $hidden: $hidden_type, )+ )?
            /// Times, and what was not captured.
            pub exchange: $crate::session::kit::ExchangeHead,
        }

        $crate::table! {
            @implement [] $name, [$($description)+], $type, row;
            $( [$($doc)+] [stringify!($field)] [$cell] [$($($attributes)+)?] [row.$field] )*
            ["Time from the first request to the first response; null if one of them was not captured."]
                ["response_time"] [Option<::std::time::Duration>] [] [row.exchange.response_time]
            ["Number of times that the request was repeated before a response."]
                ["retransmission_count"] [u32] [sparse] [row.exchange.retransmission_count]
        }

        $crate::checkpoint::state! { struct $type { $($field,)* $( $($hidden,)+ )? exchange } }

        impl $crate::session::kit::Declared for $type {
            const MESSAGE: &'static $crate::row::TableInfo = {
                const COUNT: usize = <$type as $crate::row::Table>::COLUMNS.len() + 1;
                const COLUMNS: [$crate::row::Column; COUNT] = $crate::session::kit::columns_of_message::<$type, COUNT>();
                &$crate::row::TableInfo { columns: &COLUMNS, ..$crate::row::TableInfo::of::<$type>() }
            };
            const LOGS: &'static [$crate::session::kit::LogOf<Self>] = &[
                $( $crate::session::kit::log! {
                    $format $log, [$($log_description)+], $type, [$lifetime], $bound, [$($guard)?], { $($columns)* }
                }, )*
            ];

            fn head(&self) -> &$crate::session::kit::ExchangeHead {
                &self.exchange
            }

            fn head_mut(&mut self) -> &mut $crate::session::kit::ExchangeHead {
                &mut self.exchange
            }

            fn heap_len(&self) -> usize {
                0 $( + $crate::session::kit::Measured::heap_len(&self.$field) )*
                    $( $( + $crate::session::kit::Measured::heap_len(&self.$hidden) )+ )?
            }

            $(
                fn expectation(&self) -> ::std::option::Option<$crate::session::Expectation> {
                    $announced(self)
                }
            )?
        }
    };
}
pub(crate) use exchange;
