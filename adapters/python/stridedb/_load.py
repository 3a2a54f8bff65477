"""Loads files into tables."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from itertools import chain, count
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _types
from ._core import Database, Table, Transaction
from .errors import Corruption, InvalidArgument, InvalidType, StrideError, Unavailable


def _pyarrow(what: str, otherwise: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise Unavailable(
            f"{what} is read by pyarrow, which is not installed", remedy=f"run pip install pyarrow, or {otherwise}"
        ) from None
    return pyarrow


def _batches(path: str) -> Iterator[Any]:
    """The record batches of a file, by the ending of its name."""
    pa = _pyarrow(repr(path), "give load() an iterable of frames")
    try:
        yield from _read(path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's, which names the file
        kind = Corruption if isinstance(error, OSError) else InvalidArgument
        raise kind(
            f"the file cannot be read: {error}",
            file=path,
            remedy="mend it, or read it in another way and give load() the frames",
        ) from error


def _read(path: str) -> Iterator[Any]:
    name = Path(path).name.lower()
    for packed in (".gz", ".zst", ".bz2"):
        name = name[: -len(packed)] if name.endswith(packed) else name
    if name.endswith((".parquet", ".pq")):
        import pyarrow.parquet as pq

        yield from pq.ParquetFile(path).iter_batches(1 << 20)
    elif name.endswith((".arrow", ".feather", ".ipc")):
        import pyarrow as pa

        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)
    elif name.endswith((".csv", ".tsv", ".txt")):
        import pyarrow.csv as csv

        options = csv.ParseOptions(delimiter="\t" if name.endswith(".tsv") else ",", newlines_in_values=True)
        yield from csv.open_csv(path, parse_options=options)
    elif name.endswith((".json", ".jsonl", ".ndjson")):
        import pyarrow.json as json

        yield from json.read_json(path).to_batches(1 << 20)
    else:
        raise InvalidArgument(
            f"{path!r} has an ending that says no format",
            remedy="the endings .parquet, .arrow, .csv, .tsv, .jsonl, also with .gz behind, do; or give frames",
        )


def _type_of(field: Any) -> Any:
    """The type of a column for one of pyarrow's."""
    import pyarrow as pa

    t = pa.types
    kind = field.type
    if t.is_dictionary(kind):
        kind = kind.value_type
    plain = {
        "bool": _types.bool_, "int8": _types.i8, "int16": _types.i16, "int32": _types.i32, "int64": _types.i64,
        "uint8": _types.u8, "uint16": _types.u16, "uint32": _types.u32, "uint64": _types.u64,
        "float": _types.f32, "double": _types.f64, "date32[day]": _types.date, "date64[ms]": _types.date,
        "null": _types.str_,
    }
    if str(kind) in plain:
        return plain[str(kind)]
    if t.is_timestamp(kind):
        return _types.Type(f"timestamp[{kind.unit}]")
    if t.is_string(kind) or t.is_large_string(kind) or str(kind) == "string_view":
        return _types.str_
    if t.is_fixed_size_binary(kind):
        return _types.fixed_bytes(kind.byte_width)
    if t.is_binary(kind) or t.is_large_binary(kind) or str(kind) == "binary_view":
        return _types.bytes_
    if t.is_fixed_size_list(kind):
        return _types.vector(_type_of(kind.value_field), kind.list_size)
    raise InvalidArgument(
        f"column {field.name!r} is of type {kind}, which no column of a table has",
        remedy="cast it or leave it out, and give load() the frames",
    )


def load(
    self: Database,
    source: Union[str, "os.PathLike[str]", Any, Iterable[Any]],
    table: str,
    key: Any = None,
    *,
    progress: Union[bool, Callable[[float], None]] = False,
    replace: bool = False,
) -> Table:
    """Loads a file or frames into a table, in one transaction: all of it is there afterwards, or nothing.

    source: the path of a Parquet, Arrow, CSV or JSON file, which pyarrow reads, a frame, or an iterable of
    frames. table: its name; it is made where it is missing, with the types of the first frame. key: the
    name of the key's column, or a list of names; None: the first column. replace: rows that are there go
    with the same commit, and so does a table with other columns, for which a new one is made. progress:
    True: a bar of tqdm where that is installed, or a function that is called with a share from 0 to 1.
    InvalidArgument: pyarrow does not understand the file, or a column has a type or a name that no table's
    has. Corruption: it is damaged. OSError: the system cannot read it.
    """
    is_path = isinstance(source, (str, os.PathLike))
    if is_path and not os.path.exists(source):
        raise FileNotFoundError(f"there is no file {os.fspath(source)!r}")
    if is_path and os.path.isdir(source):
        raise IsADirectoryError(f"{os.fspath(source)!r} is a directory, and no file")
    frames = _batches(os.fspath(source)) if is_path else _frames(source)
    with _Progress(progress, table) as report, self.transaction() as transaction:
        into, replaced, frames = _target(self, transaction, frames, table, key, replace)
        is_new = replace or table not in self
        for frame in frames:
            transaction.put(into, *_rows_to_put(into, frame, is_new))
            report.rows(_rows_of(frame))
        transaction.commit(progress=report.committing)
    if replaced is not None:
        try:
            self.drop(replaced)
        except StrideError as error:  # what was loaded is there all the same
            warnings.warn(f"what table {table!r} had is in table {replaced!r}, which could not be dropped: {error}")
    return self.table(table, create=False)


def _rows_to_put(into: Table, frame: Any, is_new: bool) -> Tuple[Any, ...]:
    """A frame, or, of keys alone that make a new table, the keys and empty values."""
    if not is_new or list(into.value_columns) != ["value"]:
        return (frame,)
    schema, keys = _arrow_schema(frame), list(into.key_columns)
    return keys_and_nothing(frame, keys) if sorted(schema.names) == sorted(keys) else (frame,)


def keys_and_nothing(frame: Any, keys: Sequence[str]) -> Tuple[Any, Any]:
    pa = _pyarrow("a table of keys alone", "give put() keys and values")
    rows = pa.table(frame).select(list(keys))
    return rows, pa.repeat(pa.scalar(b"", pa.binary()), len(rows))


def _target(
    self: Database, transaction: Transaction, frames: Iterator[Any], name: str, key: Any, replace: bool
) -> Tuple[Table, Optional[str], Iterable[Any]]:
    """The table that frames go to, the name that the one before gets where it is another one, and the frames.

    The first frame tells the columns of a table that is made.
    """
    there = self.table(name, create=False) if name in self else None
    if there is not None and (not replace or there.address_bits):
        if replace:
            transaction.delete_range(there)
        return there, None, frames
    first = next(frames, None)
    if first is None:
        raise InvalidArgument("there is nothing to load: no frame is given")
    columns = _columns(first, key)
    frames = chain([first], frames)
    if there is None:
        return transaction._create_table(name, columns["key"], columns["values"]), None, frames
    if _has_columns(there, columns):
        transaction.delete_range(there)
        return there, None, frames
    replaced = next(n for i in count() if (n := f"{name} (replaced {i})") not in self)
    transaction._rename_table(there, replaced)
    return transaction._create_table(name, columns["key"], columns["values"]), replaced, frames


def _has_columns(table: Table, columns: Dict[str, Any]) -> bool:
    """Whether these are the table's; cells that may be missing fit in columns without, as long as none is."""

    def plain(given: Iterable[Tuple[str, Any]]) -> List[Tuple[str, str]]:
        return [(name, str(type).rstrip("?")) for name, type in given]

    values = plain((columns["values"] or {}).items())
    there = plain(table.value_columns.items())
    return plain(table.key_columns.items()) == plain(columns["key"]) and there == (values or [("value", "bytes")])


def _frames(source: Any) -> Iterator[Any]:
    if isinstance(source, dict) or hasattr(source, "iloc"):
        return iter([source])
    if hasattr(source, "__arrow_c_stream__"):
        # A frame can be read again, a stream cannot.
        return iter([source]) if hasattr(source, "__len__") else _batches_of_stream(source)
    if hasattr(source, "__arrow_c_array__"):
        return iter([source])
    if isinstance(source, (str, bytes)) or not hasattr(source, "__iter__"):
        raise InvalidType(
            f"one {type(source).__name__} is given to load",
            remedy="give the path of a file, a frame, or an iterable of frames",
        )
    return chain.from_iterable(_frames(frame) for frame in source)


def _batches_of_stream(stream: Any) -> Iterator[Any]:
    pa = _pyarrow("a stream", "give load() an iterable of frames")
    return iter(stream if isinstance(stream, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(stream))


def _rows_of(frame: Any) -> int:
    return len(next(iter(frame.values()), ())) if isinstance(frame, dict) else len(frame)


def _arrow_schema(frame: Any) -> Any:
    pa = _pyarrow("what columns a frame has", "make the table first, with Database.table()")
    return frame.schema if isinstance(frame, (pa.Table, pa.RecordBatch)) else pa.table(frame).schema


def _columns(frame: Any, key: Any) -> Dict[str, Any]:
    """Names and types of a frame's columns: those of the key, in its order, and the others."""
    schema = _arrow_schema(frame)
    names = schema.names
    if not names:
        raise InvalidArgument("the first frame has no columns")
    keys = [names[0]] if key is None else [key] if isinstance(key, str) else list(key)
    twice = [n for n, times in Counter(names).items() if times > 1]
    if twice:
        raise InvalidArgument(f"there are two columns {twice[0]!r}", remedy="give one of them another name")
    missing = [k for k in keys if k not in names]
    if missing:
        raise InvalidArgument(
            f"there is no column {missing[0]!r} for the key", remedy=f"the columns are: {', '.join(names)}"
        )
    values = {n: _types.optional(_type_of(schema.field(n))) for n in names if n not in keys}
    return {"key": [(k, _type_of(schema.field(k))) for k in keys], "values": values or None}


class _Progress:
    def __init__(self, wanted: Union[bool, Callable[[float], None]], name: str) -> None:
        self._call = wanted if callable(wanted) else None
        self._bar: Any = None
        if wanted is True:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = tqdm(desc=name, unit=" rows", unit_scale=True)

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def rows(self, n: int) -> None:
        if self._bar is not None:
            self._bar.update(n)

    @property
    def committing(self) -> Optional[Callable[[float], None]]:
        if self._call is not None:
            return self._call
        if self._bar is None:
            return None
        return lambda share: self._bar.set_postfix_str(f"committing {share:.0%}")
