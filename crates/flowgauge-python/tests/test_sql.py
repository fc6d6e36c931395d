"""SQL over captures, and tables of captures for the package datafusion."""

import datetime
import decimal
import errno
import gc
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import duckdb
import flowgauge
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from conftest import CAPTURES, DATA
from test_errors import check_closed
from test_lifetime import check_interrupt, check_other_threads, linux, open_files, pipes, settled, settled_threads, status

WEB = DATA / "web.pcap"
ALL = [DATA / name for name in ("web.pcap", "dns.pcap")]


def supports_sql():
    try:
        flowgauge.sql("SELECT 1")
    except NotImplementedError:
        return False
    return True


if supports_sql():
    import datafusion
elif os.environ.get("FLOWGAUGE_SQL") == "required":
    raise RuntimeError("the package was built without SQL")

sql_only = pytest.mark.skipif(not supports_sql(), reason="the package was built without the feature sql")


@pytest.mark.skipif(supports_sql(), reason="the package was built with the feature sql")
def test_a_build_without_sql():
    for function in (lambda: flowgauge.sql("SELECT 1"), lambda: flowgauge.table("flows", WEB)):
        with pytest.raises(NotImplementedError, match="--features sql"):
            function()
    with pytest.raises(FileNotFoundError):
        flowgauge.table("flows", DATA / "missing.pcap")


def paths(captures):
    return ", ".join(f"'{path}'" for path in captures)


def plain(stream):
    """Returns the rows of a stream with the types of SQL."""
    table = pyarrow.table(stream)
    names = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    types = {pyarrow.duration("ns"): pyarrow.int64(), names: pyarrow.string()}
    columns = [column.cast(types[column.type]) if column.type in types else column for column in table.columns]
    return pyarrow.table(columns, names=table.column_names)


def rounded(rows):
    """Returns rows whose floats can be compared although they were added in another order."""
    return [tuple(round(value, 6) if isinstance(value, float) else value for value in row) for row in rows]


def rows_of(stream):
    return rounded(tuple(row.values()) for row in stream)


QUERIES = [
    "SELECT application, count(*) FROM flows GROUP BY 1 ORDER BY 1 NULLS LAST",
    "SELECT protocol, conn_state, sum(octet_count), max(duration) FROM flows GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT count(*), sum(packet_count), avg(octet_count), min(source_port) FROM flows WHERE destination_port = 443",
    "SELECT source_address, destination_port, octet_count FROM flows WHERE octet_count > 1000 ORDER BY 3, 1, 2",
    "SELECT count(*) FROM packets"
    " WHERE source_address IN (SELECT source_address FROM flows WHERE application = 'http')",
    "SELECT f.application, count(*), sum(p.wire_len) FROM flows f JOIN packets p ON"
    " f.source_address = p.source_address AND f.source_port = p.source_port GROUP BY 1 ORDER BY 1 NULLS LAST",
    "SELECT m.method, m.status, f.octet_count FROM messages m JOIN flows f USING (community_id)"
    " WHERE m.message = 'response' ORDER BY 2, 3",
    "SELECT status, count(*) FROM transactions GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 NULLS LAST",
    "SELECT source_address, octet_count, sum(octet_count) OVER (PARTITION BY source_address ORDER BY octet_count, start"
    " ROWS UNBOUNDED PRECEDING) FROM flows ORDER BY 1, 2, start",
    "WITH big AS (SELECT * FROM flows WHERE octet_count > 500) SELECT file, count(*) FROM big GROUP BY file ORDER BY 1",
    "SELECT DISTINCT destination_port FROM flows WHERE destination_port < 1024 ORDER BY 1 LIMIT 5",
    "SELECT payload_len, count(*) FROM packets WHERE payload_len > 0 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 7",
    "SELECT protocol, octet_count FROM flows WHERE application IS NULL UNION ALL"
    " SELECT protocol, wire_len FROM packets WHERE destination_port = 53 ORDER BY 1, 2",
]


@pytest.fixture(scope="module")
def reference():
    """The same captures as tables of DuckDB."""
    connection = duckdb.connect()
    connection.register("flows", plain(flowgauge.flows(ALL)))
    connection.register("packets", plain(flowgauge.packets(ALL)))
    connection.register("messages", plain(flowgauge.messages("http", ALL)))
    connection.register("transactions", plain(flowgauge.transactions("http", ALL)))
    return connection


def with_functions(query):
    """Returns the query with table functions instead of tables."""
    kinds = {"flows": "", "packets": "", "messages": "'http', ", "transactions": "'http', "}
    function = lambda found: f"{found[1]} {found[2]}({kinds[found[2]]}{paths(ALL)})"
    return re.sub(r"(FROM|JOIN) (flows|packets|messages|transactions)\b", function, query)


@sql_only
@pytest.mark.parametrize("query", QUERIES)
def test_results_are_those_of_duckdb(reference, query):
    expected = rounded(reference.sql(query).fetchall())
    assert expected
    stream = flowgauge.sql(with_functions(query))
    assert rows_of(stream) == expected
    # Another consumer executes the query again.
    table = pyarrow.table(stream)
    table.validate(full=True)
    assert table.schema.names == stream.columns
    assert table.num_rows == len(expected)
    assert rows_of(flowgauge.sql(with_functions(query), threads=1, batch_size=3)) == expected


@sql_only
@pytest.mark.parametrize("query", QUERIES)
def test_tables_of_captures_are_those_of_duckdb(reference, query):
    tables = {name: flowgauge.table(name, ALL) for name in ("flows", "packets")}
    tables |= {name: flowgauge.table(name, ALL, kind="http") for name in ("messages", "transactions")}
    expected = rounded(reference.sql(query).fetchall())
    assert rows_of(flowgauge.sql(query, tables=tables)) == expected
    context = datafusion.SessionContext()
    for name, table in tables.items():
        context.register_table(name, table)
    assert rounded(tuple(row.values()) for row in context.sql(query).to_pylist()) == expected


@sql_only
def test_readers():
    stream = flowgauge.sql(f"SELECT application, octet_count FROM flows('{WEB}') ORDER BY octet_count, start")
    expected = pyarrow.table(stream).to_pydict()
    assert len(expected["application"]) == len(list(flowgauge.flows(WEB)))
    assert polars.DataFrame(stream).to_dict(as_series=False) == expected
    assert pandas.DataFrame.from_arrow(stream)["octet_count"].to_list() == expected["octet_count"]
    found = duckdb.sql("select application, octet_count from stream").fetchall()
    assert found == list(zip(expected["application"], expected["octet_count"]))
    assert pyarrow.schema(stream).names == stream.columns == ["application", "octet_count"]
    assert repr(stream) == "<flowgauge.Stream: query, 2 columns>"


@sql_only
def test_files(tmp_path):
    path = tmp_path / "flows.parquet"
    flows = plain(flowgauge.flows(ALL))
    flows = flows.select([field.name for field in flows.schema if not pyarrow.types.is_nested(field.type)])
    pyarrow.parquet.write_table(flows, path)
    query = "SELECT application, sum(octet_count) FROM '{}' GROUP BY 1 ORDER BY 1 NULLS LAST".format(path)
    expected = duckdb.sql(query).fetchall()
    assert len(expected) > 3
    assert rows_of(flowgauge.sql(query)) == expected
    # Text of files has the type of text of captures.
    schema = pyarrow.schema(flowgauge.sql(f"SELECT application, CAST(octet_count AS VARCHAR) FROM '{path}'"))
    assert schema.types == [pyarrow.string(), pyarrow.string()]
    files = f"SELECT count(*) AS n FROM flows('{path}', '{WEB}')"
    assert list(flowgauge.sql(files)) == [{"n": flows.num_rows + len(list(flowgauge.flows(WEB)))}]


HOSTS = {"address": ["10.77.0.2", "10.77.0.3", "198.51.100.1"], "Name": ["a", "b", None], "rank": [1, 2, 3]}


@sql_only
@pytest.mark.parametrize("kind", ["pyarrow", "dictionary", "polars", "pandas", "duckdb", "reader", "batch"])
def test_tables_of_other_packages(kind):
    arrow = pyarrow.table(HOSTS)
    connection = duckdb.connect()
    hosts = {
        "pyarrow": lambda: arrow,
        "dictionary": lambda: arrow.set_column(0, "address", arrow["address"].dictionary_encode()),
        "polars": lambda: polars.DataFrame(HOSTS),
        "pandas": lambda: pandas.DataFrame(HOSTS),
        "duckdb": lambda: connection.from_arrow(arrow),
        "reader": lambda: arrow.to_reader(max_chunksize=1),
        "batch": lambda: arrow.to_batches()[0],
    }[kind]()
    query = f"""
        SELECT h."Name", h.rank, count(*) AS flows, sum(f.octet_count) AS octets
        FROM flows('{WEB}') f JOIN Hosts h ON h.address = f.source_address GROUP BY 1, 2 ORDER BY 2"""
    flows = list(flowgauge.flows(WEB))
    expected = []
    for address, name, rank in zip(*HOSTS.values()):
        octets = [row["octet_count"] for row in flows if row["source_address"] == address]
        if octets:
            expected.append({"Name": name, "rank": rank, "flows": len(octets), "octets": sum(octets)})
    assert expected
    stream = flowgauge.sql(query, tables={"Hosts": hosts})
    del hosts
    gc.collect()
    # A table is scanned more than once, in one query and by several consumers.
    assert list(stream) == list(stream) == expected
    assert list(flowgauge.sql('SELECT count(*) AS n FROM "Hosts" a, hosts b', tables={"Hosts": arrow})) == [{"n": 9}]


@sql_only
def test_names_of_tables():
    tables = {"A": pyarrow.table({"x": [1]}), "a": pyarrow.table({"x": [2]}), "b c": pyarrow.table({"x": [3]})}
    query = 'SELECT (SELECT x FROM A) AS a, (SELECT x FROM "A") AS b, (SELECT x FROM "b c") AS c'
    assert list(flowgauge.sql(query, tables=tables)) == [{"a": 2, "b": 1, "c": 3}]


@sql_only
def test_streams_as_tables():
    octets = WEB.read_bytes()
    flows = flowgauge.flows(octets, where="destination_port = 443", columns=["octet_count"])
    expected = [row["octet_count"] for row in flows]
    query = "SELECT count(*) AS n, sum(octet_count) AS octets FROM flows"
    for source in (flows, flowgauge.sql("SELECT * FROM flows", tables={"flows": flows})):
        stream = flowgauge.sql(query, tables={"flows": source})
        assert list(stream) == [{"n": len(expected), "octets": sum(expected)}]
    with open(WEB, "rb") as file:
        stream = flowgauge.sql("SELECT count(*) AS n FROM p", tables={"p": flowgauge.packets(file)})
    assert list(stream) == list(stream) == [{"n": len(list(flowgauge.packets(WEB)))}]


@sql_only
def test_captures_on_interfaces_are_no_tables():
    """They have no end."""
    try:
        live = flowgauge.live("lo")
    except flowgauge.MissingPermissionError as error:
        pytest.skip(str(error))
    with live, pytest.raises(TypeError, match="has no end"):
        flowgauge.sql("SELECT count(*) FROM live", tables={"live": live})


@sql_only
@pipes
def test_interrupt_while_a_table_has_no_data(tmp_path):
    check_interrupt(tmp_path, "table", "rows")


@sql_only
def test_columns_that_have_changed(tmp_path):
    """A consumer has the types of the columns from the first plan."""
    file = tmp_path / "numbers.csv"
    file.write_text("x\n1\n")
    stream = flowgauge.sql(f"SELECT x FROM '{file}'")
    assert pyarrow.table(stream).to_pydict() == {"x": [1]}
    file.write_text("x\n2\n")
    assert pyarrow.table(stream).to_pydict() == {"x": [2]}
    file.write_text("x\n1.5\n")
    for read in (list, pyarrow.table):
        with pytest.raises(ValueError, match="columns of the result have changed"):
            read(stream)


@sql_only
def test_a_batch_of_all_rows():
    query = "SELECT a.x FROM (VALUES (1), (2)) AS a(x) JOIN (VALUES (2), (3)) AS b(x) ON a.x = b.x ORDER BY a.x"
    assert list(flowgauge.sql(query, batch_size=2**63)) == [{"x": 2}]


@sql_only
def test_values_of_rows():
    query = """
        SELECT CAST('2026-11-27' AS DATE) AS date, CAST(-1.5 AS DECIMAL(5, 2)) AS number, NULL AS nothing,
        arrow_cast(2, 'Timestamp(Second, None)') AS second, arrow_cast(3, 'Duration(Millisecond)') AS duration,
        arrow_cast('a', 'Utf8View') AS view, arrow_cast('b', 'LargeUtf8') AS large, [1, NULL] AS list,
        {'a': 1} AS group,
        arrow_cast('c', 'Dictionary(UInt8, Utf8)') AS name, CAST('10:00:00' AS TIME) AS time,
        arrow_cast('d', 'BinaryView') AS octets"""
    assert list(flowgauge.sql(query)) == [
        {
            "date": datetime.date(2026, 11, 27),
            "number": decimal.Decimal("-1.50"),
            "nothing": None,
            "second": 2_000_000_000,
            "duration": 3_000_000,
            "view": "a",
            "large": "b",
            "list": [1, None],
            "group": {"a": 1},
            "name": "c",
            "time": 36_000_000_000_000,
            "octets": b"d",
        }
    ]
    stream = flowgauge.sql("SELECT a.x, b.x FROM t a, t b", tables={"t": pyarrow.table({"x": [1]})})
    with pytest.raises(ValueError, match='several columns "x".*use AS'):
        iter(stream)
    assert pyarrow.table(stream).num_rows == 1


@sql_only
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "No SQL statements"),
        ("SHOUT", "found: SHOUT at Line: 1, Column: 1"),
        ("SELECT nonsense FROM flows('{web}')", "No field named nonsense"),
        ("SELECT * FROM nonsense", "nonsense' not found"),
        ("SELECT * FROM flows('{web}', nonsense => 1)", "nonsense is no option; options are features"),
        ("SELECT * FROM flows('{web}', filter => 'tcp porridge')", "filter: "),
        ("SELECT * FROM messages('nonsense', '{web}')", "known are "),
        ("SELECT 1; SELECT 2", "single SQL statement"),
        ("CREATE VIEW a AS SELECT 1", "only queries"),
        ("COPY (SELECT 1) TO '{web}.csv'", "only queries"),
        ("SET datafusion.execution.batch_size = 1", "only queries"),
        ("SELECT octet_count + file FROM flows('{web}')", "Cannot coerce"),
    ],
)
def test_invalid_queries(query, message):
    with pytest.raises(ValueError) as raised:
        flowgauge.sql(query.format(web=WEB))
    assert message in str(raised.value)
    assert not isinstance(raised.value, OSError)


@sql_only
def test_invalid_arguments():
    for options in ({"memory": 0}, {"threads": 0}, {"batch_size": 0}):
        with pytest.raises(ValueError, match="must be at least 1"):
            flowgauge.sql("SELECT 1", **options)
    for tables in (1, [1], {1: pyarrow.table({})}, {"a": 1}, {"a": {"x": [1]}}):
        with pytest.raises(TypeError):
            flowgauge.sql("SELECT 1", tables=tables)
    with pytest.raises(TypeError, match='table "a": int has no __arrow_c_stream__'):
        flowgauge.sql("SELECT 1", tables={"a": 1})
    with pytest.raises(TypeError, match="query must be a text"):
        flowgauge.sql(1)


@sql_only
def test_errors_of_files(tmp_path):
    missing = tmp_path / "missing.pcap"
    query = f"SELECT * FROM flows('{WEB}', '{missing}')"
    for function in (lambda: flowgauge.sql(query), lambda: flowgauge.table("flows", missing)):
        with pytest.raises(flowgauge.MissingFileError) as raised:
            function()
        assert (raised.value.filename, raised.value.errno) == (str(missing), errno.ENOENT)
        assert str(raised.value).startswith(f"{missing}: No such file")
    with pytest.raises(flowgauge.MissingFileError, match="no file") as raised:
        flowgauge.sql(f"SELECT * FROM flows('{tmp_path}/*.pcap')")
    assert raised.value.errno == errno.ENOENT
    path = tmp_path / "notes.txt"
    path.write_text("a text\n" * 10)
    stream = flowgauge.sql(f"SELECT source_address FROM flows('{path}')")
    for consume in (list, pyarrow.table):
        with pytest.raises(flowgauge.Error) as raised:
            consume(stream)
        assert raised.value.filename == str(path)
        assert str(raised.value) == f"{path}: is not a pcap or pcapng capture: it looks like text"
    # The file disappears between two consumers.
    capture = tmp_path / "a.pcap"
    capture.write_bytes(WEB.read_bytes())
    stream = flowgauge.sql(f"SELECT count(*) AS n FROM packets('{capture}')")
    assert list(stream)[0]["n"] > 1000
    capture.unlink()
    with pytest.raises(flowgauge.MissingFileError) as raised:
        list(stream)
    assert raised.value.filename == str(capture)


@sql_only
def test_errors_of_values():
    for query in ("SELECT 1 / (x - 1) FROM t", "SELECT CAST(CAST(x AS VARCHAR) || 'a' AS INT) FROM t"):
        stream = flowgauge.sql(query, tables={"t": pyarrow.table({"x": [1]})})
        with pytest.raises(ValueError, match="Divide by zero|Cannot cast"):
            list(stream)
    with pytest.raises(flowgauge.Error, match="memory|resources") as raised:
        list(flowgauge.sql(f"SELECT a.wire_len FROM packets('{WEB}') a, packets('{WEB}') b ORDER BY 1", memory=1))
    assert not isinstance(raised.value, ValueError)


@sql_only
def test_memory_limit():
    """The limit is that of each consumer, so that the second one has as much as the first."""
    query = f"SELECT source_address, count(*) AS n FROM packets('{WEB}') GROUP BY 1 ORDER BY 1"
    stream = flowgauge.sql(query, memory=256 << 20)
    assert list(stream) == list(stream) == list(flowgauge.sql(query))


@sql_only
def test_damage_is_a_warning(tmp_path):
    path = tmp_path / "damaged.pcap"
    path.write_bytes(WEB.read_bytes()[:-10])
    count = len(list(flowgauge.packets(WEB))) - 1
    table = flowgauge.table("packets", path)
    for source in (f"packets('{path}')", "t"):
        stream = flowgauge.sql(f"SELECT count(*) AS n FROM {source}", tables={"t": table})
        assert stream.warnings == []
        for _ in range(2):
            assert list(stream) == [{"n": count}]
            assert len(stream.warnings) == 1 and str(path) in stream.warnings[0]
    assert table.warnings == []
    context = datafusion.SessionContext()
    context.register_table("t", table)
    for _ in range(2):
        assert context.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": count}]
    assert len(table.warnings) == 1 and str(path) in table.warnings[0]


@sql_only
def test_closed_streams():
    check_closed(flowgauge.sql(f"SELECT wire_len FROM packets('{WEB}')", batch_size=1))


def half_read(kind):
    # pandas has buffers that only Python can release.
    tables = {"t": pandas.DataFrame({"x": [1.5, 2.5]})}
    stream = flowgauge.sql(f"SELECT wire_len, x FROM packets('{WEB}'), t", tables=tables, batch_size=1, threads=2)
    if kind == "rows":
        next(iter(stream))
    elif kind == "reader":
        pyarrow.RecordBatchReader.from_stream(stream).read_next_batch()
    elif kind == "capsule":
        # No consumer takes it.
        stream.__arrow_c_stream__()
    # Otherwise, the query is only planned.


@linux
@sql_only
def test_1000_streams_dropped_half_read():
    kinds = ["rows", "reader", "capsule", "stream"]
    for kind in kinds * 12:
        half_read(kind)
    gc.collect()
    before = settled_threads(threading.active_count() + 8)
    memory = status("VmRSS")
    files = open_files()
    most = 0
    for kind in kinds * 250:
        half_read(kind)
        most = max(most, status("Threads"))
    gc.collect()
    after = settled_threads(before)
    growth = (status("VmRSS") - memory) / 1024
    print(f"threads {before} before, {most} at most, {after} after; memory grew by {growth:.1f} MiB")
    assert after <= before and most <= before + 2
    assert settled(open_files, files) <= files
    assert growth < 64


@pipes
@sql_only
@pytest.mark.parametrize("consumer", ["rows", "pyarrow"])
def test_interrupt_while_a_pipe_has_no_data(tmp_path, consumer):
    check_interrupt(tmp_path, "query", consumer)


@pipes
@sql_only
def test_other_threads_run_while_a_query_waits(tmp_path):
    check_other_threads(tmp_path, lambda path: flowgauge.sql(f"SELECT * FROM packets('{path}')"))


def first_batch(kind, path):
    """Returns what keeps a query alive, after it returned its first batch."""
    if kind == "flowgauge":
        reader = pyarrow.RecordBatchReader.from_stream(flowgauge.sql(f"SELECT wire_len FROM packets('{path}')"))
        assert reader.read_next_batch().num_rows > 0
        return reader
    context = datafusion.SessionContext()
    context.register_table("packets", flowgauge.table("packets", path))
    stream = context.sql("SELECT wire_len FROM packets").execute_stream()
    assert next(iter(stream)).to_pyarrow().num_rows > 0
    return stream


@pipes
@sql_only
@pytest.mark.parametrize("kind", ["flowgauge", "datafusion"])
def test_a_dropped_query_stops_reading(tmp_path, kind):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    octets = WEB.read_bytes()
    ended = []

    def write():
        with open(fifo, "wb", buffering=0) as file:
            try:
                file.write(octets)
                while True:
                    # The header of the file is not repeated.
                    file.write(octets[24:])
            except BrokenPipeError:
                ended.append(time.monotonic())

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    query = first_batch(kind, fifo)
    assert not ended
    dropped = time.monotonic()
    del query
    gc.collect()
    writer.join(timeout=10)
    assert ended, "the capture is still read"
    print(f"{kind}: reading stopped after {(ended[0] - dropped) * 1e3:.0f} ms")


def metrics(context, query):
    """Returns rows and frames that the scan of a query read."""
    (row,) = context.sql(f"EXPLAIN ANALYZE {query}").to_pylist()
    scan = next(line for line in row["plan"].splitlines() if "DataSourceExec" in line)
    numbers = []
    for name in ("output_rows", "frames", "output_bytes"):
        number, unit = re.search(rf"\b{name}=([0-9.]+) ?(K|M|G|B|KB|MB)?\b", scan).groups()
        numbers.append(float(number) * {"K": 1e3, "KB": 1e3, "MB": 1e6}.get(unit, 1))
    return numbers


@sql_only
def test_columns_conditions_and_limits_reach_the_scan():
    context = datafusion.SessionContext()
    context.register_table("packets", flowgauge.table("packets", WEB))
    count = len(list(flowgauge.packets(WEB)))
    rows, frames, octets = metrics(context, "SELECT * FROM packets")
    assert rows == pytest.approx(count, rel=0.01) and frames >= rows
    narrow_rows, _, narrow_octets = metrics(context, "SELECT wire_len FROM packets")
    assert narrow_rows == rows and narrow_octets < octets / 4
    chosen, _, _ = metrics(context, "SELECT wire_len FROM packets WHERE destination_port = 443")
    both = list(flowgauge.packets(WEB, filter="port 443"))
    assert chosen == len(both) < count / 2
    limited, limited_frames, _ = metrics(context, "SELECT wire_len FROM packets LIMIT 3")
    assert limited == 3 and limited_frames < 100
    # A function that only the other package has.
    query = "SELECT count(*) AS n FROM packets WHERE md5(source_address) <> '' AND destination_port = 443"
    expected = sum(row["destination_port"] == 443 for row in both)
    assert context.sql(query).to_pylist() == [{"n": expected}]


@sql_only
def test_tables():
    table = flowgauge.table("flows", str(DATA / "[wd]*.pcap"), features="splt=3", idle_timeout=5, filter="tcp")
    assert table.columns[:2] == list(next(iter(flowgauge.flows(WEB))))[:2] and "file" in table.columns
    assert re.fullmatch(r"<flowgauge.Table: flows, \d+ columns>", repr(table))
    context = datafusion.SessionContext()
    context.register_table("flows", table)
    query = "SELECT * FROM flows"
    found = context.sql(query).to_arrow_table()
    expected = pyarrow.table(flowgauge.sql(query, tables={"flows": table}))
    assert found.column_names == expected.column_names == table.columns
    key = [("file", "ascending"), ("start", "ascending"), ("source_port", "ascending")]
    assert found.sort_by(key).to_pylist() == expected.sort_by(key).to_pylist() != []
    kinds = flowgauge.table("messages", CAPTURES, kind="dns.response")
    assert repr(kinds).startswith("<flowgauge.Table: messages of dns.response, ")
    findings = list(flowgauge.sql("SELECT * FROM findings", tables={"findings": flowgauge.table("findings", CAPTURES)}))
    assert len(findings) == len(list(flowgauge.findings(CAPTURES)))


@sql_only
def test_invalid_tables():
    for arguments, options, message in (
        (["nonsense", WEB], {}, "unknown table"),
        (["messages", WEB], {}, "needs a kind"),
        (["messages", WEB], {"kind": "nonsense"}, "known are "),
        (["flows", WEB], {"kind": "http"}, "has no kind"),
        (["packets", WEB], {"features": "cic"}, "packets have no features"),
        (["packets", WEB], {"idle_timeout": 1}, "packets have no idle_timeout"),
        (["messages", WEB], {"kind": "dns", "active_timeout": 1}, "messages have no active_timeout"),
        (["findings", WEB], {"joined": True}, "findings have no joined"),
        (["packets", WEB], {"filter": "src port 80"}, "whole flows"),
    ):
        with pytest.raises(ValueError) as raised:
            flowgauge.table(*arguments, **options)
        assert message in str(raised.value)
    for captures in (WEB.read_bytes(), open(WEB, "rb")):
        with pytest.raises(TypeError, match="a table needs paths"):
            flowgauge.table("flows", captures)


@sql_only
def test_other_versions_of_datafusion(monkeypatch):
    """Structures of another version have another layout."""
    table = flowgauge.table("flows", WEB)
    context = datafusion.SessionContext()
    monkeypatch.setattr(datafusion, "__version__", "54.1.0")
    with pytest.raises(ImportError, match="has version 54.1.0.*are of 55"):
        context.register_table("flows", table)
    monkeypatch.undo()
    context.register_table("flows", table)
    for session in (1, object(), "datafusion_logical_extension_codec"):
        with pytest.raises(TypeError):
            table.__datafusion_table_provider__(session)
    with pytest.raises(ValueError, match="incorrect name"):
        table.__datafusion_table_provider__(flowgauge.flows(WEB).__arrow_c_schema__())


EXCHANGE = '''
import sys, datafusion, flowgauge
keys = flowgauge.flows(sys.argv[1], columns=["community_id", "protocol"])
query = f"SELECT octet_count FROM flows('{sys.argv[1]}') JOIN keys USING (community_id)"
class Other:
    """Rows of another library: through the structures of C."""
    def __arrow_c_stream__(self, requested_schema=None):
        return keys.__arrow_c_stream__(requested_schema)
print(len(list(flowgauge.sql(query, tables={"keys": Other()}, threads=1))))
context = datafusion.SessionContext()
context.register_table("flows", flowgauge.table("flows", sys.argv[1]))
print(sum(batch.num_rows for batch in context.sql("SELECT community_id FROM flows WHERE protocol = 17").collect()))
'''


@sql_only
def test_valgrind_finds_no_error_where_structures_are_exchanged(tmp_path):
    """The other libraries have errors of their own, so that only those with the module in their stack count."""
    if shutil.which("valgrind") is None:
        if os.environ.get("FLOWGAUGE_SQL") == "required":
            pytest.fail("valgrind is not installed")
        pytest.skip("valgrind is not installed")
    log = tmp_path / "valgrind.txt"
    command = ["valgrind", "--error-limit=no", f"--log-file={log}", sys.executable, "-c", EXCHANGE, DATA / "dns.pcap"]
    environment = {**os.environ, "PYTHONMALLOC": "malloc"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert (run.returncode, run.stdout) == (0, "50\n26\n"), run.stderr
    assert "ERROR SUMMARY" in log.read_text()
    assert "_flowgauge" not in log.read_text()
