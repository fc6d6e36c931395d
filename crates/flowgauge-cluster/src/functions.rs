//! Functions in plans, which the codecs of Ballista encode for both codecs of this crate.

/// Defines the methods of a codec that encode and decode functions as its field `others` does.
macro_rules! functions_of_others {
    ($($decode:ident, $encode:ident: $function:ty;)+) => {
        $(
            fn $decode(
                &self,
                name: &str,
                octets: &[u8],
            ) -> datafusion::error::Result<std::sync::Arc<$function>> {
                self.others.$decode(name, octets)
            }

            fn $encode(&self, function: &$function, octets: &mut Vec<u8>) -> datafusion::error::Result<()> {
                self.others.$encode(function, octets)
            }
        )+
    };
    () => {
        $crate::functions::functions_of_others! {
            try_decode_udf, try_encode_udf: datafusion::logical_expr::ScalarUDF;
            try_decode_higher_order_function, try_encode_higher_order_function:
                datafusion::logical_expr::HigherOrderUDF;
            try_decode_udaf, try_encode_udaf: datafusion::logical_expr::AggregateUDF;
            try_decode_udwf, try_encode_udwf: datafusion::logical_expr::WindowUDF;
        }
    };
}

pub(crate) use functions_of_others;
