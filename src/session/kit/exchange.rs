//! The macro that declares the row of an exchange.

/// Declares the row of an exchange, a request with its response: each field is a column, and those of
/// [`ExchangeHead`](super::ExchangeHead) follow. All values must be [`Saved`](crate::checkpoint::Saved) and [`Measured`](super::Measured).
macro_rules! exchange {
    (
        $(#[doc = $description:literal])+
        $name:literal pub struct $type:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $cell:ty $([ $($attributes:tt)+ ])?,
            )*
        }
    ) => {
        $(#[doc = $description])+
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct $type {
            $( $(#[doc = $doc])+ pub $field: $cell, )*
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
            ["What was not captured: the request, the response, or further responses (`end`); `limit` if more exchanges were \
                open than are kept."]
                ["lacks"] [Option<$crate::session::Lack>] [] [row.exchange.lacks]
        }

        $crate::checkpoint::state! { struct $type { $($field,)* exchange } }

        impl $crate::session::kit::KitRow for $type {
            fn table(&self) -> &'static $crate::row::TableInfo {
                const { &$crate::row::TableInfo::of::<$type>() }
            }

            fn head(&self) -> &$crate::session::kit::ExchangeHead {
                &self.exchange
            }

            fn head_mut(&mut self) -> &mut $crate::session::kit::ExchangeHead {
                &mut self.exchange
            }

            fn heap_len(&self) -> usize {
                0 $( + $crate::session::kit::Measured::heap_len(&self.$field) )*
            }
        }
    };
}
pub(crate) use exchange;
