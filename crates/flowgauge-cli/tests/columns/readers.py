"""Compares tables in Parquet and Arrow IPC, as three libraries read them, with the same rows in ndjson.

Usage: readers.py whole NAME PARQUET ARROW NDJSON   all rows of a table, with all columns in ndjson; messages and transactions
                                                    among those of other kinds
       readers.py part ARROW NDJSON                 an IPC stream that ends early, and all rows in ndjson
"""

import json
import sys

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet


def plain(array):
    """Returns the values of an array as ndjson writes them."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in plain(chunk)]
    kind = array.type
    if pa.types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return array.cast(pa.int64()).to_pylist()
    if pa.types.is_list(kind):
        items, start, lists = plain(array.flatten()), 0, []
        for length in array.value_lengths().to_pylist():
            lists.append(None if length is None else items[start : start + length])
            start += length or 0
        return lists
    if pa.types.is_struct(kind):
        members = [(kind.field(i).name, plain(array.field(i))) for i in range(kind.num_fields)]
        is_valid = array.is_valid().to_pylist()
        return [{n: v[i] for n, v in members} if is_valid[i] else None for i in range(len(array))]
    if pa.types.is_binary(kind):
        return [None if value is None else value.hex() for value in array.to_pylist()]
    return array.to_pylist()


def rows_of(table):
    columns = [(name, plain(table.column(name))) for name in table.column_names]
    return [{name: values[i] for name, values in columns} for i in range(table.num_rows)]


def ndjson_rows(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def ordered(rows):
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def is_near(found, expected):
    """Sums of fractions depend on their order; those of integers do not."""
    return abs(float(found) - float(expected)) <= (1e-9 * abs(expected) if isinstance(expected, float) else 0)


def check_equal(name, found, expected):
    assert len(found) == len(expected), f"{name}: {len(found)} rows, {len(expected)} expected"
    for a, b in zip(ordered(found), ordered(expected)):
        if a != b:
            a, b = json.loads(a), json.loads(b)
            keys = [key for key in {**a, **b} if a.get(key, "absent") != b.get(key, "absent")]
            key = keys[0]
            raise AssertionError(f"{name}: {key} is {a.get(key, 'absent')!r}, not {b.get(key, 'absent')!r}")


def whole(name, parquet, arrow, ndjson):
    expected = ndjson_rows(ndjson)
    file = pyarrow.parquet.ParquetFile(parquet)
    metadata = file.schema_arrow.metadata
    assert metadata[b"flowgauge.table"].decode() == name, metadata
    assert metadata[b"flowgauge.version"], metadata
    for field in file.schema_arrow:
        assert field.metadata[b"description"], field
    table = file.read()
    if "message" in table.column_names:
        # Protocols that share messages, such as DNS and mDNS, share a table.
        kinds = set(zip(plain(table.column("protocol")), plain(table.column("message"))))
        expected = [row for row in expected if (row["protocol"], row["message"]) in kinds]
    elif "kind" in table.column_names:
        expected = [row for row in expected if row["kind"] == name.removeprefix("transaction.")]
    check_equal(f"parquet {name}", rows_of(table), expected)
    stream = pa.ipc.open_stream(arrow).read_all()
    check_equal(f"arrow {name}", rows_of(stream), expected)
    times = plain(table.column(next(f.name for f in table.schema if pa.types.is_timestamp(f.type))))
    assert times == sorted(times), "rows of a row group are sorted"

    # Counts, nulls and sums, as the other libraries read the files.
    def numbers_of(schema):
        return {f.name for f in schema if pa.types.is_integer(f.type) or pa.types.is_floating(f.type)}

    numbers = numbers_of(table.schema)
    facts = {}
    for column in table.column_names:
        values = [row[column] for row in expected]
        known = [value for value in values if value is not None]
        facts[column] = (len(values) - len(known), sum(known) if column in numbers else None)
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.register("stream", stream)
    # Durations of Arrow are intervals, which have no sum.
    for source, with_sum in ((f"read_parquet('{parquet}')", numbers), ("stream", numbers_of(stream.schema))):
        for column, (null_count, total) in facts.items():
            wanted = f'count(*), count(*) - count("{column}")'
            wanted += f', coalesce(sum("{column}"), 0)' if column in with_sum else ""
            found = connection.execute(f"select {wanted} from {source}").fetchone()
            assert found[:2] == (len(expected), null_count), f"duckdb {name} {column}: {found}"
            if len(found) > 2:
                assert is_near(found[2], total), f"duckdb {name} {column}: {found} {total}"
    for frame in (polars.read_parquet(parquet), polars.read_ipc_stream(arrow)):
        assert frame.height == len(expected), f"polars {name}"
        for column, (null_count, total) in facts.items():
            values = frame[column]
            assert values.null_count() == null_count, f"polars {name} {column}"
            if column in numbers and values.dtype.is_numeric():
                # Small types would overflow.
                found = values.cast(polars.Float64).sum() if values.dtype.is_float() else sum(values.drop_nulls())
                assert is_near(found, total), f"polars {name} {column}: {found} {total}"
    print(f"{name}: {len(expected)} rows, {len(facts)} columns")


def part(arrow, ndjson):
    """The batches that are complete are the first rows."""
    reader, rows = pa.ipc.open_stream(arrow), []
    try:
        for batch in reader:
            rows += rows_of(pa.Table.from_batches([batch]))
    except (pa.ArrowInvalid, OSError):
        pass
    expected = ndjson_rows(ndjson)
    assert rows and rows == expected[: len(rows)], f"{len(rows)} rows"
    print(f"{len(rows)} of {len(expected)} rows")


if __name__ == "__main__":
    {"whole": whole, "part": part}[sys.argv[1]](*sys.argv[2:])
