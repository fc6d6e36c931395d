"""pyarrow, Polars, pandas and DuckDB read the same rows."""

import io

import duckdb
import flowgauge
import pandas
import polars
import pyarrow
import pytest

from conftest import CAPTURES, DATA, command

# More than one batch, with dictionaries that grow.
OPTIONS = {"batch_size": 7}


@pytest.fixture(params=["path", "octets", "file object"])
def stream(request, web):
    def create(**options):
        source = {"path": lambda: web, "octets": web.read_bytes, "file object": lambda: open(web, "rb")}
        return flowgauge.packets(source[request.param](), **options, **OPTIONS)

    return create


def test_pyarrow(stream, web):
    expected = command("packets", web)
    table = pyarrow.table(stream())
    table.validate(full=True)
    assert table.num_rows == len(expected)
    assert table["wire_len"].to_pylist() == [row["wire_len"] for row in expected]
    assert table["source_address"].to_pylist() == [row["source_address"] for row in expected]
    assert pyarrow.types.is_timestamp(table.schema.field("timestamp").type)


def test_polars(stream, web):
    expected = command("packets", web)
    frame = polars.DataFrame(stream())
    assert frame.height == len(expected)
    assert frame["wire_len"].sum() == sum(row["wire_len"] for row in expected)
    assert frame["source_address"].to_list() == [row["source_address"] for row in expected]


def test_pandas(stream, web):
    expected = command("packets", web)
    frame = pandas.DataFrame.from_arrow(stream())
    assert len(frame) == len(expected)
    assert frame["wire_len"].sum() == sum(row["wire_len"] for row in expected)
    assert frame["source_address"].to_list() == [row["source_address"] for row in expected]


def test_duckdb(web):
    expected = command("packets", web)
    packets = flowgauge.packets(web, **OPTIONS)
    found = duckdb.sql("select count(*), sum(wire_len), count(distinct source_address) from packets").fetchall()[0]
    addresses = {row["source_address"] for row in expected}
    assert found == (len(expected), sum(row["wire_len"] for row in expected), len(addresses))
    assert packets.warnings == []


def test_duckdb_joins_two_streams(web):
    flows = flowgauge.flows(web, columns=["community_id", "octet_count"])
    requests = flowgauge.messages("http", web, columns=["community_id", "message"])
    query = "select count(*) from requests join flows using (community_id) where message = 'request'"
    expected = [row for row in command("sessions", web, "--protocol", "http") if row["message"] == "request"]
    assert duckdb.sql(query).fetchall() == [(len(expected),)] != [(0,)]
    assert (flows.warnings, requests.warnings) == ([], [])


def test_types_of_all_flows():
    stream = flowgauge.flows(CAPTURES, features="cic,nfstream,splt=3,histogram,entropy,payload=8,tcp", **OPTIONS)
    table = pyarrow.table(stream)
    table.validate(full=True)
    expected = command("flows", *CAPTURES, "--active-timeout", "10000h")
    schema = pyarrow.schema(stream)
    assert table.schema == schema and schema.metadata[b"flowgauge.table"] == b"flows"
    assert schema.names == stream.columns
    assert schema.field("duration").type == pyarrow.duration("ns")
    assert schema.field("start").type == pyarrow.timestamp("ns", "UTC")
    assert pyarrow.types.is_dictionary(schema.field("conn_state").type)
    assert b"description" in schema.field("octet_count").metadata
    rows = list(stream)
    assert len(rows) == table.num_rows >= len(expected)
    for name in ("conn_state", "history", "octet_count", "reverse_octet_count", "vlan_ids", "community_id"):
        assert [row[name] for row in rows] == table[name].to_pylist(), name
    frame = polars.DataFrame(stream)
    assert frame["conn_state"].cast(polars.String).to_list() == [row["conn_state"] for row in rows]
    frame = pandas.DataFrame.from_arrow(stream)
    assert frame["conn_state"].astype(str).to_list() == [row["conn_state"] for row in rows]
    assert frame["duration"].sum() == pandas.Timedelta(sum(row["duration"] for row in rows), unit="ns")
    assert duckdb.sql("select count(*), sum(octet_count) from stream").fetchall()[0] == (
        len(rows),
        sum(row["octet_count"] for row in rows),
    )


@pytest.mark.parametrize("protocol", ["dns", "http", "smtp", "ssh", "tls", "quic", "session"])
def test_messages_and_transactions(protocol):
    stream = flowgauge.messages(protocol, CAPTURES, **OPTIONS)
    table = pyarrow.table(stream)
    table.validate(full=True)
    rows = list(stream)
    assert table.num_rows == len(rows)
    assert polars.DataFrame(stream).height == len(rows)
    assert len(pandas.DataFrame.from_arrow(stream)) == len(rows)
    assert duckdb.sql("select count(*) from stream").fetchall() == [(len(rows),)]


def test_streams_without_rows():
    stream = flowgauge.flows(DATA / "dns.pcap", filter="tcp port 1")
    assert list(stream) == []
    assert pyarrow.table(stream).num_rows == 0
    assert polars.DataFrame(stream).shape == (0, len(stream.columns))
    assert len(pandas.DataFrame.from_arrow(stream)) == 0
    assert duckdb.sql("select count(*) from stream").fetchall() == [(0,)]


def test_file_objects_in_the_thread_of_the_consumer(web):
    """A consumer may wait while it is attached to Python, which the file object needs."""
    stream = flowgauge.packets(io.BytesIO(web.read_bytes()), batch_size=1)
    assert polars.DataFrame(stream).height == len(list(flowgauge.packets(web)))
