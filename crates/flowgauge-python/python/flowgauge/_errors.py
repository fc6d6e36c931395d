"""Exceptions of the package."""

from __future__ import annotations

import os
from typing import Optional, Union

_Path = Union[str, "os.PathLike[str]"]


class Error(OSError):
    """A capture cannot be read, or an interface cannot be captured.

    The message contains the file and the cause. ``filename`` is the path (``None`` for a file object or bytes),
    ``errno`` the number of the operating system's error, if there is one. If a file object raised an exception, it
    is ``__cause__``.
    """

    def __init__(self, message: str, filename: Optional[_Path] = None, errno: Optional[int] = None) -> None:
        super().__init__(message)
        self.filename = None if filename is None else os.fspath(filename)
        self.errno = errno

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.filename, self.errno)


class MissingPermissionError(Error, PermissionError):
    """The process may not capture on an interface."""


class MissingFileError(Error, FileNotFoundError):
    """A capture does not exist, or no file matches a pattern."""
