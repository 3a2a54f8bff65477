"""Shards of a table: databases that each have a part of its keys. How they are built, opened, asked and scanned.

A `spec` says what a table is: its kind, and the names and types of its columns, as manifests have them.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import _types
from ._core import Database, Dedup, KeyPartition, Table
from ._database import open as open_database
from ._load import _columns, keys_and_nothing
from ._manifest import Entry, check_shard, database_checksum, sync_directory
from .errors import AlreadyExists, InvalidArgument, InvalidType, StrideError

Spec = Dict[str, Any]
_PARALLEL_KEYS = 1 << 17  # fewer are asked as one part
_PROBED_ROWS = 4096  # of blocks, to see whether many rows have equal keys


def names_of(what: str, names: Optional[Sequence[str]], known: Sequence[str]) -> Optional[List[str]]:
    """A list of names of columns. InvalidArgument: it is none, a name comes twice, or is none of those known."""
    if names is None:
        return None
    if isinstance(names, (str, bytes)) or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(f"{what} is {names!r}", remedy="give a list of names")
    wrong = next((name for name in names if name not in known), None)
    if wrong is not None:
        raise InvalidArgument(f"{what}: there is no column {wrong!r}", remedy=f"the columns are: {', '.join(known)}")
    if len(set(names)) != len(names):
        raise InvalidArgument(f"{what} has a name twice: {', '.join(names)}", remedy="give each name once")
    return list(names)


def unify(schemas: Sequence[pa.Schema], rows: Sequence[int]) -> pa.Schema:
    """The schema that all blocks with rows can be cast to. InvalidArgument: there is none."""
    some = [i for i, n in enumerate(rows) if n] or [i for i, schema in enumerate(schemas) if schema.names][:1]
    if not some:
        raise InvalidArgument("the dataset has no columns", remedy="write a table that has rows")
    first = schemas[some[0]].names
    if len(set(first)) != len(first):
        raise InvalidArgument(f"the dataset has a name twice: {', '.join(first)}", remedy="rename a column")
    for i in some:
        if sorted(schemas[i].names) != sorted(first):
            raise InvalidArgument(
                f"block {i} of the dataset has the columns {', '.join(schemas[i].names)}, "
                f"and block {some[0]} has {', '.join(first)}", remedy="give all blocks the same columns",
            )
    try:
        return pa.unify_schemas(list(dict.fromkeys(_plain(schemas[i]) for i in some)), promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidArgument(f"the blocks of the dataset differ: {error}", remedy="cast the column") from None


def _plain(schema: pa.Schema) -> pa.Schema:
    """With the type of cells in place of a dictionary's, which may be another one in each block."""
    for i, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(i, field.with_type(field.type.value_type))
    return schema.remove_metadata()


def make_spec(schema: pa.Schema, kind: Dict[str, Any], key: Any, types: Dict[str, Any]) -> Spec:
    """The spec of a table that has the columns of a frame. types: of those that are to have others."""
    names_of("key", [key] if isinstance(key, str) else key, schema.names)
    found = _columns(schema.empty_table(), key)
    keys, values = dict(found["key"]), dict(found["values"] or {})
    for name, type in types.items():
        if name not in schema.names:
            raise InvalidArgument(f"there is no column {name!r}", remedy=f"the columns are: {', '.join(schema.names)}")
        (keys if name in keys else values)[name] = type
    if kind["kind"] == "prefixes":
        keys = {"prefix": _types.str_}
        if {"prefix", "length"} & set(values):
            raise InvalidArgument("a column is called 'prefix' or 'length'", remedy="rename it: match() has such")
    key_texts, value_texts = ([[name, str(type)] for name, type in side.items()] for side in (keys, values))
    return {**kind, "key": key_texts, "values": value_texts}


def check_goes_on(table: str, old: Entry, spec: Spec, shards: Optional[int]) -> None:
    """InvalidArgument: new rows of a spec can't be put to a table as it is."""

    def names(of: Spec) -> Tuple[Any, ...]:
        facts = [of.get(fact) for fact in ("kind", "bits", "words", "parts")]
        return *facts, [name for name, _ in of["key"]], sorted(name for name, _ in of["values"])

    def text(of: Spec) -> str:
        columns = [f"{name} {type} key" for name, type in of["key"]] + [f"{n} {t}" for n, t in of["values"]]
        return ", ".join(columns + [f"{fact} {of[fact]}" for fact in ("bits", "words", "parts") if fact in of])

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


def split(entry: Entry, schema: pa.Schema, last_counts: bool, *blocks: pa.Table) -> List[Optional[pa.Table]]:
    """The rows of blocks that go to each shard, in their order; None: there are none. last_counts: where many rows
    have equal keys the last one is enough, so that a key which comes often is no burden to its shard alone."""
    shards = len(entry["shards"])
    fitting = [block.select(schema.names).cast(schema) for block in blocks if len(block)]
    if not fitting:
        return [None] * shards
    table = pa.concat_tables(fitting)
    keys = [name for name, _ in entry["key"]]
    some = KeyPartition(key_of(entry), 1).sample(key_frame(table.slice(0, _PROBED_ROWS), entry))
    if last_counts and len(set(some)) < 0.9 * len(some):
        numbered = table.select(keys).append_column("row", pa.array(np.arange(len(table))))
        numbered = numbered.rename_columns([*map(str, range(len(keys))), "row"])
        last = numbered.group_by(numbered.column_names[:-1]).aggregate([("row", "max")])["row_max"]
        table = table.take(pc.take(last, pc.sort_indices(last)))
    if shards == 1:
        return [table]
    order, ends, _ = partition_of(entry).order(key_frame(table, entry))
    parts = table.take(pa.array(order))
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

    def open(self, table: str, before: Optional[Dict[str, Any]], **options: Any) -> Database:
        """A database to build the shard in. before: the shard that it begins as."""
        if before is None:
            return open_database(self.directory, "x", background=False, **options)
        with open_database(check_shard(self.path, table, before), "r") as old:
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
    attempt: Attempt, table: str, spec: Spec, parts: Iterable[pa.Table], before: Optional[Dict[str, Any]],
    on_equal: str, **options: Any,
) -> Dict[str, Any]:
    """Builds a shard of parts, in their order, in one transaction, and returns what the manifest is to say of it."""
    given = 0
    with attempt.open(table, before, **options) as db:
        t = _make_table(db, table, spec)
        with db.transaction() as transaction:
            for part in parts:
                given += len(part)
                if spec["kind"] == "counters":
                    transaction.add(t, key_frame(part, spec), part["value"])
                else:
                    put = transaction.put_if_absent if on_equal == "error" else transaction.put
                    put(t, *((part,) if spec["values"] else keys_and_nothing(part, [n for n, _ in spec["key"]])))
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
    attempt: Attempt, table: str, words: int, parts: Iterable[np.ndarray], before: Optional[Dict[str, Any]],
    **options: Any,
) -> Tuple[Dict[str, Any], List[Tuple[np.ndarray, np.ndarray]]]:
    """Builds a shard of a set, and returns what the manifest is to say of it, and ids and what is new of each part."""
    with attempt.open(table, before, **options) as db:
        numbers: Dedup = db.dedup(table, words)
        made = [numbers.find_or_put(part) for part in parts]
        rows = len(numbers)
    return attempt.finished(rows, sum(len(ids) for ids, _ in made)), made


def open_shard(path: str, table: str, entry: Entry, number: int, **options: Any) -> Table:
    """A shard's table, for reading. NotFound, Corruption: the shard is not there, or another one than was committed."""
    directory = check_shard(path, table, entry["shards"][number])
    return open_database(directory, "r", **options).table(table, create=False)


Answer = Tuple[pa.Table, np.ndarray]  # the values' columns of as many rows as there are keys, and which were found


def answer_of(table: Table, keys: pa.Table, columns: Optional[Sequence[str]]) -> Answer:
    if not table.address_bits:
        rows = table.get(keys, columns=columns)
        return _nullable(pa.table(rows) if rows.columns else pa.table({})), np.asarray(rows.found)
    rows = table.match(keys.column(0), columns=columns)
    answer, found = _nullable(pa.table(rows)), np.asarray(rows.found)
    at = answer.column_names.index("length")
    return answer.set_column(at, "length", pc.if_else(pa.array(found), answer["length"], None)), found


def _nullable(table: pa.Table) -> pa.Table:
    """So that all answers and batches have one schema, whether cells are missing in them or not."""
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))


class Answerer:
    """A shard that answers; an actor of its own, which is made anew where it dies."""

    def __init__(self, path: str, table: str, entry: Entry, number: int, options: Dict[str, Any]) -> None:
        self.table = open_shard(path, table, entry, number, **options)

    def answer(self, keys: pa.Table, columns: Optional[Sequence[str]]) -> Answer:
        return answer_of(self.table, keys, columns)


def ask_shards(
    partition: KeyPartition, keys: pa.Table, ask: Callable[[List[Tuple[int, pa.Table]]], List[Answer]], threads: int = 1
) -> Answer:
    """The answers of the keys' shards, in the order of the keys; a null finds nothing. ask: is given shards and their
    keys, and answers. threads: so many parts of many keys are asked at once, so that one is sorted by shard while the
    answers of another are on their way; ask is then called by several threads."""
    if any(column.null_count for column in keys.columns):
        valid = functools.reduce(pc.and_, [column.is_valid() for column in keys.columns]).to_numpy()
        answer, some = ask_shards(partition, keys.filter(pa.array(valid)), ask, threads)
        found = np.zeros(len(keys), bool)
        found[valid] = some
        return answer.take(pa.array(np.cumsum(valid) - 1, mask=~valid)) if answer.num_columns else answer, found
    if partition.parts > 1 and threads > 1 and len(keys) >= _PARALLEL_KEYS:
        size = -(-len(keys) // threads)
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(lambda at: ask_shards(partition, keys.slice(at, size), ask), range(0, len(keys), size)))
        return pa.concat_tables([answer for answer, _ in parts]), np.concatenate([found for _, found in parts])
    if partition.parts == 1 or len(keys) == 0:
        return ask([(0, keys)])[0]
    order, ends, places = partition.order(keys)
    begins = np.concatenate([ends[:1] * 0, ends[:-1]])
    sorted_keys = keys.take(pa.array(order))
    answers = ask([(i, sorted_keys.slice(int(a), int(b - a))) for i, (a, b) in enumerate(zip(begins, ends)) if a < b])
    table = pa.concat_tables([answer for answer, _ in answers]).combine_chunks()
    return table.take(pa.array(places)) if table.num_columns else table, np.concatenate([f for _, f in answers])[places]


Bounds = Tuple[Any, Any]  # the lowest and the highest value that the first key column may have; None: any
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def bounds_of(predicate: Any, column: str) -> Bounds:
    """What an expression of Ray Data says of a column: comparisons with constants, and `&` of such."""
    op = getattr(getattr(predicate, "op", None), "value", None)
    left, right = getattr(predicate, "left", None), getattr(predicate, "right", None)
    if op == "and":
        lows, highs = zip(bounds_of(left, column), bounds_of(right, column))
        present = [[v for v in values if v is not None] for values in (lows, highs)]
        try:
            return max(present[0], default=None), min(present[1], default=None)
        except TypeError:  # constants that can't be compared; the predicate says what that means
            return None, None
    if hasattr(left, "value"):
        left, right, op = right, left, _TURNED.get(op, op)
    if getattr(left, "name", None) != column or not hasattr(right, "value") or right.value != right.value:
        return None, None
    low = high = right.value
    if isinstance(low, float) and low == 0:  # -0.0 is equal to it, and comes before it in the order of keys
        low, high = -0.0, 0.0
    return (low if op in ("gt", "ge", "eq") else None), (high if op in ("lt", "le", "eq") else None)


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
    """The rows between bounds for which an expression of Ray Data holds, in the order of keys, batch by batch, and an
    empty batch first, for its columns."""
    shard, names = open_shard(path, table, entry, number), [name for name, _ in entry["key"]]
    low = bounds[0] if len(names) == 1 or bounds[0] is None else (bounds[0],)
    try:
        scan = shard.scan(low, columns=columns)
    except StrideError:  # it is no key of the table; the predicate says what that means
        scan = shard.scan(columns=columns)
    try:
        for rows in itertools.chain([scan._empty()], scan):
            batch = _nullable(pa.table(rows))
            last = batch[names[0]][-1] if len(batch) and bounds[1] is not None else None
            past = last is not None and pc.greater(last, pa.scalar(bounds[1])).as_py()
            yield batch if predicate is None else batch.filter(predicate.to_pyarrow())
            if past:
                return
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidArgument(f"table {table!r} can't be filtered so: {error}",
                              remedy=f"the columns read are: {', '.join(batch.column_names)}") from error


def vectors_of(block: pa.Table, arrays: Dict[str, np.ndarray]) -> Tuple[np.ndarray, List[str]]:
    """A row of 32-bit words for each row of some of a block's columns, which are given as arrays, too: of numbers, or
    of lists of numbers of one length. And what each of the columns has: ``f32[3]``, say."""
    words, parts, rows = [], [], len(block)
    for name, array in arrays.items():
        if block[name].null_count:
            raise InvalidArgument(f"column {name!r} has nulls, and vectors have none", remedy="leave such rows out")
        lengths = {len(cell) for cell in array} if array.dtype == object and hasattr(array[0], "__len__") else {1}
        if len(lengths) != 1:
            raise InvalidArgument(f"column {name!r} has lists of {min(lengths)} and of {max(lengths)} numbers",
                                  remedy="vectors have one length")
        array = np.stack(list(array)) if array.dtype == object else array
        if array.dtype.kind not in "iuf" or array.dtype.itemsize % 4:
            raise InvalidType(f"column {name!r} is of {array.dtype}",
                              remedy="vectors are numbers of 32 or 64 bits, or lists of such of one length")
        words.append(np.ascontiguousarray(array).reshape(rows, -1).view(np.uint32))
        parts.append(f"{array.dtype.kind}{8 * array.dtype.itemsize}[{array.size // rows}]")
    return np.concatenate(words, axis=1), parts
