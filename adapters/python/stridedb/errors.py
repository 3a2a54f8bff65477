"""What goes wrong, as one tree of exceptions.

Every exception has ``message`` (what went wrong), ``file`` and ``offset`` (where, or ``None``) and
``remedy`` (what to do about it, or ``""``). Those with a counterpart among Python's own exceptions are
such an exception, too: a key that is missing is a ``KeyError``, damaged bytes are an ``OSError``.
"""

from __future__ import annotations

from typing import Optional


class StrideError(Exception):
    """The root of all exceptions of this package."""

    def __init__(
        self,
        message: str = "",
        file: Optional[str] = None,
        offset: Optional[int] = None,
        remedy: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.offset = offset
        self.remedy = remedy

    def __str__(self) -> str:
        where = ""
        if self.file:
            where = f" ({self.file}" + (f", offset {self.offset})" if self.offset is not None else ")")
        return self.message + where + (f": {self.remedy}" if self.remedy else "")

    def __reduce__(self):
        return type(self), (self.message, self.file, self.offset, self.remedy)


class NotFound(StrideError, LookupError):
    """A table, a file or a database that is named is not there."""


class KeyNotFound(NotFound, KeyError):
    """A key is not in the table."""

    __str__ = StrideError.__str__


class AlreadyExists(StrideError, FileExistsError):
    """A table or a database of that name is there already."""


class InvalidArgument(StrideError, ValueError):
    """The caller's data or options are wrong: a key that is too long, a null in a key, ..."""


class InvalidType(InvalidArgument, TypeError):
    """The caller's data are of a type that the column does not take."""


class Corruption(StrideError, OSError):
    """Stored bytes are damaged or foreign."""


class UnsupportedVersion(StrideError):
    """A newer version of StrideDB has written the database."""


class StorageError(StrideError, OSError):
    """The operating system has failed a call."""


class NoSpace(StorageError):
    """The disk or the quota is full."""


class PermissionDenied(StorageError, PermissionError):
    """A file or a directory may not be read or written."""


class Locked(StrideError, BlockingIOError):
    """Another process or handle has the database open for writing."""


class ReadOnly(StrideError):
    """A write was asked of a database that is open for reading, or of a snapshot."""


class Poisoned(StrideError, OSError):
    """An earlier write has failed: nothing more is written until the database is opened anew."""


class ResourceExhausted(StrideError, MemoryError):
    """Memory or another limit does not suffice."""


class Closed(StrideError, ValueError):
    """The database or the transaction has ended, or was opened before this process was forked."""


class Unavailable(StrideError):
    """This machine or build lacks what was asked for."""


class Cancelled(StrideError):
    """The caller has asked for an end, and nothing has changed."""


class Conflict(StrideError):
    """What a transaction has read was changed meanwhile: do it again."""
