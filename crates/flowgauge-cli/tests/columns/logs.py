"""Reads logs of Zeek with zat, DuckDB and awk, and compares them with each other.

Arguments: a folder with logs in TSV, and one with the same logs in JSON.
"""

import contextlib
import datetime
import io
import json
import pathlib
import subprocess
import sys

import duckdb
from zat import log_to_dataframe, zeek_log_reader

# Prints columns by name, as zeek-cut does.
CUT = r"""
BEGIN { FS = "\t" }
/^#fields/ { for (i = 2; i <= NF; i++) at[$i] = i - 1; next }
/^#/ { next }
{ print $at[column] }
"""

# The classes of zat for the types of columns.
CLASSES = {
    "time": datetime.datetime,
    "interval": datetime.timedelta,
    "count": int,
    "port": int,
    "bool": bool,
    "string": str,
    "enum": str,
    "addr": str,
}


def header(path):
    lines = path.read_text().splitlines()
    fields = next(line for line in lines if line.startswith("#fields")).split("\t")[1:]
    types = next(line for line in lines if line.startswith("#types")).split("\t")[1:]
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return fields, types, rows


def check_zat(path, fields, types, rows):
    with contextlib.redirect_stdout(io.StringIO()):
        found = list(zeek_log_reader.ZeekLogReader(str(path)).readrows())
        # Its data frames take a quote at the beginning of a value as that of CSV, which logs of Zeek do not have.
        has_quotes = any(value.startswith('"') for row in rows for value in row)
        frame = rows if has_quotes else log_to_dataframe.LogToDataFrame().create_dataframe(str(path))
    assert len(found) == len(rows), path
    assert len(frame) == len(rows), path
    for row, values in zip(found, rows):
        assert list(row) == fields, path
        for name, kind, text in zip(fields, types, values):
            if text == "-" or kind not in CLASSES:
                continue
            assert isinstance(row[name], CLASSES[kind]), (path, name, kind, row[name])


def check_duckdb(path, other, fields, types, rows):
    columns = "{" + ", ".join(f"'{name}': 'VARCHAR'" for name in fields) + "}"
    options = "delim='\t', header=false, skip=8, quote='', escape='', nullstr='-', null_padding=true, auto_detect=false"
    # The last line is no row.
    rest = f"FROM read_csv('{path}', {options}, columns={columns}) WHERE \"{fields[0]}\" NOT LIKE '#%'"
    objects = f"FROM read_json('{other}', format='newline_delimited', sample_size=-1)"
    names = [row[0] for row in duckdb.sql(f"DESCRIBE {objects}").fetchall()]
    numbers = [name for name, kind in zip(fields, types) if kind == "count" and name in names]
    sums = ", ".join(f'sum(CAST("{name}" AS HUGEINT))' for name in numbers)
    found = [duckdb.sql(f"SELECT count(*), {sums} {source}").fetchall()[0] for source in (rest, objects)]
    assert found[0] == found[1] and found[0][0] == len(rows), (path, numbers, found)


def check_awk(path, other, fields, types):
    objects = [json.loads(line) for line in other.read_text().splitlines()]
    for name, kind in zip(fields, types):
        if kind not in ("addr", "port", "count"):
            continue
        cut = subprocess.run(["awk", "-v", f"column={name}", CUT, path], capture_output=True, text=True, check=True)
        expected = [str(row.get(name, "-")) for row in objects]
        assert cut.stdout.splitlines() == expected, (path, name)


def main():
    tsv, objects = map(pathlib.Path, sys.argv[1:])
    row_count = 0
    logs = sorted(tsv.iterdir())
    for path in logs:
        other = objects / path.name
        fields, types, rows = header(path)
        check_zat(path, fields, types, rows)
        check_duckdb(path, other, fields, types, rows)
        check_awk(path, other, fields, types)
        row_count += len(rows)
    print(f"{len(logs)} logs, {row_count} rows")


main()
