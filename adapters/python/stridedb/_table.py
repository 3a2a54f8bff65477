"""What tables and rows have that needs no speed: joins, conversions, pictures."""

from __future__ import annotations

import html
import os
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from . import _core
from ._core import Column, Database, Rows, Scan, Table
from ._explain import explain, explain_html
from .errors import InvalidArgument, StrideError


def scan(
    self: Table,
    start: Any = None,
    stop: Any = None,
    *,
    prefix: Any = None,
    reverse: bool = False,
    columns: Optional[Sequence[str]] = None,
    batch_rows: int = 0,
) -> Scan:
    """The rows from ``start`` on that are below ``stop`` in the order of keys, as Rows of many at a time.

    Keys of several columns take tuples, also of the first columns alone. prefix: of strings, bytes and such
    tuples, or of a prefix table one with all that is inside it. reverse: descending. columns: those of
    the values that are wanted. The scan shows the table as it was when it began.
    """
    names = None if columns is None else list(columns)
    return _core._scan(self, start, stop, prefix, reverse, names, batch_rows)


def group(
    self: Table,
    *wanted: str,
    by: int = 0,
    prefix_bytes: Optional[int] = None,
    start: Any = None,
    stop: Any = None,
) -> Rows:
    """Counts, and what is wanted of ``"sum"``, ``"min"`` and ``"max"``, of the rows of each group.

    A group are rows that have the first ``by`` key columns in common, or as many bytes of the key as
    ``prefix_bytes`` says; 0: all rows. Groups come in ascending order, with the columns they are made by, ``count``
    (u64), and ``sum`` (i64 or f64), ``min`` and ``max`` of the table's number. Of floats ``min`` and ``max`` leave NaN
    out, unless a group has nothing else.

    InvalidArgument: the table's values are not one number, or the key columns have no fixed width.
    """
    return _core._group(self, list(wanted), by, prefix_bytes, start, stop)


def items(self: Table, start: Any = None, stop: Any = None, *, reverse: bool = False) -> Iterator[Tuple[Any, Any]]:
    """Keys and values one by one, as Python's own objects, from ``start`` to before ``stop``."""
    keys, values = _column_names(self)
    bare_value = values == ["value"]
    for rows in scan(self, start, stop, reverse=reverse):
        key_lists = [rows[name].to_list() for name in keys]
        value_lists = [rows[name].to_list() for name in values]
        all_keys = key_lists[0] if len(keys) == 1 else zip(*key_lists)
        if bare_value:
            yield from zip(all_keys, value_lists[0])
        else:
            for key, *cells in zip(all_keys, *value_lists):
                yield key, dict(zip(values, cells))


def keys(self: Table) -> Iterator[Any]:
    """Keys one by one, in their order."""
    names, _ = _column_names(self)
    for rows in scan(self, columns=[]):
        lists = [rows[name].to_list() for name in names]
        yield from lists[0] if len(names) == 1 else zip(*lists)


def _column_names(self: Table) -> Tuple[List[str], List[str]]:
    names = ["prefix"] if self.address_bits else list(self.key_columns)
    return names, list(self.value_columns)


def join(
    self: Table,
    frame: Any,
    on: Any = None,
    *,
    how: str = "left",
    columns: Optional[Sequence[str]] = None,
    suffix: str = "_right",
) -> Any:
    """The rows of a frame with the columns of the table's row of the same key beside them.

    frame: of polars, pandas, pyarrow, or a dict of columns; the result is of the same kind. on: the
    frame's column of keys, or a list of them; None: those called as the table's key columns. how:
    ``"left"`` keeps rows without a counterpart, with cells that are missing, ``"inner"`` leaves them out.
    columns: those of the table that are wanted. suffix: behind names that the frame has, too.

    InvalidType: that is no frame, or its keys are of another type. InvalidArgument: too few columns of keys.
    KeyNotFound: the frame has no column that is called so.
    """
    from ._frames import column_of, frame_kind

    if how not in ("left", "inner"):
        raise InvalidArgument(f"how is {how!r}", remedy="it may be 'left', 'inner'")
    kind = frame_kind(frame)
    on = _column_names(self)[0] if on is None else [on] if isinstance(on, str) else list(on)
    if len(on) != len(self.key_columns) and not self.address_bits:
        raise InvalidArgument(
            f"on has {len(on)} columns, and keys of the table have {len(self.key_columns)}"
        )
    given = [column_of(kind, frame, name) for name in on]
    rows = self.get(given[0] if len(given) == 1 else given, columns=None if columns is None else list(columns))
    taken = set(kind.names(frame))
    names = [name + suffix if name in taken else name for name in rows.columns]
    for name in names:
        if name in taken or names.count(name) > 1:
            raise InvalidArgument(
                f"the result would have two columns {name!r}", remedy="give another suffix, or the columns wanted"
            )
    added = dict(zip(names, (rows[name] for name in rows.columns)))
    return kind.beside(frame, added, rows.found if how == "inner" else None)


def to_pandas(self: Rows) -> Any:
    """The rows as a pandas.DataFrame, with pandas' nullable types where cells are missing."""
    from ._frames import pandas_column

    import pandas as pd

    return pd.DataFrame({name: pandas_column(self[name]) for name in self.columns})


def to_polars(self: Rows) -> Any:
    """The rows as a polars.DataFrame."""
    import polars as pl

    return pl.DataFrame(self)


def to_arrow(self: Rows) -> Any:
    """The rows as a pyarrow.Table."""
    import pyarrow as pa

    return pa.table(self)


def to_dict(self: Rows) -> Dict[str, List[Any]]:
    """A list of Python's own objects for each column."""
    return {name: self[name].to_list() for name in self.columns}


def to_numpy(self: Rows, fill: Any = None) -> Dict[str, np.ndarray]:
    """An array for each column; fill: as Column.numpy(), of all columns in which cells are missing."""
    return {name: self[name].numpy(fill) for name in self.columns}


def _iterate_rows(self: Rows) -> Iterator[Optional[Dict[str, Any]]]:
    lists = [self[name].to_list() for name in self.columns]
    names = self.columns
    found = self.found
    for i in range(len(self)):
        yield {name: cells[i] for name, cells in zip(names, lists)} if found[i] else None


_SHOWN = 10


def _rows_repr(self: Rows) -> str:
    lines = [f"<stridedb.Rows: {len(self)} rows of {', '.join(self.columns)}>"]
    for i in range(min(len(self), _SHOWN)):
        lines.append(f"  {self[i]!r}")
    if len(self) > _SHOWN:
        lines.append("  ...")
    return "\n".join(lines)


def _rows_html(self: Rows) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
    body = []
    for i in range(min(len(self), _SHOWN)):
        row = self[i]
        cells = "".join(f"<td>{html.escape(str(c))}</td>" for c in row.values()) if row else (
            f"<td colspan={len(self.columns)}><i>not found</i></td>"
        )
        body.append(f"<tr>{cells}</tr>")
    more = f"<p>{len(self)} rows</p>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{more}"


def _iterate_cells(self: Column) -> Iterator[Any]:
    return iter(self.to_list())


def _column_repr(self: Column) -> str:
    shown = [self[i] for i in range(min(len(self), _SHOWN))]
    more = ", ..." if len(self) > _SHOWN else ""
    return f"<stridedb.Column {self.name!r} of {self.type}: [{', '.join(map(repr, shown))}{more}]>"


def _table_repr(self: Table) -> str:
    kind = f" of prefixes of {self.address_bits} bits" if self.address_bits else ""
    return f"<stridedb.Table {self.name!r}{kind}: {self.schema}>"


def _reduce(self: Table) -> Tuple[Any, ...]:
    if self._is_of_snapshot:
        raise InvalidArgument(
            f"table {self.name!r} is that of a snapshot, which ends with its process",
            remedy="pickle the database's table, or the rows",
        )
    if not self._read_only:
        raise InvalidArgument(
            f"table {self.name!r} is of a database that is open for writing, which one process does at a time",
            remedy="open the database with mode='r' where tables are to be pickled",
        )
    return _reopened, (self._path, self.name, self._options)


def _reopened(path: str, name: str, options: Dict[str, Any]) -> Table:
    return _shared_reader(path, options).table(name, create=False)


def _shared_reader(path: str, options: Dict[str, Any]) -> Database:
    """The database that tables which are unpickled in this process share, as it is by now."""
    from ._database import _reopen

    place = os.getpid(), path, repr(sorted(options.items()))
    files = _identity(path)
    known, database = _shared_readers.pop(place, (None, None))
    if files is None or files != known or not _refreshed(database):
        database = _reopen(path, options)
    _shared_readers[place] = files, database
    return database


def _refreshed(database: Database) -> bool:
    try:
        database.refresh()
        return True
    except StrideError:
        return False  # opening it anew says what is wrong, if anything still is


def _identity(path: str) -> Optional[Tuple[int, int, int]]:
    """What tells the database that is at a path now from others that were there before it.

    Every database has a file CURRENT. Its writer replaces it now and then, which costs readers an opening.
    """
    try:
        current = os.stat(os.path.join(path, "CURRENT"))
    except OSError:
        return None
    return current.st_dev, current.st_ino, current.st_ctime_ns


# By process, path and options. What a forked child finds here of its parent is of no use to it.
_shared_readers: Dict[Tuple[int, str, str], Tuple[Any, Database]] = {}


def _column_dlpack(self: Column, **options: Any) -> Any:
    """The cells for numpy.from_dlpack(), torch.from_dlpack() and others: where they lie side by side a view."""
    return np.ascontiguousarray(self.numpy()).__dlpack__(**options)


def _column_dlpack_device(self: Column) -> Tuple[int, int]:
    return 1, 0  # the host's memory


def attach() -> None:
    for function in (scan, group, items, keys, join, explain):
        setattr(Table, function.__name__, function)
    Table.__iter__ = keys
    Table.__repr__ = _table_repr
    Table.__reduce__ = _reduce
    Table._repr_html_ = explain_html
    for function in (to_pandas, to_polars, to_arrow, to_dict, to_numpy):
        setattr(Rows, function.__name__, function)
    Rows.__iter__ = _iterate_rows
    Rows.__repr__ = _rows_repr
    Rows._repr_html_ = _rows_html
    Column.__iter__ = _iterate_cells
    Column.__repr__ = _column_repr
    Column.__dlpack__ = _column_dlpack
    Column.__dlpack_device__ = _column_dlpack_device
