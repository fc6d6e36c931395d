"""Rows are those that the command writes as ndjson."""

import flowgauge
import pytest

from conftest import CAPTURES, DATA, command


def present(row):
    """Returns a row as ndjson has it: without absent values, and without columns that only the package has."""
    return {name: value for name, value in row.items() if value is not None and name != "file"}


def as_json(value, known):
    """Returns a value as ndjson has it: octets as digits, and groups without usual values that are omitted."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list) and isinstance(known, list) and len(value) == len(known):
        return [as_json(*pair) for pair in zip(value, known)]
    if isinstance(value, dict) and isinstance(known, dict):
        pairs = ((name, as_json(item, known.get(name))) for name, item in value.items())
        return {name: item for name, item in pairs if item or name in known}
    return value


def assert_contained(rows, expected):
    """Asserts that each expected object is a row, and that further values of the row are empty."""
    assert len(rows) == len(expected)
    for row, known in zip(rows, expected):
        # Kinds of messages with a column of the same name have it under different names if the types differ.
        kind = f"{row.get('message')}_"
        for name in [name for name in row if name.startswith(kind) and name not in known]:
            row[name[len(kind) :]] = row.pop(name)
        for name, value in known.items():
            assert as_json(row[name], value) == value, name
        for name in row.keys() - known.keys():
            assert not row[name], f"{name} is {row[name]!r} and not in ndjson"


def by_flow(row):
    return row["community_id"], row["start"], row["sequence_number"]


def test_flows(capture):
    rows = [present(row) for row in flowgauge.flows(capture)]
    assert rows
    assert_contained(sorted(rows, key=by_flow), sorted(command("flows", capture), key=by_flow))


def test_flows_with_options(web):
    features = "cic,nfstream,splt=5,tcp"
    rows = [present(row) for row in flowgauge.flows(web, features=features, active_timeout=0.5, filter="tcp port 80")]
    options = ["--features", features, "--active-timeout", "500ms", "--filter", "tcp port 80"]
    expected = command("flows", web, *options)
    assert len(expected) > 5
    assert_contained(sorted(rows, key=by_flow), sorted(expected, key=by_flow))


def test_packets(capture):
    rows = [present(row) for row in flowgauge.packets(capture)]
    assert rows
    assert_contained(rows, command("packets", capture))


@pytest.mark.parametrize("protocol", ["dns", "http", "smtp", "ssh", "tls"])
def test_messages(protocol):
    found = 0
    for path in CAPTURES:
        rows = [present(row) for row in flowgauge.messages(protocol, path)]
        expected = command("sessions", path, "--protocol", protocol)
        expected = [row for row in expected if row["protocol"] == protocol]
        assert_contained(rows, expected)
        found += len(rows)
    assert found > 5


@pytest.mark.parametrize("kind", ["dns", "http"])
def test_transactions(kind):
    found = 0
    for path in CAPTURES:
        rows = [present(row) for row in flowgauge.transactions(kind, path)]
        expected = command("sessions", path, "--transactions")
        expected = [row for row in expected if row["kind"] == kind]
        assert_contained(rows, expected)
        found += len(rows)
    assert found > 5


def test_findings():
    found = 0
    for path in [*CAPTURES, *sorted((DATA.parent / "findings").glob("*.pcap.zst"))]:
        rows = [present(row) for row in flowgauge.findings(path)]
        assert_contained(rows, command("summary", path))
        found += len(rows)
    assert found > 20


def test_hosts():
    found = 0
    for path in CAPTURES:
        rows = [present(row) for row in flowgauge.hosts(path)]
        assert_contained(rows, command("hosts", path))
        found += sum("name" in row for row in rows)
    assert found > 3


def test_findings_of_several_files_are_those_of_all():
    options = ["--filter", "tcp", "--idle-timeout", "2m"]
    rows = [present(row) for row in flowgauge.findings(CAPTURES, filter="tcp", idle_timeout=120)]
    assert rows
    assert_contained(rows, command("summary", *CAPTURES, *options))
    chosen = flowgauge.findings(CAPTURES, filter="tcp", columns=["evidence", "finding"], limit=2)
    assert list(chosen) == [{name: row[name] for name in ("evidence", "finding")} for row in rows[:2]]


def test_several_files_follow_each_other(web):
    dns = DATA / "dns.pcap"
    rows = list(flowgauge.flows([web, str(dns)], columns=["file", "community_id"]))
    alone = [list(flowgauge.flows(path, columns=["file", "community_id"])) for path in (web, dns)]
    assert rows == alone[0] + alone[1]
    assert [row["file"] for row in rows] == [str(web)] * len(alone[0]) + [str(dns)] * len(alone[1])


def test_joined_files_are_one():
    paths = [DATA / "web.pcap", DATA / "mail.pcap", DATA / "dns.pcap"]
    rows = [present(row) for row in flowgauge.flows(paths, joined=True)]
    assert_contained(sorted(rows, key=by_flow), sorted(command("flows", *paths), key=by_flow))


def test_columns_are_those_that_are_chosen(web):
    columns = ["octet_count", "source_address", "start"]
    stream = flowgauge.flows(web, columns=columns)
    assert stream.columns == columns
    full = [{name: row[name] for name in columns} for row in flowgauge.flows(web)]
    rows = list(stream)
    assert rows == full and list(rows[0]) == columns


def test_the_application_is_omitted_on_request(web):
    full = flowgauge.flows(web).columns
    stream = flowgauge.flows(web, application=False)
    assert set(full) - set(stream.columns) == {name for name in full if name.startswith("application")} != set()
    assert len(list(stream)) == 27


def test_limit_and_batch_size(web):
    full = list(flowgauge.flows(web))
    for limit in (0, 1, 5, 26, 27, 1000):
        rows = list(flowgauge.flows(web, limit=limit, batch_size=2))
        assert rows == full[:limit]


def test_tunnels(web):
    for tunnels in ("innermost", "outermost", "both"):
        rows = [present(row) for row in flowgauge.flows(web, tunnels=tunnels)]
        expected = command("flows", web, "--tunnels", tunnels)
        assert_contained(sorted(rows, key=by_flow), sorted(expected, key=by_flow))


def test_addresses_as_octets(web):
    row = next(iter(flowgauge.flows(web, columns=["source_address", "source_mac_address"], addresses="octets")))
    text = next(iter(flowgauge.flows(web, columns=["source_address", "source_mac_address"])))
    assert row["source_mac_address"].hex(":") == text["source_mac_address"]
    assert len(row["source_address"]) == 16


def test_rows_are_python_values(web):
    row = next(iter(flowgauge.flows(web)))
    assert isinstance(row["start"], int) and row["end"] - row["start"] == row["duration"]
    assert row["vlan_ids"] == [] and isinstance(row["source_address"], str)
    assert row["conn_state"] == "SF"
