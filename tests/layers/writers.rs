//! A writer has the columns of one type of rows: rows of another type are an error, never values in other columns.

use std::io::{self, ErrorKind};

use flowgauge::export::{Lines, RecordWriter, Selection, Style};
use flowgauge::row::RowType;

/// A row of each type below has this number.
struct Host(u64);
struct Twin(u64);
struct Swapped(u64);
struct Longer(u64);
struct Retyped(u64);

flowgauge::table! {
    /// Hosts.
    impl "host" for Host as host {
        /// Number.
        "number": u64 = host.0;
        /// Name.
        "name": String = format!("host {}", host.0);
    }
}

flowgauge::table! {
    /// Rows of another type with the columns of hosts.
    impl "twin" for Twin as twin {
        /// Number.
        "number": u64 = twin.0;
        /// Name.
        "name": String = format!("twin {}", twin.0);
    }
}

flowgauge::table! {
    /// The same columns in another order.
    impl "swapped" for Swapped as swapped {
        /// Name.
        "name": String = format!("swapped {}", swapped.0);
        /// Number.
        "number": u64 = swapped.0;
    }
}

flowgauge::table! {
    /// A further column.
    impl "longer" for Longer as longer {
        /// Number.
        "number": u64 = longer.0;
        /// Name.
        "name": String = format!("longer {}", longer.0);
        /// Port.
        "port": u16 = 80;
    }
}

flowgauge::table! {
    /// A column of another type.
    impl "retyped" for Retyped as retyped {
        /// Number.
        "number": String = format!("number {}", retyped.0);
        /// Name.
        "name": String = format!("retyped {}", retyped.0);
    }
}

type Csv = Lines<Vec<u8>>;

fn write<R: RowType>(lines: &mut Csv, row: &R) -> io::Result<()> {
    RecordWriter::<R>::write(lines, row)
}

/// Checks that rows with other columns are refused, and that those of the same columns still are not.
fn check(mut lines: Csv, expected: &str) {
    write(&mut lines, &Host(1)).unwrap();
    for result in [
        write(&mut lines, &Swapped(2)),
        write(&mut lines, &Longer(2)),
        write(&mut lines, &Retyped(2)),
        write(&mut lines, &(Host(2), Host(2))),
    ] {
        let error = result.expect_err("a row with other columns");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("where the output has"), "{error}");
    }
    write(&mut lines, &Twin(3)).unwrap();
    write(&mut lines, &&Host(4)).unwrap();
    write(&mut lines, &Host(5)).unwrap();
    assert_eq!(String::from_utf8(lines.into_inner().unwrap()).unwrap(), expected);
}

#[test]
fn lines_with_columns_refuse_rows_with_other_columns() {
    let (none, style) = (Vec::new, Style::default());
    check(Lines::csv(none(), None, style), "number,name\n1,host 1\n3,twin 3\n4,host 4\n5,host 5\n");
    let selection = || Some(Selection::of::<Host>(["name"]).unwrap());
    check(Lines::csv(none(), selection(), style), "name\nhost 1\ntwin 3\nhost 4\nhost 5\n");
    let expected =
        "{\"name\":\"host 1\"}\n{\"name\":\"twin 3\"}\n{\"name\":\"host 4\"}\n{\"name\":\"host 5\"}\n";
    check(Lines::ndjson(none(), selection(), style), expected);
}

#[test]
fn a_selection_of_another_type_of_row_is_refused() {
    let selection = Selection::of::<Swapped>(["name"]).unwrap();
    let mut lines = Lines::csv(Vec::new(), Some(selection), Style::default());
    let error = write(&mut lines, &Host(1)).expect_err("the second column is chosen");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    // The columns of a pair begin with those of its first row.
    let selection = Selection::of::<Host>(["name"]).unwrap();
    let mut lines = Lines::csv(Vec::new(), Some(selection), Style::default());
    write(&mut lines, &(Host(1), Swapped(2))).unwrap();
    assert_eq!(lines.into_inner().unwrap(), b"name\nhost 1\n");
}

#[test]
fn objects_name_their_columns_and_may_be_of_any_type() {
    let mut lines = Lines::ndjson(Vec::new(), None, Style::default());
    write(&mut lines, &Host(1)).unwrap();
    write(&mut lines, &Swapped(2)).unwrap();
    let expected = "{\"number\":1,\"name\":\"host 1\"}\n{\"name\":\"swapped 2\",\"number\":2}\n";
    assert_eq!(String::from_utf8(lines.into_inner().unwrap()).unwrap(), expected);
}
