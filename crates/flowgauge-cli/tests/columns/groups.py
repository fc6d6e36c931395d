"""Compares groups and counts over time with DuckDB over the records, and with the packets as tshark lists them.

Usage: groups.py FLOWGAUGE CAPTURE...
"""

import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

import duckdb

# Fields of the group, and functions with the same in SQL.
QUESTIONS = [
    ("source_address", ["sum(octet_count)", "sum(reverse_octet_count)", "max(duration)"]),
    ("destination_port", ["sum(packet_count)", "distinct(source_address)", "min(start)"]),
    ("application,conn_state", ["mean(duration)", "max(octet_count)", "sum(payload_octet_count)"]),
    ("source_address,destination_address,protocol", ["sum(octet_count)", "distinct(destination_port)"]),
    ("conn_state", ["median(octet_count)", "p95(duration)", "sum(retransmitted_count)"]),
]


def rows(program, *args):
    """Returns the rows of a command. A damaged capture is status 1."""
    command = [program, *args, "-q", "--format", "ndjson"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    assert run.returncode in (0, 1), args
    return [json.loads(line) for line in run.stdout.splitlines()]


def in_sql(function):
    name, field = function.rstrip(")").split("(")
    if name == "distinct":
        return f"count(DISTINCT {field})"
    if name in ("median", "p95"):
        part = {"median": 0.5, "p95": 0.95}[name]
        # The nearest rank: the least value that at least this part of the values does not exceed.
        values = f"list_sort(list({field}) FILTER ({field} IS NOT NULL))"
        return f"({values})[greatest(1, CAST(ceil({part} * count({field}) - 1e-9) AS BIGINT))]"
    return {"mean": "avg"}.get(name, name) + f"({field})"


def column(function):
    name, field = function.rstrip(")").split("(")
    return f"{field}_{name}"


def check_groups(program, capture, path):
    records = rows(program, "flows", capture, "--application", "always")
    if not records:
        return 0
    columns = sorted({key for record in records for key in record})
    with open(path, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps({name: record.get(name) for name in columns}) + "\n")
    known = duckdb.sql(f"DESCRIBE SELECT * FROM read_json('{path}', sample_size = -1)").fetchall()
    known = {name for name, *_ in known}
    group_count = 0
    for fields, functions in QUESTIONS:
        names = fields.split(",")
        used = set(names) | {function.rstrip(")").split("(")[1] for function in functions}
        if not used <= known:
            continue
        results = ", ".join(in_sql(function) for function in functions)
        query = f"SELECT {fields}, count(*), {results} FROM read_json('{path}', sample_size = -1) GROUP BY ALL"
        expected = {}
        for row in duckdb.sql(query).fetchall():
            expected[tuple(str(value) for value in row[: len(names)])] = row[len(names) :]
        grouped = rows(
            program, "flows", capture, "--application", "always", "--group-by", fields, "--aggregate", ",".join(functions)
        )
        assert len(grouped) == len(expected), (capture, fields, len(grouped), len(expected))
        for row in grouped:
            count, *values = expected[tuple(str(row.get(name)) for name in names)]
            assert row["flow_count"] == count, (capture, fields, row)
            for function, value in zip(functions, values):
                actual = row.get(column(function))
                is_estimate = function.startswith(("median", "p95", "mean"))
                if value is None or actual is None:
                    # A sum of no values is 0.
                    assert not value and not actual, (capture, fields, function, row, value)
                elif is_estimate:
                    # A percentile has an error of 1 %; a mean of times is rounded to nanoseconds.
                    tolerance = 0.0101 * float(value) + 1
                    assert abs(float(actual) - float(value)) <= tolerance, (capture, fields, function, row, value)
                else:
                    assert actual == value, (capture, fields, function, row, value)
        group_count += len(grouped)
    return group_count


def check_intervals(program, capture):
    """Compares packets and octets of each second with those that tshark lists."""
    args = ["tshark", "-r", capture, "-Y", "(tcp or udp) and not icmp and not icmpv6", "-T", "fields"]
    args += ["-e", "frame.time_epoch", "-e", "frame.len"]
    lines = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    expected = collections.defaultdict(lambda: [0, 0])
    for line in lines.splitlines():
        time, length = line.split("\t")
        sums = expected[int(time.split(".")[0])]
        sums[0] += 1
        sums[1] += int(length)
    actual = {}
    for row in rows(program, "flows", capture, "--filter", "tcp or udp", "--time-series", "1s"):
        packets = row["packet_count"] + row["reverse_packet_count"]
        actual[row["time"] // 10**9] = [packets, row["octet_count"] + row["reverse_octet_count"]]
    assert actual == dict(expected), (capture, actual, dict(expected))
    # The sums of all pairs of hosts are those of the conversations of tshark.
    table = subprocess.run(
        ["tshark", "-r", capture, "-q", "-z", "conv,tcp", "-z", "conv,udp"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
    ).stdout.decode()
    conversations = collections.defaultdict(int)
    for line in table.splitlines():
        words = line.split()
        if "<->" in words:
            ends = [words[0].rsplit(":", 1)[0], words[2].rsplit(":", 1)[0]]
            # Frames in both directions are the last number before the octets, the start and the duration.
            conversations[tuple(sorted(ends))] += frames(words)
    pairs = collections.defaultdict(int)
    grouped = rows(
        program, "flows", capture, "--filter", "tcp or udp", "--group-by", "source_address,destination_address",
        "--sum", "packet_count,reverse_packet_count",
    )
    for row in grouped:
        pair = tuple(sorted([row["source_address"], row["destination_address"]]))
        pairs[pair] += row["packet_count_sum"] + row["reverse_packet_count_sum"]
    assert pairs == conversations, (capture, pairs, conversations)
    return len(actual) + len(pairs)


def frames(words):
    """Returns the frames of both directions of a conversation. Octets have a unit behind them."""
    numbers = [word for word in words[3:] if word.isdigit()]
    # Frames and octets of each direction, then of both.
    return int(numbers[4])


def main():
    program, *captures = sys.argv[1:]
    counts = [0, 0]
    has_tshark = shutil.which("tshark") is not None
    assert has_tshark or os.environ.get("FLOWGAUGE_READERS") != "required", "tshark is not installed"
    with tempfile.TemporaryDirectory() as folder:
        for capture in captures:
            counts[0] += check_groups(program, capture, f"{folder}/flows.ndjson")
            if has_tshark and "/examples/data/" in capture:
                counts[1] += check_intervals(program, capture)
    print(f"{len(captures)} captures, {counts[0]} groups, {counts[1]} intervals and pairs of hosts")


main()
