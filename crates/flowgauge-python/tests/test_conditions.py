"""Conditions select the rows that the command, and a selection in Python, select."""

import io

import flowgauge
import pytest

from conftest import CAPTURES, command
from test_rows import assert_contained, by_flow, present

WHERE = [
    "octet_count > '10kB'",
    "application = 'http' or destination_port = 443",
    "source_address = '10.77.0.0/16' and not protocol = 'udp'",
    "duration > 0.1 and conn_state in ('SF', 'S1')",
    "application is null",
    "tcp_flags is not null and reverse_octet_count / packet_count > 100",
]


@pytest.mark.parametrize("where", WHERE)
def test_flows(where):
    found, all_rows = 0, 0
    for path in CAPTURES:
        rows = [present(row) for row in flowgauge.flows(path, where=where)]
        expected = command("flows", path, "--where", where)
        assert_contained(sorted(rows, key=by_flow), sorted(expected, key=by_flow))
        found += len(rows)
        all_rows += len(list(flowgauge.flows(path, columns=["start"])))
    assert 3 < found < all_rows


def test_packets():
    where = "payload_len > 1000 and destination_port > 1024"
    rows = list(flowgauge.packets(CAPTURES))
    expected = [row for row in rows if row["payload_len"] > 1000 and (row["destination_port"] or 0) > 1024]
    assert 3 < len(expected) < len(rows)
    assert list(flowgauge.packets(CAPTURES, where=where)) == expected


@pytest.mark.parametrize(
    ("function", "options"), [(flowgauge.messages, ["--protocol", "http"]), (flowgauge.transactions, ["-t"])]
)
def test_messages_and_transactions(function, options):
    where = "protocol = 'http' and (status = 200 or method = 'POST')"
    found = 0
    for path in CAPTURES:
        rows = [present(row) for row in function("http", path, where=where)]
        assert_contained(rows, command("sessions", path, *options, "--where", where))
        found += len(rows)
    assert 3 < found < len(list(function("http", CAPTURES)))


def test_columns_of_a_condition_need_not_be_chosen(web):
    all_rows = list(flowgauge.flows(web))
    for where, name, is_expected in [
        ("application = 'http'", "application", lambda value: value == "http"),
        ("`Fwd IAT Std` > 0", "Fwd IAT Std", lambda value: value is not None and value > 0),
        ("reverse_octet_count >= 100000", "reverse_octet_count", lambda value: value >= 100_000),
    ]:
        features = "cic" if name not in all_rows[0] else None
        columns = list(flowgauge.flows(web, features=features, columns=["start", name]))
        expected = [row["start"] for row in columns if is_expected(row[name])]
        assert 0 < len(expected) < len(all_rows)
        found = list(flowgauge.flows(web, features=features, columns=["start"], where=where))
        assert found == [{"start": start} for start in expected]
    assert len(list(flowgauge.flows(web, where=f"file = '{web}'"))) == len(all_rows)
    assert list(flowgauge.flows(web, where="file = 'other'")) == []


def test_columns_of_the_same_name_with_different_types():
    # The column `alpn` has a list in one kind of messages, and a text in the other.
    alpn = "server_hello_alpn"
    rows = [row for row in flowgauge.messages("tls", CAPTURES) if row[alpn] is not None]
    assert rows
    for value in {row[alpn] for row in rows}:
        found = list(flowgauge.messages("tls", CAPTURES, where=f"{alpn} = '{value}'"))
        assert found == [row for row in rows if row[alpn] == value]
    found = list(flowgauge.messages("tls", CAPTURES, columns=["message"], where="alpn is not null"))
    assert {row["message"] for row in found} == {"client_hello"}


def test_the_limit_counts_selected_rows(web):
    where = "destination_port = 443"
    expected = list(flowgauge.flows(web, where=where))
    assert len(expected) > 3
    assert list(flowgauge.flows(web, where=where, limit=2)) == expected[:2]


def test_applications():
    all_rows = list(flowgauge.flows(CAPTURES))
    for names in ("dns", ["http", "tls"], iter(["ssh"])):
        wanted = [names] if isinstance(names, str) else list(names)
        found = list(flowgauge.flows(CAPTURES, application=wanted if not isinstance(names, str) else names))
        assert found == [row for row in all_rows if row["application"] in wanted]
        assert 0 < len(found) < len(all_rows)
    both = list(flowgauge.flows(CAPTURES, application="tls", where="octet_count > 5000", columns=["octet_count"]))
    expected = [row for row in all_rows if row["application"] == "tls" and row["octet_count"] > 5000]
    assert both == [{"octet_count": row["octet_count"]} for row in expected]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": "octet_conut > 1"}, "did you mean `octet_count`?"),
        ({"where": "octet_count >"}, "found the end"),
        ({"where": ""}, "where: "),
        ({"where": "`Fwd IAT Std` > 0"}, "`Fwd IAT Std` is not a column"),
        ({"application": "htp"}, "unknown application: \"htp\"; known are "),
        ({"application": []}, "at least one"),
        ({"application": ["http", "x' or 'a' = 'a"]}, "unknown application"),
    ],
)
def test_invalid_conditions(options, message):
    # Nothing is read: the file object would raise an exception.
    with pytest.raises(ValueError) as raised:
        flowgauge.flows(io.BufferedReader(io.BytesIO(b"")), **options)
    assert message in str(raised.value)


def test_invalid_types(web):
    for options in ({"where": 1}, {"where": ["a"]}, {"application": 1}, {"application": None}, {"application": [1]}):
        with pytest.raises(TypeError):
            flowgauge.flows(web, **options)
