"""What databases have that needs no speed: opening and closing, making tables, loading files."""

from __future__ import annotations

import atexit
import datetime
import os
import random
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core, _table, _types
from ._core import Database, Dedup, Plan, Scan, Table, Transaction
from .errors import Conflict, InvalidArgument

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
    devices: Sequence[int] = (),
    device_memory_limit: int = 0,
    device_values: bool = False,
) -> Database:
    """Opens a database, which is a directory.

    mode: ``"a"`` makes it where it is missing, ``"w"`` takes one that is there, ``"x"`` makes a new one,
    and ``"r"`` reads one that another process may write. durability: what a commit has survived once it
    returned: ``"sync"`` a loss of power, ``"flush"`` the end of this process, ``"none"`` nothing before
    ``close()``. threads: of calls with many keys; 0: one for each core. memory_limit: in bytes; 0: half of
    the machine's memory. memtable: bytes of small commits that stay in memory. backend: ``"host"``,
    ``"cuda"``, or ``"automatic"``, which takes a device where there is one. devices: the numbers of
    those that are used; none: the first and all others of its model. Several of them share batches.
    device_memory_limit: in bytes, of each; 0: nine tenths of what is free. device_values: whether values
    are kept in the device's memory, too.

    InvalidArgument: a device that is named twice, or is not there.

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
        devices=devices,
        device_memory_limit=device_memory_limit,
        device_values=device_values,
    )
    if memtable is not None:
        options["memtable"] = memtable
    return _reopen(path, options)


_Path = Union[str, bytes, "os.PathLike[str]"]


def _encoded(path: _Path) -> bytes:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise InvalidArgument(f"the path {path!r} has a NUL, which no file's name has")
    return encoded


def _reopen(path: _Path, options: dict) -> Database:
    return _core._open(_encoded(path), options)


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
    return _reopen, (self._absolute_path, self.options)


def table(
    self: Database,
    name: str,
    key: Any = None,
    values: Any = None,
    *,
    share_values: bool = False,
    expires: Optional[str] = None,
    ttl: Union[float, datetime.timedelta, None] = None,
    create: bool = True,
) -> Table:
    """The table of a name, which is made where it is missing.

    key: a type (``sd.i64``), a name and a type (``("id", sd.i64)``), or a list of such pairs for a key of
    several columns. values: a dict of names and types, or one type for tables whose values are one cell
    without a name. Without both, the table as it is there, or one of bytes. share_values: equal values are
    stored once. create: False: NotFound where it is missing.

    expires: the column, a timestamp, that says when a row ends: from then on reads do not find it, and it
    leaves the files when they are compacted; None in it: it does not end. ttl: rows that are put with None
    there, or without the column, end so long after that, in seconds or as a timedelta (also NumPy's, of weeks
    or a shorter unit); the column's type is optional then (``sd.optional(sd.timestamp_us)``).

    InvalidArgument: it is there with other columns. InvalidType: what is given is no type.
    """
    live = _microseconds(ttl)
    return self._table(
        name, key, values, share_values=share_values, expires=expires or "", time_to_live=live, create=create
    )


def _microseconds(ttl: Union[float, datetime.timedelta, None]) -> int:
    if ttl is None:
        return 0
    if isinstance(ttl, np.timedelta64):
        live = _microseconds_of_numpy(ttl)
    else:
        given = ttl.item() if isinstance(ttl, np.generic) else ttl
        try:
            span = given if isinstance(given, datetime.timedelta) else datetime.timedelta(seconds=given)
        except (TypeError, ValueError, OverflowError):
            span = datetime.timedelta(0)
        live = 0 if isinstance(given, bool) else span // datetime.timedelta(microseconds=1)
    if not 0 < live < 2**63:
        raise InvalidArgument(
            f"ttl is {ttl!r}", remedy="give seconds from 0.000001 on, below 9.2 * 10**12, or a timedelta"
        )
    return live


# Years and months have no length that is always the same.
_ATTOSECONDS = {
    "W": 7 * 86_400 * 10**18, "D": 86_400 * 10**18, "h": 3_600 * 10**18, "m": 60 * 10**18, "s": 10**18,
    "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1,
}


def _microseconds_of_numpy(span: np.timedelta64) -> int:
    """Whole microseconds; not above 0 where the span has no length."""
    unit, count = np.datetime_data(span.dtype)
    number = int(span.astype(np.int64))  # of NaT the smallest there is
    return number * count * _ATTOSECONDS.get(unit, 0) // _ATTOSECONDS["us"]


def prefixes(self: Database, name: str, bits: Optional[int] = None, values: Any = None, *, text: bool = False) -> Table:
    """A table of prefixes of addresses of so many bits (32: IPv4, 128: IPv6), which match() looks up.

    values: as of table(). text: prefixes are strings of any length, and so is what match() looks up.
    """
    is_there = name in tables(self)
    if not text and (bits == 0 or (bits is None and not is_there)):
        raise InvalidArgument("addresses have 1 to 65535 bits", remedy="give bits, or text=True")
    table = self._table(name, None, values, bits=bits, text_prefixes=text)
    if not table.address_bits:
        raise InvalidArgument(f"table {name!r} is there, and is none of prefixes", remedy="use another name")
    return table


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
    ``"flush"`` or ``"none"``; None: that of the database. threads: 0: one for each core. Those of one table
    share what they know, and the durability and threads of the first one.

    InvalidArgument: the table has other rows than these. ResourceExhausted: they do not fit in memory.
    """
    return _core._dedup(self, name, words, durability, threads, compressed)


def transaction(self: Database, *, reads: bool = False) -> Transaction:
    """Changes of several tables that are there as a whole or not at all. One thread may use it.

    reads: it also reads, with get(), contains(), scan(), cursor(), lower_bound(), count() and the like, what was
    there when it began and its own changes, and takes put(), delete() and delete_range(). Its commit raises
    Conflict, and nothing of it is there, where others have changed what it has read; so it is as if it had been
    alone. See retry().
    """
    return _core._begin(self, reads)


def retry(self: Database, change: Callable[[Transaction], Any], *, limit: int = 32) -> Any:
    """Calls change(t) with a transaction that reads, commits that, and returns what change has returned.

    Where there is a Conflict it is done again with another transaction, limit times in all; then the last
    Conflict is raised, as is every other exception at once.
    """
    if limit < 1:
        raise InvalidArgument(f"limit is {limit}", remedy="give how often it is to be tried, 1 at least")
    for attempt in range(limit):
        if attempt > 1:
            time.sleep(random.random() * min(2**attempt, 1024) * 1e-6)
        try:
            with transaction(self, reads=True) as t:
                result = change(t)
            return result
        except Conflict:
            if attempt + 1 == limit:
                raise


def _scan_within(
    self: Transaction,
    table: Table,
    start: Any = None,
    stop: Any = None,
    *,
    prefix: Any = None,
    reverse: bool = False,
    columns: Optional[Sequence[str]] = None,
    batch_rows: int = 0,
) -> Scan:
    """As Table.scan(), with the transaction's changes so far. What it has come past counts as read, at its end
    all of the range, also keys that are not there."""
    names = None if columns is None else list(columns)
    return _core._scan(table, start, stop, prefix, reverse, names, batch_rows, self)


def checkpoint(self: Database, directory: _Path, *, progress: Optional[Callable[[float], Any]] = None) -> Dict[str, int]:
    """Makes a database of its own in a new directory, of all that was committed, at once: its files are links.

    Returns how many files and bytes it has, and how many were copied and linked. progress: called with a share
    from 0 to 1. An exception of it or Ctrl-C: nothing is left of it. AlreadyExists: the directory is there.
    """
    return _core._checkpoint(self, _encoded(directory), progress)


def backup(self: Database, directory: _Path, *, progress: Optional[Callable[[float], Any]] = None) -> Dict[str, int]:
    """Brings the backup in a directory up to date, or makes it: copies and checks what it does not have.

    As checkpoint(); one that ended early is gone on with by the next call, and the one before stays whole until
    then. restore() makes a database of it. InvalidArgument: it is the backup of another database, or the
    directory has other files. Corruption: a file is damaged. Locked: another backup goes on there.
    """
    return _core._backup(self, _encoded(directory), progress)


def restore(backup: _Path, directory: _Path, *, progress: Optional[Callable[[float], Any]] = None) -> Dict[str, int]:
    """Makes a database in a new directory of a backup, every byte of which is checked.

    NotFound: there is no backup that is complete. AlreadyExists: the directory is there. Corruption.
    """
    return _core._restore(_encoded(backup), _encoded(directory), progress)


def adopt(
    self: Database,
    table: Union[str, Table],
    databases: Union[_Path, Iterable[_Path]],
    *,
    progress: Optional[Callable[[float], Any]] = None,
) -> int:
    """Makes the rows that other databases have in their table of this name a part of this one, in one commit.

    For a load that several processes have carried out, each into a database of its own and each with a range of
    keys: their files are copied and checked, and neither sorted nor built again. The rows are newer than all that
    is there, and the databases stay as they are. Returns how many rows they had. progress: called with a share
    from 0 to 1; an exception of it or Ctrl-C: nothing is adopted.

    InvalidArgument, naming the database: a table of other columns or options, rows that are not in segments, or
    that are erased (compact() and close() it first), ranges of keys that overlap. NotFound. Corruption: a file is
    damaged.
    """
    found = self.table(table, create=False) if isinstance(table, str) else table
    paths = [databases] if isinstance(databases, (str, bytes, os.PathLike)) else databases
    return _core._adopt(self, found, [_encoded(path) for path in paths], progress)


def metrics(self: Database) -> Dict[str, Any]:
    """What was done since the database was opened, and its state: dicts "operations", "work" and "state".

    Their names, and what each is, are those of docs/monitoring.md; of tables statistics() tells.
    """
    return _core._metrics(self)


def prometheus(self: Database) -> str:
    """The metrics as Prometheus reads them, of type ``text/plain; version=0.0.4``."""
    return _core._prometheus(self)


def diagnose(path: _Path) -> List[Dict[str, Any]]:
    """What is unusual about a database on the disk, and what to do, as ``stride doctor`` says it.

    A dict for each thing that was looked at: "what", "value", "fine", and "advice" where it is not. Nothing is
    changed, and another process may write meanwhile. NotFound: there is no directory.
    """
    return _core._diagnose(_encoded(path))


def damage(self: Database) -> List[Dict[str, Any]]:
    """All that is damaged of the files, where verify() raises for the first: reads every byte and checks it.

    A dict for each part of a file: "file", "section", "offset", "bytes", "what", "table", "rows" that need it at
    most, whose keys lie from "first_key" to "last_key" (bytes as they are stored; None: no bound), and "text", all
    of it as a sentence. None of them: an empty list. Ctrl-C ends it.
    """
    return _core._damage(self)


def verify(path: _Path) -> List[Dict[str, Any]]:
    """As damage(), of a database that need not be one that can be opened. Nothing is changed.

    NotFound: there is no directory. InvalidArgument: it has no file of a database. Locked: a process writes it.
    """
    return _core._verify_files(_encoded(path))


def salvage(source: _Path, directory: _Path, *, progress: Optional[Callable[[float], Any]] = None) -> Dict[str, Any]:
    """Makes a database in a new directory of all that can be read of a damaged one, which is only read.

    Returns a dict: "complete", whether all rows are there, in the tables that they were in; "tables", a list of
    "table", "rows", "lost_rows" and "unnamed" (nothing tells its name any more); "lost", a list of ranges of keys
    as of damage(), with "older_rows_remain" where what they had replaced may be there again; "uncertain", sentences;
    "damage", "files", "bytes" and "rebuilt_files". progress: called with a share from 0 to 1. An exception of it or
    Ctrl-C: nothing is left of the directory. NotFound, InvalidArgument and Locked as verify(); AlreadyExists: the
    directory is there. Corruption: nothing is left to recover.
    """
    return _core._salvage(_encoded(source), _encoded(directory), progress)


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

    functions = (
        table, prefixes, counters, dedup, transaction, retry, plan, map_weights, tables, load, checkpoint, backup, adopt,
        metrics, prometheus, damage,
    )
    for function in functions:
        setattr(Database, function.__name__, function)
    _scan_within.__name__ = "scan"
    Transaction.scan = _scan_within
    Database.__enter__ = _enter
    Database.__exit__ = _exit
    Database.__reduce__ = _reduce
    Database.__getitem__ = _get_table
    Database.__contains__ = _contains
    Database.__iter__ = _iterate
    Database.__repr__ = _repr


_attach()
_table.attach()
