from collections.abc import Iterator
from types import TracebackType
from typing import Any, Optional, final

__all__ = ["Stream", "open"]

@final
class Stream:
    """The rows of captures.

    Each consumer reads the captures from their beginning: ``pandas.DataFrame.from_arrow(stream)``,
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

def open(captures: object, name: Optional[str], arguments: dict[str, Any]) -> Stream:
    """Opens a stream. The functions of the package check the types of the arguments."""
