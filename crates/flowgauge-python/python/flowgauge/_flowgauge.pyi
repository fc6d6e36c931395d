from collections.abc import Iterator
from types import TracebackType
from typing import Any, Optional, final

__all__ = ["Batch", "Live", "Stream", "Table", "capture", "open", "query", "table"]

@final
class Batch:
    """Rows that were delivered together.

    ``polars.DataFrame(batch)``, ``pandas.DataFrame.from_arrow(batch)``, ``pyarrow.record_batch(batch)``, the name of the
    variable in SQL of DuckDB, or ``for row in batch``. ``len(batch)`` is the number of rows.
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Returns an iterator over the rows, with the values of :meth:`Stream.__iter__`."""

    def __arrow_c_array__(self, requested_schema: Optional[object] = None) -> tuple[object, object]:
        """Returns capsules with the Arrow C schema and array. ``requested_schema`` is ignored."""

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """Returns a capsule with the Arrow C stream of this batch. ``requested_schema`` is ignored."""

    def __arrow_c_schema__(self) -> object:
        """Returns a capsule with the Arrow C schema."""

@final
class Live:
    """Flows of an interface while it is captured: an iterator over batches, each a :class:`Batch`.

    The capture runs on a thread of its own. It ends with :meth:`stop` or :meth:`close`, at the end of ``with``, or when
    the iterator is dropped. While three batches wait for the consumer, frames fill the buffer of the kernel (16 MiB),
    which then drops them.
    """

    def __iter__(self) -> Live: ...
    def __next__(self) -> Batch:
        """Waits for the next batch."""

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """Returns a capsule with the Arrow C stream of the batches that follow, after the first of them arrived.

        The iterator then has no more batches. ``requested_schema`` is ignored.
        """

    def __arrow_c_schema__(self) -> object:
        """Returns a capsule with the Arrow C schema."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order."""

    @property
    def drop_count(self) -> int:
        """Number of frames that the kernel dropped so far because its buffer was full."""

    def stop(self) -> None:
        """Ends the capture. Records of the flows that are open follow, then the iteration ends."""

    def close(self) -> None:
        """Ends the capture and the iteration. Records that were not delivered are dropped."""

    def __enter__(self) -> Live: ...
    def __exit__(
        self,
        exception_type: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...

@final
class Stream:
    """The rows of captures, or of a query.

    Each consumer reads the captures from their beginning, and executes the query again: ``pandas.DataFrame.from_arrow(stream)``,
    ``polars.DataFrame(stream)``, ``pyarrow.table(stream)``, the name of the variable in SQL of DuckDB, or ``for row in
    stream``. A file object can be read only once. Reading runs on a thread of its own, at most two batches ahead, and
    ends when the consumer is dropped.
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order."""

    @property
    def warnings(self) -> list[str]:
        """Damage at which reading of a capture ended, one text for each, of the latest consumer so far."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Returns an iterator over the rows, for few rows.

        Times and durations are integers in nanoseconds, octets are bytes, lists and groups are lists and dictionaries,
        and absent values are None.
        """

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """Returns a capsule with the Arrow C stream, after the first batch was computed.

        ``requested_schema`` is ignored, as the interface permits.
        """

    def __arrow_c_schema__(self) -> object:
        """Returns a capsule with the Arrow C schema. Reads nothing."""

    def close(self) -> None:
        """Ends reading. Consumers that have not read the stream to its end receive an error."""

    def __enter__(self) -> Stream: ...
    def __exit__(
        self,
        exception_type: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...

@final
class Table:
    """The rows of captures, for a query engine.

    Each query reads the captures again, as far as its limit requires, and only the columns that it needs. Conditions on
    addresses, ports, ``protocol`` and times choose what is read.
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order."""

    @property
    def warnings(self) -> list[str]:
        """Damage at which reading of a capture ended, one text for each, of queries of other packages so far.

        Those of :func:`flowgauge.sql` have the warnings in their streams.
        """

    def __datafusion_table_provider__(self, session: object) -> object:
        """Returns a capsule with the table, for a session of the package ``datafusion``. Reads nothing."""

def capture(interface: str, duration: Optional[int], promiscuous: bool, arguments: dict[str, Any]) -> Live:
    """Starts a capture on an interface. ``duration`` is in nanoseconds."""

def open(captures: object, name: Optional[str], arguments: dict[str, Any]) -> Stream:
    """Opens a stream. The functions of the package check the types of the arguments."""

def query(text: str, tables: list[tuple[str, object]], settings: dict[str, Any]) -> Stream:
    """Plans a query. The functions of the package check the types of the arguments."""

def table(captures: list[str], arguments: dict[str, Any]) -> Table:
    """Creates a table of captures. The functions of the package check the types of the arguments."""
