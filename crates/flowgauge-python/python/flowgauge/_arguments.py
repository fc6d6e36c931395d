"""Types and ranges of arguments, which become those of the extension module."""

from __future__ import annotations

import datetime
import errno
import glob
import io
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from ._errors import MissingFileError

_U64_MAX = 2**64 - 1


def paths(source: Any) -> list[str]:
    """Returns the paths of one path or pattern, or of several."""
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    else:
        try:
            source = list(source)
        except TypeError:
            raise TypeError(
                "captures must be a path, a list of paths, a binary file object or bytes, "
                f"not {type(source).__name__}"
            ) from None
    if not source:
        raise ValueError("the list of captures is empty")
    found: list[str] = []
    for item in source:
        if not isinstance(item, (str, os.PathLike)):
            raise TypeError(f"a list of captures must contain paths, not {type(item).__name__}")
        found.extend(_expanded(os.fsdecode(item)) if isinstance(item, str) else [os.fsdecode(item)])
    return found


def _expanded(path: str) -> list[str]:
    """Returns the files that match a pattern, sorted, or the path itself if it has no wildcards or exists."""
    if not any(wildcard in path for wildcard in "*?[") or os.path.lexists(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise MissingFileError(f"{path}: no file matches the pattern", path, errno.ENOENT)
    return found


def captures(source: Any) -> tuple[Any, Optional[str]]:
    """Returns bytes, a list of paths or a file object, and the name of a file object."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), None
    if isinstance(source, io.TextIOBase):
        raise TypeError("the file object must be opened in binary mode")
    if hasattr(source, "read") and not isinstance(source, os.PathLike):
        name = getattr(source, "name", None)
        # Other octets than those of UTF-8 are replaced, as in the names of files that are opened by their paths.
        name = os.fsencode(name).decode(errors="replace") if isinstance(name, (str, bytes)) else None
        return source, name
    return paths(source), None


def count(name: str, value: Optional[int], least: int) -> Optional[int]:
    """Returns an integer of a range."""
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if not least <= number <= _U64_MAX:
        raise ValueError(f"{name} must be at least {least} and less than 2**64, not {number}")
    return number


def nanoseconds(name: str, value: Any) -> Optional[int]:
    """Returns a positive time."""
    if value is None:
        return None
    if isinstance(value, datetime.timedelta):
        number = value // datetime.timedelta(microseconds=1) * 1000
    elif isinstance(value, (int, float)):
        if not 0 < value <= _U64_MAX // 10**9:
            raise ValueError(f"{name} must be greater than zero and less than 2**64 nanoseconds, not {value} s")
        number = value * 10**9 if isinstance(value, int) else round(value * 1e9)
    else:
        raise TypeError(f"{name} must be a number of seconds or a timedelta, not {type(value).__name__}")
    if not 0 < number <= _U64_MAX:
        raise ValueError(f"{name} must be greater than zero and less than 2**64 nanoseconds, not {value}")
    return number


def interval(name: str, value: Any) -> int:
    """Returns a time that may be zero."""
    return 0 if value in (0, datetime.timedelta(0)) else nanoseconds(name, value) or 0


def names(name: str, value: Any) -> Optional[list[str]]:
    """Returns a list of texts."""
    if value is None:
        return None
    if isinstance(value, str):
        raise TypeError(f"{name} must be a list of texts, not a text: [{value!r}]")
    found = list(value)
    for item in found:
        text(name, item)
    return found


def applications(value: Any) -> tuple[bool, Optional[list[str]]]:
    """Returns whether columns of the application are included, and the names of applications that are selected."""
    if isinstance(value, bool):
        return value, None
    if isinstance(value, str):
        return True, [value]
    found = names("application", value) if isinstance(value, Iterable) else None
    if found is None:
        raise TypeError(f"application must be True, False, a name or a list of names, not {type(value).__name__}")
    return True, found


def tables(value: Any) -> list[tuple[str, Any]]:
    """Returns the names of tables, and the tables."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise TypeError(f"tables must be a dictionary of names and tables, not {type(value).__name__}")
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"the name of a table must be a text, not {type(name).__name__}")
    return list(value.items())


def text(name: str, value: Any) -> Optional[str]:
    """Returns a text."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {type(value).__name__}")
    return value
