"""Made by adapters/python/make_stubs.py with nanobind 3.1.0. Changes belong there, or in its sources."""

import os
from types import TracebackType
from typing import Any, Callable, Dict, Final, Iterable, Iterator, List, Literal, Optional, Sequence, Tuple, Union, overload
from typing import Type as _Class

import numpy as np
from numpy.typing import NDArray

_Durability = Literal["sync", "flush", "none"]
_Progress = Callable[[float], object]
_Path = Union[str, bytes, "os.PathLike[str]"]

__version__: str

class Type:
    """The type of a column."""

    def __init__(self, text: str) -> None:
        """The type that is written so in a schema's text, as ``f32[64]?``."""

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

    def __hash__(self) -> int: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __getstate__(self) -> str: ...

    @property
    def nullable(self) -> bool:
        """Whether cells may be missing."""

    @property
    def width(self) -> int:
        """Bytes of a cell; 0: they differ."""

def vector(type: Type, count: int) -> Type:
    """So many numbers of a type in each cell."""

def optional(type: Type) -> Type:
    """The type, with cells that may be missing (``None``)."""

def fixed_bytes(count: int) -> Type:
    """Byte strings that all have so many bytes."""

class Column:
    """
    A column of cells. It is a sequence, and NumPy, Arrow and DataFrame libraries read it, without a copy where its cells lie as they want them.
    """

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def type(self) -> Type:
        """The cells' Type."""

    def __len__(self) -> int: ...

    def __getitem__(self, arg: int, /) -> Any: ...

    def numpy(self, fill: Any=None) -> NDArray[Any]:
        """
        The cells as an array of shape (rows,), of vectors (rows, count): of numbers and times a view, with a stride where cells lie in rows; of strings and bytes an array of objects. Missing cells become `fill`, or NaN and NaT where it is None; InvalidArgument: there are some, and their type has no such value. `fill` is a value that the column takes (InvalidType, InvalidArgument: it is none); for strings and bytes any object.
        """

    def valid(self) -> NDArray[np.bool_]:
        """An array of booleans of shape (rows,): which cells are there."""

    def to_list(self) -> List[Any]:
        """The cells as Python's own objects, None where one is missing."""

    def __array__(self, dtype: Any=None, copy: Optional[bool]=None) -> NDArray[Any]: ...

    def __arrow_c_schema__(self) -> object: ...

    def __arrow_c_array__(self, requested_schema: object | None=None) -> Tuple[object, object]: ...

    def __dlpack__(self, **options: Any) -> Any:
        """The cells for numpy.from_dlpack(), torch.from_dlpack() and others: where they lie side by side a view."""

    def __dlpack_device__(self) -> Tuple[int, int]: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __repr__(self) -> str: ...

class Rows:
    """
    Columns of as many rows: what lookups and scans return. DataFrame libraries take it as it is, as polars.DataFrame(rows) does.
    """

    def __len__(self) -> int: ...

    @property
    def columns(self) -> List[str]:
        """The columns' names."""

    @property
    def found(self) -> NDArray[np.bool_]:
        """An array of booleans of shape (rows,): which rows are there."""

    @overload
    def __getitem__(self, arg: str, /) -> Column:
        """A column. KeyNotFound: there is none of that name."""

    @overload
    def __getitem__(self, arg: int, /) -> Optional[Dict[str, Any]]:
        """
        A row as a dict, or None where it is not there. IndexError: there is no such row.
        """

    def __arrow_c_schema__(self) -> object: ...

    def __arrow_c_stream__(self, requested_schema: object | None=None) -> object: ...

    def __arrow_c_array__(self, requested_schema: object | None=None) -> Tuple[object, object]: ...

    def __iter__(self) -> Iterator[Optional[Dict[str, Any]]]: ...

    def __repr__(self) -> str: ...

    def _repr_html_(self) -> str: ...

    def to_arrow(self) -> Any:
        """The rows as a pyarrow.Table."""

    def to_dict(self) -> Dict[str, List[Any]]:
        """A list of Python's own objects for each column."""

    def to_numpy(self, fill: Any=None) -> Dict[str, np.ndarray]:
        """An array for each column; fill: as Column.numpy(), of all columns in which cells are missing."""

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame, with pandas' nullable types where cells are missing."""

    def to_polars(self) -> Any:
        """The rows as a polars.DataFrame."""

class Table:
    """A named, ordered map of keys to rows."""

    @property
    def name(self) -> object: ...

    @property
    def schema(self) -> str:
        """The columns of keys and values, as the text of a schema."""

    @property
    def key_columns(self) -> Dict[str, Type]:
        """The types of the key columns, by name."""

    @property
    def value_columns(self) -> Dict[str, Type]:
        """The types of the columns of values, by name."""

    @property
    def address_bits(self) -> int:
        """Bits of the addresses of a prefix table; 0: it is none."""

    def __getitem__(self, key: Any) -> Any: ...

    def __contains__(self, key: Any) -> bool: ...

    def get(self, keys: Any, default: object | None=None, columns: Optional[Sequence[str]]=None) -> Any:
        """
        Of one key its value, or `default`. Of a column of keys Rows, one for each key in their order, with `found`; columns: those of the values that are wanted.
        """

    def contains(self, keys: Any) -> NDArray[np.bool_]:
        """An array of booleans: which keys are there."""

    def segments(self) -> List[Dict[str, Any]]:
        """
        What the table's files and trees are like, as a list of dicts, the newest first.
        """

    def lower_bound(self, keys: Any) -> Rows:
        """
        For each key the first row whose key is not smaller, as Rows with key columns.
        """

    def upper_bound(self, keys: Any) -> Rows:
        """
        For each key the first row whose key is greater, as Rows with key columns.
        """

    def previous(self, keys: Any) -> Rows:
        """
        For each key the last row whose key is not greater, as Rows with key columns.
        """

    def __len__(self) -> int: ...

    def count(self, start: Any=None, stop: Any=None) -> int:
        """How many keys there are from `start` on that are below `stop`."""

    def counts(self, starts: Any, stops: Any) -> NDArray[np.uint64]:
        """
        How many keys there are from starts[i] on that are below stops[i], as an array of uint64. starts, stops: columns of as many keys.
        """

    def cursor(self, start: Any=None, stop: Any=None, *, prefix: Any=None) -> Cursor:
        """
        A Cursor over the keys from `start` on that are below `stop`, or, as of scan(), those of a prefix.
        """

    def put(self, data: Any, values: Any=None, *, on_equal: Literal['last', 'error']='last', durability: Optional[_Durability]=None, progress: Optional[_Progress]=None) -> None:
        """
        Puts rows: a frame (a DataFrame, Arrow data, a dict of columns) with all columns of the table, or keys and values: columns with as many rows, or a key and a value. All of it is there afterwards, or nothing. on_equal: 'last' takes the last of equal keys, 'error' raises AlreadyExists. durability: 'sync', 'flush' or 'none'; None: that of the database. progress: called with a share from 0 to 1; an exception of it ends the commit. InvalidArgument: a null in a key, columns that are missing, unknown or of other sizes, values out of range. InvalidType: cells of a type that the column does not take. ReadOnly: the database or a snapshot is for reading.
        """

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def put_if_absent(self, data: Any, values: Any=None, *, durability: Optional[_Durability]=None) -> NDArray[np.bool_]:
        """
        Puts those rows whose key is not there, and returns which: an array of booleans.
        """

    def add(self, keys: Any, deltas: Any=1, *, durability: Optional[_Durability]=None) -> None:
        """
        Adds to counters: deltas[i] to that of keys[i], or one number to all. A key that is not there has 0. InvalidArgument: the table has no counters, or a sum is out of range; then nothing is added.
        """

    def delete(self, keys: Any, *, durability: Optional[_Durability]=None) -> None:
        """Deletes a key or a column of keys. That one is not there is no error."""

    def __delitem__(self, key: Any) -> None: ...

    def delete_range(self, start: Any=None, stop: Any=None, *, durability: Optional[_Durability]=None) -> None:
        """Deletes the keys from `start` on that are below `stop`."""

    def match(self, addresses: Any, columns: Optional[Sequence[str]]=None) -> Any:
        """
        Of a prefix table the longest prefix of each address: Rows with its value and its `length` in bits; of one address a dict, or None. addresses: text, objects of ipaddress, bytes, or integers of 32 and 64 bits. InvalidArgument: one is no address.
        """

    def match_all(self, address: Any) -> List[Dict[str, Any]]:
        """All prefixes of an address, the shortest first."""

    def __iter__(self) -> Iterator[Any]:
        """Keys one by one, in their order."""

    def __reduce__(self) -> Tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

    def _repr_html_(self) -> str:
        """A bar for each segment: what its keys, values, tree and filter take."""

    def explain(self) -> str:
        """The table's segments, newest first: rows, bytes, and the strides of their trees."""

    def group(self, *wanted: str, by: int=0, prefix_bytes: Optional[int]=None, start: Any=None, stop: Any=None) -> Rows:
        """Counts, and what is wanted of ``"sum"``, ``"min"`` and ``"max"``, of the rows of each group.

        A group are rows that have the first ``by`` key columns in common, or as many bytes of the key as
        ``prefix_bytes`` says; 0: all rows. Groups come in ascending order, with the columns they are made by, ``count``
        (u64), and ``sum`` (i64 or f64), ``min`` and ``max`` of the table's number. Of floats ``min`` and ``max`` leave NaN
        out, unless a group has nothing else.

        InvalidArgument: the table's values are not one number, or the key columns have no fixed width."""

    def items(self, start: Any=None, stop: Any=None, *, reverse: bool=False) -> Iterator[Tuple[Any, Any]]:
        """Keys and values one by one, as Python's own objects, from ``start`` to before ``stop``."""

    def join(self, frame: Any, on: Any=None, *, how: str='left', columns: Optional[Sequence[str]]=None, suffix: str='_right') -> Any:
        """The rows of a frame with the columns of the table's row of the same key beside them.

        frame: of polars, pandas, pyarrow, or a dict of columns; the result is of the same kind. on: the
        frame's column of keys, or a list of them; None: those called as the table's key columns. how:
        ``"left"`` keeps rows without a counterpart, with cells that are missing, ``"inner"`` leaves them out.
        columns: those of the table that are wanted. suffix: behind names that the frame has, too.

        InvalidType: that is no frame, or its keys are of another type. InvalidArgument: too few columns of keys.
        KeyNotFound: the frame has no column that is called so."""

    def keys(self) -> Iterator[Any]:
        """Keys one by one, in their order."""

    def scan(self, start: Any=None, stop: Any=None, *, prefix: Any=None, reverse: bool=False, columns: Optional[Sequence[str]]=None, batch_rows: int=0) -> Scan:
        """The rows from ``start`` on that are below ``stop`` in the order of keys, as Rows of many at a time.

        Keys of several columns take tuples, also of the first columns alone. prefix: of strings, bytes and such
        tuples, or of a prefix table one with all that is inside it. reverse: descending. columns: those of
        the values that are wanted. The scan shows the table as it was when it began."""

class Cursor:
    """
    Rows one at a time, in either direction from any key, as the table was when the cursor was made. What moves it returns whether it is at a row then, as `valid`: at first it is at none, nor behind either end. Iteration yields pairs of key and value from the row that it is at, or from the first one where it was not moved yet, and moves it along.
    """

    def seek(self, key: Any) -> bool:
        """Moves to the first row whose key is not smaller."""

    def seek_for_previous(self, key: Any) -> bool:
        """Moves to the last row whose key is not greater."""

    def seek_to_first(self) -> bool:
        """Moves to the first row of the range."""

    def seek_to_last(self) -> bool:
        """Moves to the last row of the range."""

    def next(self) -> bool:
        """Moves to the next row. Where it is at none, nothing happens."""

    def previous(self) -> bool:
        """Moves to the row before. Where it is at none, nothing happens."""

    @property
    def valid(self) -> bool:
        """Whether it is at a row."""

    @property
    def key(self) -> Any:
        """The row's key. InvalidArgument: it is at none."""

    @property
    def value(self) -> Any:
        """The row's value, as table[key] has it. InvalidArgument: it is at none."""

    def __iter__(self) -> Cursor: ...

    def __next__(self) -> Tuple[Any, Any]: ...

    def __enter__(self) -> Cursor: ...

    def __exit__(self, type: Optional[_Class[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]) -> None: ...

    def close(self) -> None:
        """Gives up what it reads. Whatever moves it raises Closed from then on."""

class Snapshot:
    """The database as it was at one moment."""

    def table(self, name: object) -> Table:
        """The table of a name as it was then, for reading."""

    def __getitem__(self, arg: object, /) -> Table: ...

    def __contains__(self, name: object) -> bool:
        """Whether there was a table of that name."""

class Database:
    """A database that is open. Any thread may use it."""

    @property
    def path(self) -> object: ...

    @property
    def read_only(self) -> bool: ...

    @property
    def options(self) -> Dict[str, Any]: ...

    def close(self) -> None:
        """Makes everything durable and ends. What was read stays valid."""

    def snapshot(self) -> Snapshot:
        """The database as it is now, for reads that belong together."""

    def drop(self, name: object) -> None:
        """Drops a table. Snapshots that were taken before still have it."""

    def rename(self, name: object, new_name: object) -> None:
        """
        Gives a table another name. NotFound: there is none. AlreadyExists: another one has it.
        """

    def sync(self) -> None:
        """Makes all that was committed survive a loss of power."""

    def refresh(self) -> None:
        """
        Of a database that is read_only: what is read from now on is what another process has
        committed by now. Snapshots that are there stay as they are. Unavailable: call it again.
        """

    def compact(self) -> None:
        """
        Merges the runs of each table into one. Ctrl-C: tables that were merged before stay so, and of others nothing has changed.
        """

    def calibrate(self) -> None:
        """
        Measures what reads of memory cost here, and plans the trees of new segments by it.
        """

    def verify(self) -> None:
        """Reads every byte and checks it. Corruption: the first that is damaged."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""

    @property
    def backend(self) -> str:
        """What executes batches."""

    def statistics(self) -> List[Dict[str, Any]]:
        """What each table has, as a list of dicts."""

    def __contains__(self, name: object) -> bool: ...

    def __enter__(self) -> Database: ...

    def __exit__(self, type: Optional[_Class[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]) -> None: ...

    def __getitem__(self, name: str) -> Table: ...

    def __iter__(self) -> Iterator[str]: ...

    def __reduce__(self) -> Tuple[Any, ...]: ...

    def __repr__(self) -> str: ...

    def adopt(self, table: Union[str, Table], databases: Union[_Path, Iterable[_Path]], *, progress: Optional[Callable[[float], Any]]=None) -> int:
        """Makes the rows that other databases have in their table of this name a part of this one, in one commit.

        For a load that several processes have carried out, each into a database of its own and each with a range of
        keys: their files are copied and checked, and neither sorted nor built again. The rows are newer than all that
        is there, and the databases stay as they are. Returns how many rows they had. progress: called with a share
        from 0 to 1; an exception of it or Ctrl-C: nothing is adopted.

        InvalidArgument, naming the database: a table of other columns or options, rows that are not in segments, or
        that are erased (compact() and close() it first), ranges of keys that overlap. NotFound. Corruption: a file is
        damaged."""

    def backup(self, directory: _Path, *, progress: Optional[Callable[[float], Any]]=None) -> Dict[str, int]:
        """Brings the backup in a directory up to date, or makes it: copies and checks what it does not have.

        As checkpoint(); one that ended early is gone on with by the next call, and the one before stays whole until
        then. restore() makes a database of it. InvalidArgument: it is the backup of another database, or the
        directory has other files. Corruption: a file is damaged. Locked: another backup goes on there."""

    def checkpoint(self, directory: _Path, *, progress: Optional[Callable[[float], Any]]=None) -> Dict[str, int]:
        """Makes a database of its own in a new directory, of all that was committed, at once: its files are links.

        Returns how many files and bytes it has, and how many were copied and linked. progress: called with a share
        from 0 to 1. An exception of it or Ctrl-C: nothing is left of it. AlreadyExists: the directory is there."""

    def counters(self, name: str, type: Any=None, *, key: Any=None, wrap: bool=False) -> Table:
        """A table of numbers, which add() adds to: i32, i64, f32 or f64.

        key: as of table(); None: bytes. wrap: integers that do not fit wrap around; else InvalidArgument, and
        nothing is added."""

    def damage(self) -> List[Dict[str, Any]]:
        """All that is damaged of the files, where verify() raises for the first: reads every byte and checks it.

        A dict for each part of a file: "file", "section", "offset", "bytes", "what", "table", "rows" that need it at
        most, whose keys lie from "first_key" to "last_key" (bytes as they are stored; None: no bound), and "text", all
        of it as a sentence. None of them: an empty list. Ctrl-C ends it."""

    def dedup(self, name: str, words: int, *, compressed: bool=False, durability: Optional[str]=None, threads: int=0) -> Dedup:
        """Numbers 0, 1, 2, ... for vectors of 1 to 64 words of 32 bits, kept in the table of a name.

        compressed: fewer bytes on the disk where words are small, alike, or of few values; for large batches.
        It is chosen when the table is made. durability: of each call that puts something: ``"sync"``,
        ``"flush"`` or ``"none"``; None: that of the database. threads: 0: one for each core. Those of one table
        share what they know, and the durability and threads of the first one.

        InvalidArgument: the table has other rows than these. ResourceExhausted: they do not fit in memory."""

    def load(self, source: Union[str, 'os.PathLike[str]', Any, Iterable[Any]], table: str, key: Any=None, *, progress: Union[bool, Callable[[float], None]]=False, replace: bool=False) -> Table:
        """Loads a file or frames into a table, in one transaction: all of it is there afterwards, or nothing.

        source: the path of a Parquet, Arrow, CSV or JSON file, which pyarrow reads, a frame, or an iterable of
        frames. table: its name; it is made where it is missing, with the types of the first frame. key: the
        name of the key's column, or a list of names; None: the first column. replace: rows that are there go
        with the same commit, and so does a table with other columns, for which a new one is made. progress:
        True: a bar of tqdm where that is installed, or a function that is called with a share from 0 to 1.
        InvalidArgument: pyarrow does not understand the file, or a column has a type or a name that no table's
        has. Corruption: it is damaged. OSError: the system cannot read it."""

    def map_weights(self, mapping: Union[str, Table], sources: Any, weights: Any, into: Optional[np.ndarray]=None, *, names: bool=False, targets: int=0, unmapped: str='count', reproducible: bool=False) -> np.ndarray:
        """The sums of the weights of sources by target: plan() and its map() at once.

        weights: of shape (sources,), of int32, int64, float32 or float64. The sums are of shape (targets,): into,
        or a new array."""

    def metrics(self) -> Dict[str, Any]:
        """What was done since the database was opened, and its state: dicts "operations", "work" and "state".

        Their names, and what each is, are those of docs/monitoring.md; of tables statistics() tells."""

    def plan(self, mapping: Union[str, Table], sources: Any=None, *, names: bool=False, targets: int=0, unmapped: str='count') -> Plan:
        """A plan to add weights of sources up by the targets that a mapping table has for them.

        sources: a column of keys, of which any may come several times; None: all keys in their order. names:
        the table's values are names of targets, not their numbers. targets: how many there are; 0: one more
        than the largest. unmapped: whether sources without a target are counted (``"count"``) or an error."""

    def prefixes(self, name: str, bits: Optional[int]=None, values: Any=None, *, text: bool=False) -> Table:
        """A table of prefixes of addresses of so many bits (32: IPv4, 128: IPv6), which match() looks up.

        values: as of table(). text: prefixes are strings of any length, and so is what match() looks up."""

    def prometheus(self) -> str:
        """The metrics as Prometheus reads them, of type ``text/plain; version=0.0.4``."""

    def retry(self, change: Callable[[Transaction], Any], *, limit: int=32) -> Any:
        """Calls change(t) with a transaction that reads, commits that, and returns what change has returned.

        Where there is a Conflict it is done again with another transaction, limit times in all; then the last
        Conflict is raised, as is every other exception at once."""

    def table(self, name: str, key: Any=None, values: Any=None, *, share_values: bool=False, expires: Optional[str]=None, ttl: Union[float, datetime.timedelta, None]=None, create: bool=True) -> Table:
        """The table of a name, which is made where it is missing.

        key: a type (``sd.i64``), a name and a type (``("id", sd.i64)``), or a list of such pairs for a key of
        several columns. values: a dict of names and types, or one type for tables whose values are one cell
        without a name. Without both, the table as it is there, or one of bytes. share_values: equal values are
        stored once. create: False: NotFound where it is missing.

        expires: the column, a timestamp, that says when a row ends: from then on reads do not find it, and it
        leaves the files when they are compacted; None in it: it does not end. ttl: rows that are put with None
        there, or without the column, end so long after that, in seconds or as a timedelta (also NumPy's, of weeks
        or a shorter unit); the column's type is optional then (``sd.optional(sd.timestamp_us)``).

        InvalidArgument: it is there with other columns. InvalidType: what is given is no type."""

    def tables(self) -> List[str]:
        """The names of all tables."""

    def transaction(self, *, reads: bool=False) -> Transaction:
        """Changes of several tables that are there as a whole or not at all. One thread may use it.

        reads: it also reads, with get(), contains(), scan(), cursor(), lower_bound(), count() and the like, what was
        there when it began and its own changes, and takes put(), delete() and delete_range(). Its commit raises
        Conflict, and nothing of it is there, where others have changed what it has read; so it is as if it had been
        alone. See retry()."""

class Transaction:
    """
    Changes that are committed together at the end of a `with` block, and dropped where it ends with an exception.
    """

    def put(self, table: Table, data: Any, values: Any=None) -> None:
        """As Table.put()."""

    def put_if_absent(self, table: Table, data: Any, values: Any=None) -> None:
        """
        As Table.put_if_absent(), after all other changes of the transaction, in whatever order they are made: a key that these put or add to is there, one that they delete is not. was_new() tells which rows were put.
        """

    def add(self, table: Table, keys: Any, deltas: Any=1) -> None:
        """As Table.add()."""

    def delete(self, table: Table, keys: Any) -> None:
        """As Table.delete()."""

    def delete_range(self, table: Table, start: Any=None, stop: Any=None) -> None:
        """As Table.delete_range()."""

    def get(self, table: Table, keys: Any, default: object | None=None, columns: Optional[Sequence[str]]=None) -> Any:
        """
        As Table.get(), with the transaction's own changes. What it has got must not change until the commit: else that raises Conflict.
        """

    def contains(self, table: Table, keys: Any) -> Union[bool, NDArray[np.bool_]]:
        """
        Whether the key is there, or as Table.contains(); get() says what that means for the commit.
        """

    def lower_bound(self, table: Table, keys: Any) -> Rows:
        """
        As Table.lower_bound(). What lies from each key up to the row that is found counts as read, also keys that are not there.
        """

    def upper_bound(self, table: Table, keys: Any) -> Rows:
        """As Table.upper_bound(). What counts as read is as of lower_bound()."""

    def previous(self, table: Table, keys: Any) -> Rows:
        """
        As Table.previous(). What lies from the row that is found up to the key counts as read.
        """

    def count(self, table: Table, start: Any=None, stop: Any=None) -> int:
        """As Table.count(). All of the range counts as read."""

    def counts(self, table: Table, starts: Any, stops: Any) -> NDArray[np.uint64]:
        """As Table.counts(). The ranges count as read."""

    def cursor(self, table: Table, start: Any=None, stop: Any=None, *, prefix: Any=None) -> Cursor:
        """
        As Table.cursor(), with the transaction's changes so far. What it passes over counts as read, also keys that are not there. When the transaction has ended, whatever moves it raises Closed.
        """

    def __enter__(self) -> Transaction: ...

    def __exit__(self, type: Optional[_Class[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]) -> None: ...

    def commit(self, *, durability: Optional[_Durability]=None, progress: Optional[_Progress]=None) -> None:
        """
        Makes the changes visible and durable, and ends. durability: 'sync', 'flush' or 'none'; None: that of the database. progress: called with a share from 0 to 1. An exception of it or Ctrl-C: nothing has changed.
        """

    def abort(self) -> None:
        """Drops the changes, and ends."""

    def was_new(self) -> NDArray[np.bool_]:
        """
        After the commit: which rows of put_if_absent() were put, as an array of booleans.
        """

    @property
    def staged_rows(self) -> int:
        """
        Rows, keys that are deleted and deltas so far. Closed: the transaction has ended.
        """

    def scan(self, table: Table, start: Any=None, stop: Any=None, *, prefix: Any=None, reverse: bool=False, columns: Optional[Sequence[str]]=None, batch_rows: int=0) -> Scan:
        """As Table.scan(), with the transaction's changes so far. What it has come past counts as read, at its end
        all of the range, also keys that are not there."""

class Scan:
    """The rows of a range in the order of their keys, batch by batch."""

    def __iter__(self) -> Iterator[Rows]: ...

    def __next__(self) -> Rows: ...

class Dedup:
    """
    Numbers for vectors of 32-bit words, kept in a database: 0, 1, 2, ... in the order of first occurrence.
    """

    def find_or_put(self, vectors: Any) -> Tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """
        The id of each vector, and which of them came for the first time: arrays of uint64 and of booleans, one for each row of `vectors`, which is of shape (n, words) and of 32-bit integers, or of shape (n,) where a vector is one word, an integer of 64 bits or bytes. InvalidType: they are of another width. ResourceExhausted: they do not fit in memory.
        """

    def find(self, vectors: Any) -> NDArray[np.uint64]:
        """The id of each vector, or `absent` (2**64 - 1), as an array of uint64."""

    def get(self, ids: Any) -> NDArray[np.uint32]:
        """
        The vectors of ids, as an array of uint32 of shape (n, words). NotFound: an id that no vector has.
        """

    def __len__(self) -> int:
        """How many vectors differ."""

    @property
    def words(self) -> int:
        """32-bit words of each vector."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of all memory of the set."""
    absent: Final = 18446744073709551615

class VectorSet:
    """
    A set of vectors of 1 to 64 words of 32 bits in memory, of the host or of a device. form: 'dense': ids are 0, 1, 2, ... in the order of first occurrence; 'slots': the fewest accesses to memory, for 1, 2 and 4 words; 'compressed': the least memory where vectors differ in few words. capacity: vectors that it has room for from the start. backend: 'host', 'cuda' or 'automatic'. threads: 0: one for each core. Calls from several threads wait for each other.
    """

    def __init__(self, words: int, *, form: Literal['dense', 'slots', 'compressed']='dense', capacity: int=0, backend: Literal['automatic', 'host', 'cuda']='host', threads: int=0) -> None: ...

    def find_or_put(self, vectors: Any) -> Tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """
        The id of each vector, and which of them came for the first time: arrays of uint64 and of booleans, one for each row of `vectors`, which is of shape (n, words) and of 32-bit integers, or of shape (n,) where a vector is one word, an integer of 64 bits or bytes. InvalidType: they are of another width. ResourceExhausted: they do not fit in memory.
        """

    def find(self, vectors: Any) -> NDArray[np.uint64]:
        """The id of each vector, or `absent` (2**64 - 1), as an array of uint64."""

    def get(self, ids: Any) -> NDArray[np.uint32]:
        """
        The vectors of ids, as an array of uint32 of shape (n, words). NotFound: an id that no vector has.
        """

    def __len__(self) -> int:
        """How many vectors differ."""

    @property
    def words(self) -> int:
        """32-bit words of each vector."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of all memory of the set."""
    absent: Final = 18446744073709551615

    def clear(self) -> None:
        """Forgets all vectors; ids begin anew."""

    @property
    def id_limit(self) -> int:
        """All ids are smaller."""

class RowSet:
    """Which byte strings or texts came before: a set in memory."""

    def __init__(self, threads: int=0) -> None: ...

    def put(self, rows: Any, *, text: bool=False) -> NDArray[np.bool_]:
        """
        Which rows came for the first time, as an array of booleans. text: they are strings.
        """

    def __len__(self) -> int:
        """How many rows differ."""

class Plan:
    """
    Where each of many sources goes, as a mapping table said when this was made: map() adds weights of the sources up by their targets, again and again.
    """

    def map(self, weights: Any, into: Optional[NDArray[Any]]=None, *, reproducible: bool=False) -> NDArray[Any]:
        """
        Adds the weight of each source to its target and returns the sums: `into`, or a new array. weights: of shape (sources,), of int32, int64, float32 or float64; into: of shape (targets,). reproducible: floats have the same bits on every run and machine.
        """

    @property
    def sources(self) -> int:
        """How many weights map() takes."""

    @property
    def targets(self) -> int:
        """How many sums map() returns."""

    @property
    def unmapped(self) -> int:
        """How many sources have no target."""

    @property
    def target_names(self) -> List[Any]:
        """With names=True the name of each target, ascending."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of all memory of the plan."""

    @property
    def backend(self) -> str:
        """What executes map()."""

class KeyPartition:
    """
    Which of several parts each key of a table belongs to. key: as of Database.table(). parts: how many there are, 1 to 65536. splitters: None: by the hash of a key, part = (hash >> 32) * parts >> 32, where the hash is XXH3 (64 bits, seed 0) of the key's bytes as a table keeps them; or one bytes object fewer than parts, as sample() gives them, ascending: part i has the keys from splitter i - 1 on that are below splitter i.
    """

    def __init__(self, key: Any, parts: int, splitters: Optional[List[bytes]]=None) -> None: ...

    @property
    def parts(self) -> int:
        """How many parts there are."""

    def order(self, keys: Any) -> Tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """
        The rows of part 0, then those of part 1, and so on, each in the order they are given in; where each part's rows end; and where each row is among the first of these. keys: a column of keys, or a frame that has their columns.
        """

    def sample(self, keys: Any, share: float=1.0) -> List[bytes]:
        """
        The bytes of the keys whose hash is in the lowest share of all hashes: of equal keys all or none, wherever they are, so that samples together are one of the keys that differ.
        """
