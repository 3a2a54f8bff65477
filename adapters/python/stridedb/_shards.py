"""Shards of a table: databases that each have a part of its keys. How they are built, opened, asked and scanned.

A `spec` says what a table is: its kind, and the names and types of its columns, as manifests have them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import _types
from ._core import Database, Dedup, KeyPartition, Table
from ._database import open as open_database
from ._load import _columns
from ._manifest import Entry, database_checksum, sync_directory
from .errors import AlreadyExists, Corruption, InvalidArgument, InvalidType, NotFound, StrideError

Spec = Dict[str, Any]


def make_spec(schema: pa.Schema, kind: Dict[str, Any], key: Any, types: Dict[str, Any]) -> Spec:
    """The spec of a table that has the columns of a frame. types: of those that are to have others."""
    found = _columns(schema.empty_table(), key)
    keys, values = dict(found["key"]), dict(found["values"] or {})
    for name, type in types.items():
        if name not in schema.names:
            raise InvalidArgument(f"there is no column {name!r}", remedy=f"the columns are: {', '.join(schema.names)}")
        (keys if name in keys else values)[name] = type
    if kind["kind"] == "prefixes":
        keys = {name: _types.str_ for name in keys}
    key_texts, value_texts = ([[name, str(type)] for name, type in side.items()] for side in (keys, values))
    return {**kind, "key": key_texts, "values": value_texts}


def check_goes_on(table: str, old: Entry, spec: Spec, shards: Optional[int]) -> None:
    """InvalidArgument: new rows of a spec can't be put to a table as it is."""

    def names(of: Spec) -> Tuple[Any, ...]:
        return of["kind"], [name for name, _ in of["key"]], sorted(name for name, _ in of["values"])

    def text(of: Spec) -> str:
        return ", ".join([f"{name} {type} key" for name, type in of["key"]] + [f"{n} {t}" for n, t in of["values"]])

    if names(old) != names(spec):
        raise InvalidArgument(f"table {table!r} is there, of kind {old['kind']!r} with the columns {text(old)}",
                              remedy=f"the dataset has {text(spec)}; rename them, or use mode='replace'")
    if shards not in (None, len(old["shards"])):
        raise InvalidArgument(f"table {table!r} has {len(old['shards'])} shards", remedy="use mode='replace'")


def options_of(num_cpus: float) -> Dict[str, Any]:
    """How a database is opened by one of several workers of a machine, which has so many of its cores."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
    share = min(1.0, max(1.0, num_cpus) / (os.cpu_count() or 1))
    return {"threads": max(1, int(num_cpus)), "memory_limit": int(memory * share)}


def key_of(spec: Spec) -> List[Tuple[str, Any]]:
    return [(name, _types.Type(text)) for name, text in spec["key"]]


def partition_of(entry: Entry) -> KeyPartition:
    splitters = entry["splitters"]
    bounds = None if splitters is None else [bytes.fromhex(s) for s in splitters]
    return KeyPartition(key_of(entry), len(entry["shards"]), bounds)


def key_frame(block: pa.Table, spec: Spec) -> pa.Table:
    return block.select([name for name, _ in spec["key"]])


def split(block: pa.Table, number: int, entry: Entry) -> List[Optional[pa.Table]]:
    """The rows of a block that go to each shard, in their order; None: there are none."""
    shards, names = len(entry["shards"]), [name for name, _ in entry["key"] + entry["values"]]
    if len(block) == 0:
        return [None] * shards
    if set(block.schema.names) != set(names):
        raise InvalidArgument(
            f"block {number} of the dataset has the columns {', '.join(block.schema.names)}, "
            f"and the table has {', '.join(names)}", remedy="give all blocks the same columns",
        )
    if shards == 1:
        return [block]
    order, ends = partition_of(entry).order(key_frame(block, entry))
    parts = block.take(pa.array(order))
    begins = np.concatenate([ends[:1] * 0, ends[:-1]])
    return [parts.slice(int(a), int(b - a)) if a < b else None for a, b in zip(begins, ends)]


class Attempt:
    """A new directory for a shard. What is left of it where the attempt fails is removed."""

    def __init__(self, path: str, job: str, shard: int) -> None:
        self.path, self.shard = path, shard
        self.name = f"shards/{job}/{shard}-{uuid.uuid4().hex[:12]}"
        self.directory = os.path.join(path, self.name)

    def __enter__(self) -> "Attempt":
        os.makedirs(os.path.dirname(self.directory), exist_ok=True)
        return self

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        if type is not None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def open(self, before: Optional[str], **options: Any) -> Database:
        """A database to build the shard in. before: the directory of one that it begins as."""
        if before is None:
            return open_database(self.directory, "x", background=False, **options)
        with open_database(os.path.join(self.path, before), "r") as old:
            old.checkpoint(self.directory)
        return open_database(self.directory, "w", background=False, **options)

    def finished(self, rows: int, given: int, bounds: Sequence[bytes] = ()) -> Dict[str, Any]:
        """What the manifest is to say of the shard, whose database is closed. The names above it are durable then."""
        above = self.directory
        while above != self.path:
            above = os.path.dirname(above)
            sync_directory(above)
        first, last = (bounds[0].hex(), bounds[-1].hex()) if bounds else (None, None)
        return {
            "shard": self.shard, "directory": self.name, "rows": rows, "given": given, "first": first, "last": last,
            "bytes": sum(e.stat().st_size for e in os.scandir(self.directory)),
            "checksum": database_checksum(self.directory),
        }


def build(
    attempt: Attempt, table: str, spec: Spec, parts: Iterable[pa.Table], before: Optional[str], on_equal: str,
    **options: Any,
) -> Dict[str, Any]:
    """Builds a shard of parts, in their order, in one transaction, and returns what the manifest is to say of it."""
    given = 0
    with attempt.open(before, **options) as db:
        t = _make_table(db, table, spec)
        with db.transaction() as transaction:
            for part in parts:
                given += len(part)
                if spec["kind"] == "counters":
                    transaction.add(t, key_frame(part, spec), part["value"])
                elif on_equal == "error":
                    transaction.put_if_absent(t, part)
                else:
                    transaction.put(t, part)
        if on_equal == "error" and given and not transaction.was_new().all():
            raise AlreadyExists(f"shard {attempt.shard}: a key of table {table!r} comes twice",
                                remedy="leave such rows out, or use on_equal='last'")
        rows, bounds = len(t), _first_and_last(t, spec)
    return attempt.finished(rows, given, bounds)


def _make_table(db: Database, name: str, spec: Spec) -> Table:
    values = {n: _types.Type(text) for n, text in spec["values"]} or None
    if spec["kind"] == "counters":
        return db.counters(name, _types.Type(spec["values"][0][1]), key=key_of(spec))
    if spec["kind"] == "prefixes":
        return db.prefixes(name, spec["bits"], values, text=spec["bits"] is None)
    return db.table(name, key=key_of(spec), values=values)


def _first_and_last(table: Table, spec: Spec) -> List[bytes]:
    if spec["kind"] == "prefixes":
        return []
    with table.cursor() as cursor:
        keys = [cursor.key] if cursor.seek_to_first() else []
        keys += [cursor.key] if cursor.seek_to_last() else []
    return KeyPartition(key_of(spec), 1).sample(keys) if keys else []


def number_vectors(
    attempt: Attempt, table: str, words: int, parts: Iterable[np.ndarray], before: Optional[str], **options: Any
) -> Tuple[Dict[str, Any], List[Tuple[np.ndarray, np.ndarray]]]:
    """Builds a shard of a set, and returns what the manifest is to say of it, and ids and what is new of each part."""
    with attempt.open(before, **options) as db:
        numbers: Dedup = db.dedup(table, words)
        made = [numbers.find_or_put(part) for part in parts]
        rows = len(numbers)
    return attempt.finished(rows, sum(len(ids) for ids, _ in made)), made


def open_shard(path: str, table: str, entry: Entry, number: int, **options: Any) -> Table:
    """A shard's table, for reading. NotFound, Corruption: the shard is not there, or another one than was committed."""
    shard = entry["shards"][number]
    directory = os.path.join(path, shard["directory"])
    if entry["kind"] == "dedup":
        raise InvalidArgument(f"table {table!r} is a set of vectors", remedy="use dedup()")
    if not os.path.isdir(directory):
        raise NotFound(f"shard {number} of table {table!r} is not there", file=directory,
                       remedy="make it visible to all nodes, restore it, or write the table again")
    if database_checksum(directory) != shard["checksum"]:
        raise Corruption(f"shard {number} of table {table!r} is not the one that job {entry['job']!r} has committed",
                         file=directory, remedy="restore it, or write the table again; never write to a shard")
    return open_database(directory, "r", **options).table(table, create=False)


Answer = Tuple[pa.Table, np.ndarray]  # the values' columns of as many rows as there are keys, and which were found


def answer_of(table: Table, keys: pa.Table, columns: Optional[Sequence[str]]) -> Answer:
    rows = table.match(keys.column(0), columns=columns) if table.address_bits else table.get(keys, columns=columns)
    answer = pa.table(rows) if rows.columns else pa.table({})
    return answer.cast(pa.schema([field.with_nullable(True) for field in answer.schema])), rows.found


class Answerer:
    """A shard that answers; an actor of its own, which is made anew where it dies."""

    def __init__(self, path: str, table: str, entry: Entry, number: int, options: Dict[str, Any]) -> None:
        self.table = open_shard(path, table, entry, number, **options)

    def answer(self, keys: pa.Table, columns: Optional[Sequence[str]]) -> Answer:
        return answer_of(self.table, keys, columns)


def ask_shards(
    partition: KeyPartition, keys: pa.Table, ask: Callable[[List[Tuple[int, pa.Table]]], List[Answer]]
) -> Answer:
    """The answers of the keys' shards, in the order of the keys. ask: is given shards and their keys, and answers."""
    if partition.parts == 1 or len(keys) == 0:
        return ask([(0, keys)])[0]
    order, ends = partition.order(keys)
    begins = np.concatenate([ends[:1] * 0, ends[:-1]])
    sorted_keys = keys.take(pa.array(order))
    answers = ask([(i, sorted_keys.slice(int(a), int(b - a))) for i, (a, b) in enumerate(zip(begins, ends)) if a < b])
    back = np.empty(len(order), np.uint64)
    back[order] = np.arange(len(order), dtype=np.uint64)
    table = pa.concat_tables([answer for answer, _ in answers]).combine_chunks()
    return table.take(pa.array(back)) if table.num_columns else table, np.concatenate([f for _, f in answers])[back]


Bounds = Tuple[Any, Any]  # the lowest and the highest value that the first key column may have; None: any
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def bounds_of(predicate: Any, column: str) -> Bounds:
    """What an expression of Ray Data says of a column: comparisons with constants, and `&` of such."""
    op = getattr(getattr(predicate, "op", None), "value", None)
    left, right = getattr(predicate, "left", None), getattr(predicate, "right", None)
    if op == "and":
        lows, highs = zip(bounds_of(left, column), bounds_of(right, column))
        present = [[v for v in values if v is not None] for values in (lows, highs)]
        return max(present[0], default=None), min(present[1], default=None)
    if hasattr(left, "value"):
        left, right, op = right, left, _TURNED.get(op, op)
    if getattr(left, "name", None) != column or not hasattr(right, "value"):
        return None, None
    return (right.value if op in ("gt", "ge", "eq") else None), (right.value if op in ("lt", "le", "eq") else None)


def shards_within(entry: Entry, bounds: Bounds) -> List[int]:
    """The shards that may have rows between bounds, both included; where these are no keys of the table, all."""
    partition = KeyPartition(key_of(entry), 1)
    try:
        low, high = (None if bound is None else partition.sample([bound])[0].hex() for bound in bounds)
    except StrideError:
        low = high = None

    def may_have(shard: Dict[str, Any]) -> bool:
        if shard["first"] is None:
            return shard["rows"] > 0
        return (low is None or shard["last"] >= low) and (high is None or shard["first"] <= high)

    return [i for i, shard in enumerate(entry["shards"]) if may_have(shard)]


def scan_shard(
    path: str, table: str, entry: Entry, number: int, columns: Optional[Sequence[str]], predicate: Any, bounds: Bounds
) -> Iterator[pa.Table]:
    """The rows between bounds for which an expression of Ray Data holds, in the order of keys, batch by batch."""
    shard, names = open_shard(path, table, entry, number), [name for name, _ in entry["key"]]
    low = bounds[0] if len(names) == 1 or bounds[0] is None else (bounds[0],)
    try:
        scan = shard.scan(low, columns=columns)
    except StrideError:  # it is no key of the table; the predicate says what that means
        scan = shard.scan(columns=columns)
    for rows in scan:
        batch = pa.table(rows)
        past = bounds[1] is not None and pc.greater(batch[names[0]][-1], pa.scalar(bounds[1])).as_py()
        yield batch if predicate is None else batch.filter(predicate.to_pyarrow())
        if past:
            return


def vectors_of(block: pa.Table, arrays: Dict[str, np.ndarray]) -> np.ndarray:
    """A row of 32-bit words for each row of some of a block's columns, which are given as arrays, too: of numbers, or
    of lists of numbers of one length."""
    words, rows = [], len(block)
    for name, array in arrays.items():
        if block[name].null_count:
            raise InvalidArgument(f"column {name!r} has nulls, and vectors have none", remedy="leave such rows out")
        array = np.stack(list(array)) if array.dtype == object and rows else array
        if array.dtype.kind not in "iuf" or array.dtype.itemsize % 4:
            raise InvalidType(f"column {name!r} is of {array.dtype}",
                              remedy="vectors are numbers of 32 or 64 bits, or lists of such of one length")
        words.append(np.ascontiguousarray(array).reshape(rows, -1).view(np.uint32))
    return np.concatenate(words, axis=1)


@contextlib.contextmanager
def errors_as_they_are() -> Iterator[None]:
    """An exception of this package in a worker is raised as it is, and not as what Ray makes of it."""
    try:
        yield
    except Exception as error:
        found = _stride_error_in(error)
        if found is None or found is error:
            raise
        raise found from error


def _stride_error_in(error: Optional[BaseException]) -> Optional[StrideError]:
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, StrideError) and type(error).__module__ == StrideError.__module__:
            return error
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__
    return None
