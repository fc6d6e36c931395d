"""Packet captures as tables: flow records, packets, messages, transactions, findings and hosts.

Each function returns a :class:`Stream`, which pandas, Polars, pyarrow and DuckDB read without copies::

    import flowgauge, polars

    flows = polars.DataFrame(flowgauge.flows("day/*.pcap", columns=["source_address", "octet_count"]))

Only the chosen columns are computed. Times are in nanoseconds since 1970 (UTC), durations in nanoseconds, lengths in
octets.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Optional, Protocol, Union

from . import _arguments
from ._errors import Error, MissingFileError, MissingPermissionError
from ._flowgauge import (
    Batch,
    Live,
    Stream,
    Table,
    capture as _capture,
    open as _open,
    query as _query,
    table as _table,
)

__all__ = [
    "Batch",
    "Error",
    "Live",
    "MissingFileError",
    "MissingPermissionError",
    "Stream",
    "Table",
    "findings",
    "flows",
    "hosts",
    "live",
    "messages",
    "packets",
    "sql",
    "table",
    "transactions",
]

_Path = Union[str, "os.PathLike[str]"]
_Addresses = Literal["text", "octets"]
_Tunnels = Literal["innermost", "outermost", "both"]
_Name = Literal["flows", "packets", "messages", "transactions", "findings", "hosts"]


class Reader(Protocol):
    """A binary file object."""

    def read(self, count: int, /) -> bytes:
        """Returns at most ``count`` octets, and none at the end."""


class Rows(Protocol):
    """Arrow data, such as a table of pyarrow, or a data frame of pandas or Polars."""

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """Returns a capsule with the Arrow C stream."""


#: A path or pattern, several of them, a binary file object, or the octets of a capture.
Captures = Union[_Path, Iterable[_Path], Reader, bytes, bytearray, memoryview]
#: A number of seconds, or a difference of times.
Seconds = Union[int, float, datetime.timedelta]


def flows(
    captures: Captures,
    *,
    features: Union[str, Iterable[str], None] = None,
    columns: Optional[Iterable[str]] = None,
    filter: Optional[str] = None,
    where: Optional[str] = None,
    active_timeout: Optional[Seconds] = None,
    idle_timeout: Optional[Seconds] = None,
    tunnels: Optional[_Tunnels] = None,
    application: Union[bool, str, Iterable[str]] = True,
    joined: bool = False,
    limit: Optional[int] = None,
    batch_size: int = 65_536,
    memory: Optional[int] = None,
    addresses: _Addresses = "text",
) -> Stream:
    """Returns a row for each flow record, in the order in which flows end.

    captures
        A path or a pattern (``*``, ``?``, ``[...]``, ``**``) as text, or a ``PathLike`` without pattern; a list of
        them; a binary file object, from its position on; or the octets of one capture. pcap and pcapng, uncompressed or
        compressed with gzip or zstd. Also flow records that flowgauge wrote: ndjson, IPFIX, fixed records, and files of
        Parquet; columns that they do not have are null, a filter applies to their fields, and features, timeouts and
        tunnels are an error.
    features
        Statistical features, such as ``"cic,tcp"`` or ``["nfstream", "splt=20"]``, whose columns follow those of the
        record.
    columns
        Names of columns, in this order. Others are not computed.
    filter
        Expression of pcap-filter, such as ``"tcp port 443 and not net 10.0.0.0/8"``.
    where
        Condition on columns, which need not be among ``columns``: an expression of SQL such as ``"octet_count > '1MiB' and
        destination_address = '10.0.0.0/8'"``, as that of ``flowgauge flows --where``. Times and durations are compared with
        numbers in seconds, or texts such as ``'10ms'``. A comparison with an absent value is not true.
    active_timeout
        Seconds after which a record of an ongoing flow is created. None by default.
    idle_timeout
        Seconds without packets after which any flow ends. By default, this depends on the protocol.
    tunnels
        ``"innermost"`` (default), ``"outermost"`` or ``"both"``: the packet in a tunnel that counts.
    application
        The name of an application protocol, such as ``"http"``, or a list of names: only records of their flows, as far
        as the protocol is recognized. False omits the columns of the application protocol, without which
        payloads are not parsed; this has no effect with ``columns``.
    joined
        True if the files are read as one, in time order, instead of one after the other; then the column ``file`` is
        null. Has no effect on file objects and octets.
    limit
        Maximum number of rows.
    batch_size
        Maximum number of rows of a batch. A batch has about 8 MiB at most.
    memory
        Memory limit of flows and payloads in octets, 1 GiB by default.
    addresses
        ``"text"``, or ``"octets"``: 16 octets, IPv4 addresses mapped to IPv6, and 6 octets of MAC addresses.

    Raises :class:`ValueError` for an invalid argument, :class:`MissingFileError` if a file does not exist, and
    :class:`Error` for other errors of files. Errors within a capture appear when the stream is read.
    """
    return _stream(
        captures,
        table="flows",
        features=features,
        columns=columns,
        filter=filter,
        where=where,
        active_timeout=active_timeout,
        idle_timeout=idle_timeout,
        tunnels=tunnels,
        application=application,
        joined=joined,
        limit=limit,
        batch_size=batch_size,
        memory=memory,
        addresses=addresses,
    )


def packets(
    captures: Captures,
    *,
    columns: Optional[Iterable[str]] = None,
    filter: Optional[str] = None,
    where: Optional[str] = None,
    tunnels: Optional[_Tunnels] = None,
    joined: bool = False,
    limit: Optional[int] = None,
    batch_size: int = 65_536,
    memory: Optional[int] = None,
    addresses: _Addresses = "text",
) -> Stream:
    """Returns a row for each packet of a flow, in the order of the captures; each fragment is a packet.

    The arguments are those of :func:`flows`. A filter with ``src``, ``dst`` or ``vlan`` is refused.
    """
    return _stream(
        captures,
        table="packets",
        columns=columns,
        filter=filter,
        where=where,
        tunnels=tunnels,
        joined=joined,
        limit=limit,
        batch_size=batch_size,
        memory=memory,
        addresses=addresses,
    )


def messages(
    protocol: str,
    captures: Captures,
    *,
    columns: Optional[Iterable[str]] = None,
    filter: Optional[str] = None,
    where: Optional[str] = None,
    idle_timeout: Optional[Seconds] = None,
    tunnels: Optional[_Tunnels] = None,
    joined: bool = False,
    limit: Optional[int] = None,
    batch_size: int = 65_536,
    memory: Optional[int] = None,
    addresses: _Addresses = "text",
) -> Stream:
    """Returns a row for each message of an application protocol, in the order of the captures.

    protocol
        A protocol, such as ``"dns"``, or a kind of its messages, such as ``"dns.response"``. The table of a protocol
        has the columns of all of its kinds, with null where a kind does not have a column.

    The other arguments are those of :func:`flows`. A filter with ``src``, ``dst`` or ``vlan`` is refused.
    """
    return _stream(
        captures,
        table="messages",
        kind=_kind("protocol", protocol),
        columns=columns,
        filter=filter,
        where=where,
        idle_timeout=idle_timeout,
        tunnels=tunnels,
        joined=joined,
        limit=limit,
        batch_size=batch_size,
        memory=memory,
        addresses=addresses,
    )


def transactions(
    kind: str,
    captures: Captures,
    *,
    columns: Optional[Iterable[str]] = None,
    filter: Optional[str] = None,
    where: Optional[str] = None,
    idle_timeout: Optional[Seconds] = None,
    tunnels: Optional[_Tunnels] = None,
    joined: bool = False,
    limit: Optional[int] = None,
    batch_size: int = 65_536,
    memory: Optional[int] = None,
    addresses: _Addresses = "text",
) -> Stream:
    """Returns a row for each transaction, such as a request with its response, as they are completed.

    kind
        The kind of transactions, such as ``"http"`` or ``"dns"``.

    The other arguments are those of :func:`flows`. A filter with ``src``, ``dst`` or ``vlan`` is refused.
    """
    return _stream(
        captures,
        table="transactions",
        kind=_kind("kind", kind),
        columns=columns,
        filter=filter,
        where=where,
        idle_timeout=idle_timeout,
        tunnels=tunnels,
        joined=joined,
        limit=limit,
        batch_size=batch_size,
        memory=memory,
        addresses=addresses,
    )


def findings(
    captures: Captures,
    *,
    columns: Optional[Iterable[str]] = None,
    filter: Optional[str] = None,
    where: Optional[str] = None,
    idle_timeout: Optional[Seconds] = None,
    tunnels: Optional[_Tunnels] = None,
    limit: Optional[int] = None,
    batch_size: int = 65_536,
    memory: Optional[int] = None,
    addresses: _Addresses = "text",
) -> Stream:
    """Returns a row for each finding in all captures together: what was seen, such as a scan, which is no verdict.

    The rows are those of ``flowgauge summary``, with the evidence and the command that shows the flows or transactions.
    They arrive after the last packet. The arguments are those of :func:`flows`; the files are always read as one. A
    filter with ``src``, ``dst`` or ``vlan`` is refused.
    """
    return _stream(
        captures,
        table="findings",
        columns=columns,
        filter=filter,
        where=where,
        idle_timeout=idle_timeout,
        tunnels=tunnels,
        joined=True,
        limit=limit,
        batch_size=batch_size,
        memory=memory,
        addresses=addresses,
    )


def hosts(
    captures: Captures,
    *,
    columns: Optional[Iterable[str]] = None,
    filter: Optional[str] = None,
    where: Optional[str] = None,
    idle_timeout: Optional[Seconds] = None,
    tunnels: Optional[_Tunnels] = None,
    limit: Optional[int] = None,
    batch_size: int = 65_536,
    memory: Optional[int] = None,
    addresses: _Addresses = "text",
) -> Stream:
    """Returns a row for each host in all captures together: addresses, names, systems, services and users.

    The rows are those of ``flowgauge hosts``, each with the source of what is known.
    They arrive after the last packet. The arguments are those of :func:`flows`; the files are always read as one. A
    filter with ``src``, ``dst`` or ``vlan`` is refused.
    """
    return _stream(
        captures,
        table="hosts",
        columns=columns,
        filter=filter,
        where=where,
        idle_timeout=idle_timeout,
        tunnels=tunnels,
        joined=True,
        limit=limit,
        batch_size=batch_size,
        memory=memory,
        addresses=addresses,
    )


def live(
    interface: str,
    *,
    features: Union[str, Iterable[str], None] = None,
    columns: Optional[Iterable[str]] = None,
    filter: Optional[str] = None,
    where: Optional[str] = None,
    active_timeout: Optional[Seconds] = 1800,
    idle_timeout: Optional[Seconds] = None,
    tunnels: Optional[_Tunnels] = None,
    application: Union[bool, str, Iterable[str]] = True,
    interval: Seconds = 1,
    duration: Optional[Seconds] = None,
    promiscuous: bool = True,
    limit: Optional[int] = None,
    batch_size: int = 65_536,
    memory: Optional[int] = None,
    addresses: _Addresses = "text",
) -> Live:
    """Captures on a network interface, and returns an iterator over batches of flow records as flows end.

    Needs Linux and the capability ``CAP_NET_RAW``, but no library: frames are read from a ring that the kernel fills
    (AF_PACKET). The capture begins before the function returns::

        with flowgauge.live("eth0", active_timeout=60) as batches:
            for batch in batches:
                print(polars.DataFrame(batch))

    interface
        Name of an interface with Ethernet or IP packets, such as ``"eth0"``, ``"lo"`` or that of a tunnel.
    active_timeout
        Seconds after which a record of an ongoing flow is created. 30 minutes by default; None for no such records.
    interval
        Seconds that a record waits at most until its batch is delivered, although the batch is not full; 0 to deliver
        records at once.
    duration
        Seconds after which the capture ends; records of the flows that are open follow.
    promiscuous
        True if frames for other hosts are captured.

    The other arguments are those of :func:`flows`. The column ``file`` is null.

    Raises :class:`ValueError` for an invalid argument, :class:`MissingPermissionError` without permission to capture, and
    :class:`Error` if the interface does not exist, or capture is not supported.
    """
    if not isinstance(interface, str):
        raise TypeError(f"interface must be a text, not {type(interface).__name__}")
    arguments = _checked(
        table="flows",
        features=features,
        columns=columns,
        filter=filter,
        where=where,
        active_timeout=active_timeout,
        idle_timeout=idle_timeout,
        tunnels=tunnels,
        application=application,
        interval=interval,
        joined=False,
        limit=limit,
        batch_size=batch_size,
        memory=memory,
        addresses=addresses,
    )
    return _capture(interface, _arguments.nanoseconds("duration", duration), bool(promiscuous), arguments)


def sql(
    query: str,
    *,
    tables: Optional[Mapping[str, Union[Table, Rows]]] = None,
    memory: Optional[int] = None,
    threads: Optional[int] = None,
    batch_size: int = 8_192,
) -> Stream:
    """Executes a query of SQL over captures, files and tables, and returns its rows.

    The tables ``flows(...)``, ``packets(...)``, ``messages(...)``, ``transactions(...)``, ``findings(...)`` and
    ``hosts(...)`` have
    captures and options as arguments; Parquet, ndjson and csv files are tables by their names::

        flowgauge.sql("SELECT application, count(*) AS flows FROM flows('day/*.pcap', idle_timeout => '60s') GROUP BY 1")
        flowgauge.sql("SELECT name, octet_count FROM flows('a.pcap') JOIN hosts ON address = source_address",
                      tables={"hosts": polars.read_csv("hosts.csv")})

    query
        One query in the SQL of DataFusion; ``EXPLAIN`` shows its plan. Statements that change something are refused,
        because each consumer of the stream executes the query again.
    tables
        Tables by their names in the query: any object with ``__arrow_c_stream__`` that has an end, such as tables of
        pyarrow, data frames of pandas and Polars, and relations of DuckDB, whose rows are read before the function returns
        and are not copied; and a :class:`Table` of captures, which each consumer reads. A name in lower case needs no quotes.
    memory
        Memory limit of sorting, grouping, joins and captures in octets. Sorting and grouping use temporary files beyond it;
        another query fails. No limit by default, except 1 GiB for each thread that reads captures. Rows of ``tables`` are
        not counted.
    threads
        Number of threads that compute, and of captures that are read at the same time; that of the processors by default.
    batch_size
        Maximum number of rows of a batch; larger numbers than 1,048,576 have the effect of this one.

    Addresses and names are text, durations are integers in nanoseconds, and times are in nanoseconds since 1970 (UTC).

    Raises :class:`ValueError` for an invalid query, :class:`MissingFileError` if a capture does not exist, :class:`Error`
    for other errors of files, and :class:`NotImplementedError` if the package was built without SQL. Errors within a
    capture, and of values that a query computes, appear when the stream is read.
    """
    if not isinstance(query, str):
        raise TypeError(f"query must be a text, not {type(query).__name__}")
    settings = {
        "memory": _arguments.count("memory", memory, 1),
        "threads": _arguments.count("threads", threads, 1),
        "batch_size": _arguments.count("batch_size", batch_size, 1),
    }
    return _query(query, _arguments.tables(tables), settings)


#: Options of tables that not all of them have.
_OPTIONS = {
    "packets": ("joined",),
    "messages": ("idle_timeout", "joined"),
    "transactions": ("idle_timeout", "joined"),
    "findings": ("idle_timeout",),
    "hosts": ("idle_timeout",),
}


def table(
    name: _Name,
    captures: Union[_Path, Iterable[_Path]],
    *,
    kind: Optional[str] = None,
    features: Union[str, Iterable[str], None] = None,
    filter: Optional[str] = None,
    active_timeout: Optional[Seconds] = None,
    idle_timeout: Optional[Seconds] = None,
    tunnels: Optional[_Tunnels] = None,
    joined: bool = False,
    memory: Optional[int] = None,
) -> Table:
    """Returns a table of captures for a query engine, which reads only the columns and rows that its queries need.

    For :func:`sql`, and for the package ``datafusion`` 55::

        context = datafusion.SessionContext()
        context.register_table("flows", flowgauge.table("flows", "day/*.pcap"))
        context.sql("SELECT application, sum(octet_count) FROM flows GROUP BY application")

    name
        ``"flows"``, ``"packets"``, ``"messages"``, ``"transactions"``,
        ``"findings"`` or ``"hosts"``.
    captures
        A path or a pattern, or a list of them. Each query reads the files again.
    kind
        The protocol or kind of messages, such as ``"dns.response"``, or the kind of transactions, such as ``"http"``.

    The other arguments are those of the function with this name. ``memory`` is the limit of each thread that reads
    captures. Addresses and names are text, durations are integers in nanoseconds, and times are in nanoseconds since 1970
    (UTC).

    Raises :class:`ValueError` for an invalid argument, :class:`MissingFileError` if a file does not exist, :class:`Error`
    for other errors of files, and :class:`NotImplementedError` if the package was built without SQL.
    """
    has_kind = name in ("messages", "transactions")
    if has_kind != (kind is not None):
        raise ValueError(f"table {name!r} {'needs a' if has_kind else 'has no'} kind")
    given = {
        "features": features is not None,
        "active_timeout": active_timeout is not None,
        "idle_timeout": idle_timeout is not None,
        "joined": bool(joined),
    }
    for option in [option for option, is_given in given.items() if is_given]:
        if option not in _OPTIONS.get(name, given):
            raise ValueError(f"{name} have no {option}")
    arguments = _checked(
        table=name,
        kind=None if kind is None else _kind("kind", kind),
        features=features,
        columns=None,
        filter=filter,
        where=None,
        active_timeout=active_timeout,
        idle_timeout=idle_timeout,
        tunnels=tunnels,
        joined=joined,
        limit=None,
        batch_size=1,
        memory=memory,
        addresses="text",
    )
    found, _ = _arguments.captures(captures)
    if not isinstance(found, list):
        raise TypeError(f"a table needs paths, not {type(captures).__name__}, because each query reads it again")
    return _table(found, arguments)


def _kind(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {type(value).__name__}")
    return value


def _stream(source: Captures, **others: Any) -> Stream:
    arguments = _checked(**others)
    found, name = _arguments.captures(source)
    return _open(found, name, arguments)


def _checked(
    *,
    table: str,
    kind: Optional[str] = None,
    features: Union[str, Iterable[str], None] = None,
    active_timeout: Optional[Seconds] = None,
    idle_timeout: Optional[Seconds] = None,
    application: Union[bool, str, Iterable[str]] = True,
    interval: Optional[Seconds] = None,
    **others: Any,
) -> dict[str, Any]:
    if features is not None and not isinstance(features, str):
        features = ",".join(_arguments.names("features", features) or [])
    has_application, applications = _arguments.applications(application)
    return {
        "table": table,
        "kind": kind,
        "features": features,
        "columns": _arguments.names("columns", others["columns"]),
        "filter": _arguments.text("filter", others["filter"]),
        "active_timeout": _arguments.nanoseconds("active_timeout", active_timeout),
        "idle_timeout": _arguments.nanoseconds("idle_timeout", idle_timeout),
        "tunnels": _arguments.text("tunnels", others["tunnels"]),
        "joined": bool(others["joined"]),
        "limit": _arguments.count("limit", others["limit"], 0),
        "batch_size": _arguments.count("batch_size", others["batch_size"], 1),
        "application": has_application,
        "applications": applications,
        "condition": _arguments.text("where", others["where"]),
        "interval": None if interval is None else _arguments.interval("interval", interval),
        "memory": _arguments.count("memory", others["memory"], 1),
        "addresses": _arguments.text("addresses", others["addresses"]),
    }
