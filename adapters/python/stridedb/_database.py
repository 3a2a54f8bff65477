"""What databases have that needs no speed: opening and closing, making tables, loading files."""

from __future__ import annotations

import atexit
import os
from typing import Any, Iterator, List, Optional, Tuple, Union

import numpy as np

from . import _core, _table, _types
from ._core import Database, Dedup, Plan, Table, Transaction
from .errors import InvalidArgument

_MODES = {
    "r": {"read_only": True, "create": False},
    "w": {"create": False},
    "a": {"create": True},
    "x": {"create": True, "exclusive": True},
}


def open(
    path: Union[str, bytes, "os.PathLike[str]"],
    mode: str = "a",
    *,
    durability: str = "sync",
    threads: int = 0,
    memory_limit: int = 0,
    memtable: Optional[int] = None,
    background: bool = True,
    backend: str = "automatic",
    device_memory_limit: int = 0,
    device_values: bool = False,
) -> Database:
    """Opens a database, which is a directory.

    mode: ``"a"`` makes it where it is missing, ``"w"`` takes one that is there, ``"x"`` makes a new one,
    and ``"r"`` reads one that another process may write. durability: what a commit has survived once it
    returned: ``"sync"`` a loss of power, ``"flush"`` the end of this process, ``"none"`` nothing before
    ``close()``. threads: of calls with many keys; 0: one for each core. memory_limit: in bytes; 0: half of
    the machine's memory. memtable: bytes of small commits that stay in memory. backend: ``"host"``,
    ``"cuda"``, or ``"automatic"``, which takes a device where there is one. device_values: whether values
    are kept in the device's memory, too.

    Locked: another process has it open for writing. NotFound, Corruption, UnsupportedVersion,
    PermissionDenied and StorageError say what else may be wrong with it.
    """
    if mode not in _MODES:
        raise InvalidArgument(f"mode is {mode!r}", remedy="it may be 'r', 'w', 'a', 'x'")
    options = dict(
        _MODES[mode],
        durability=durability,
        threads=threads,
        memory_limit=memory_limit,
        background=background,
        backend=backend,
        device_memory_limit=device_memory_limit,
        device_values=device_values,
    )
    if memtable is not None:
        options["memtable"] = memtable
    return _reopen(path, options)


def _reopen(path: Union[str, bytes, "os.PathLike[str]"], options: dict) -> Database:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise InvalidArgument(f"the path {path!r} has a NUL, which no file's name has")
    return _core._open(encoded, options)


# Commits that wait for close() to become durable are written although nobody has called it.
atexit.register(_core._close_all)


def _enter(self: Database) -> Database:
    return self


def _exit(self: Database, type: Any, value: Any, traceback: Any) -> None:
    self.close()


def _reduce(self: Database) -> Tuple[Any, ...]:
    if not self.read_only:
        raise InvalidArgument(
            f"database {self.path!r} is open for writing, which one process does at a time",
            remedy="open it with mode='r' where it is to be pickled",
        )
    return _reopen, (self.path, self.options)


def table(
    self: Database,
    name: str,
    key: Any = None,
    values: Any = None,
    *,
    share_values: bool = False,
    create: bool = True,
) -> Table:
    """The table of a name, which is made where it is missing.

    key: a type (``sd.i64``), a name and a type (``("id", sd.i64)``), or a list of such pairs for a key of
    several columns. values: a dict of names and types, or one type for tables whose values are one cell
    without a name. Without both, the table as it is there, or one of bytes. share_values: equal values are
    stored once. create: False: NotFound where it is missing.

    InvalidArgument: it is there with other columns. InvalidType: what is given is no type.
    """
    return self._table(name, key, values, share_values=share_values, create=create)


def prefixes(self: Database, name: str, bits: Optional[int] = None, values: Any = None, *, text: bool = False) -> Table:
    """A table of prefixes of addresses of so many bits (32: IPv4, 128: IPv6), which match() looks up.

    values: as of table(). text: prefixes are strings of any length, and so is what match() looks up.
    """
    return self._table(name, None, values, bits=bits, text_prefixes=text)


def counters(self: Database, name: str, type: Any = None, *, key: Any = None, wrap: bool = False) -> Table:
    """A table of numbers, which add() adds to: i32, i64, f32 or f64.

    key: as of table(); None: bytes. wrap: integers that do not fit wrap around; else InvalidArgument, and
    nothing is added.
    """
    return self._table(name, key, _types.i64 if type is None else type, numbers=True, wrap=wrap)


def dedup(
    self: Database,
    name: str,
    words: int,
    *,
    compressed: bool = False,
    durability: Optional[str] = None,
    threads: int = 0,
) -> Dedup:
    """Numbers 0, 1, 2, ... for vectors of 1 to 64 words of 32 bits, kept in the table of a name.

    compressed: fewer bytes on the disk where words are small, alike, or of few values; for large batches.
    It is chosen when the table is made. durability: of each call that puts something: ``"sync"``,
    ``"flush"`` or ``"none"``; None: that of the database. threads: 0: one for each core.

    InvalidArgument: the table has other rows than these. ResourceExhausted: they do not fit in memory.
    """
    return _core._dedup(self, name, words, durability, threads, compressed)


def transaction(self: Database) -> Transaction:
    """Changes of several tables that are there as a whole or not at all. One thread may use it."""
    return _core._begin(self)


def plan(
    self: Database,
    mapping: Union[str, Table],
    sources: Any = None,
    *,
    names: bool = False,
    targets: int = 0,
    unmapped: str = "count",
) -> Plan:
    """A plan to add weights of sources up by the targets that a mapping table has for them.

    sources: a column of keys, of which any may come several times; None: all keys in their order. names:
    the table's values are names of targets, not their numbers. targets: how many there are; 0: one more
    than the largest. unmapped: whether sources without a target are counted (``"count"``) or an error.
    """
    found = self.table(mapping, create=False) if isinstance(mapping, str) else mapping
    return _core._plan(found, sources, names, targets, unmapped)


def map_weights(
    self: Database,
    mapping: Union[str, Table],
    sources: Any,
    weights: Any,
    into: Optional[np.ndarray] = None,
    *,
    names: bool = False,
    targets: int = 0,
    unmapped: str = "count",
    reproducible: bool = False,
) -> np.ndarray:
    """The sums of the weights of sources by target: plan() and its map() at once.

    weights: of shape (sources,), of int32, int64, float32 or float64. The sums are of shape (targets,): into,
    or a new array.
    """
    made = plan(self, mapping, sources, names=names, targets=targets, unmapped=unmapped)
    return made.map(weights, into, reproducible=reproducible)


def tables(self: Database) -> List[str]:
    """The names of all tables."""
    return [s["name"] for s in self.statistics() if s["name"] != ".stride"]


def _contains(self: Database, name: object) -> bool:
    return name in tables(self)


def _iterate(self: Database) -> Iterator[str]:
    return iter(tables(self))


def _get_table(self: Database, name: str) -> Table:
    return self._table(name, create=False)


def _repr(self: Database) -> str:
    return f"<stridedb.Database {self.path!r}{', read-only' if self.read_only else ''}>"


def _attach() -> None:
    from ._load import load

    for function in (table, prefixes, counters, dedup, transaction, plan, map_weights, tables, load):
        setattr(Database, function.__name__, function)
    Database.__enter__ = _enter
    Database.__exit__ = _exit
    Database.__reduce__ = _reduce
    Database.__getitem__ = _get_table
    Database.__contains__ = _contains
    Database.__iter__ = _iterate
    Database.__repr__ = _repr


_attach()
_table.attach()
