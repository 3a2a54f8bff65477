"""Tables in shards, in the jobs of Ray Data: written by many workers, committed once, looked up by all.

>>> import ray, stridedb.ray as sr                                     # doctest: +SKIP
>>> sr.write(ray.data.read_parquet("users/"), "/shared/app", "users", key="id", shards=16)  # doctest: +SKIP
>>> orders = sr.lookup(ray.data.read_parquet("orders/"), "/shared/app", "users", on="user")  # doctest: +SKIP

A path is that of a directory which all nodes see. docs/cluster.md says what is promised, and how it is done.
"""

from __future__ import annotations

import contextlib
import functools
import os
import uuid
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import pyarrow as pa

from . import _manifest, _shards, _types
from ._core import KeyPartition
from ._manifest import Entry, sweep
from .errors import AlreadyExists, Corruption, InvalidArgument, StrideError, Unavailable

try:
    import ray
    from ray.data import ActorPoolStrategy, Dataset
    from ray.data.block import BlockAccessor, BlockMetadata
    from ray.data.datasource import Datasink, Datasource, ReadTask
except ImportError as error:
    raise Unavailable("Ray Data is not installed", remedy='run pip install "stridedb[ray]"') from error

__all__ = ["accumulate", "dedup", "lookup", "match", "read", "sweep", "tables", "write"]

_SAMPLES = 4096  # keys that differ, for each shard: so its rows are within a tenth of the mean


def tables(path: str, version: Optional[int] = None) -> Dict[str, Entry]:
    """What the newest manifest, or that of a version, says of each table: its job, rows, shards and columns."""
    manifest = _manifest.read_manifest(path, version)
    return {name: dict(entry, version=manifest["version"]) for name, entry in manifest["tables"].items()}


def write(
    ds: Dataset, path: str, table: str, key: Union[str, Sequence[str]], *, shards: Optional[int] = None,
    partition: str = "range", mode: str = "create", on_equal: str = "last", types: Optional[Mapping[str, Any]] = None,
    bits: Optional[int] = None, text: bool = False, job: Optional[str] = None, num_cpus: float = 1,
) -> Entry:
    """Writes a dataset as a table in shards, and returns what the manifest says of it.

    key: the column of keys, or several. shards: None: one for each core of the cluster. partition: ``"range"``, by
    splitters that a sample tells, or ``"hash"``. mode: ``"create"`` a new table, ``"replace"`` one, or ``"update"``
    one, whose shards stay and get new rows. on_equal: of equal keys the ``"last"`` counts, in the order of blocks, or
    they are an ``"error"``. types: of columns that are not to have the dataset's. bits, text: the table is one of
    prefixes, as of Database.prefixes(), and has one shard. job: a name; one that was committed before does nothing.
    num_cpus: of each task that builds a shard.

    All of it is there afterwards, durably, or nothing, whatever dies meanwhile. InvalidArgument: the columns are not
    the table's, or differ between blocks. AlreadyExists. Conflict: another job has changed the table meanwhile.
    """
    if on_equal not in ("last", "error"):
        raise InvalidArgument(f"on_equal is {on_equal!r}", remedy="it may be 'last', 'error'")
    kind: Dict[str, Any] = {"kind": "rows"}
    if text or bits is not None:
        if shards not in (None, 1):
            raise InvalidArgument("a table of prefixes has one shard, and every node reads it", remedy="leave shards out")
        kind, shards = {"kind": "prefixes", "bits": None if text else bits}, 1
    return _Job(path, table, job, mode, num_cpus).run(ds, key, kind, dict(types or {}), shards, partition, on_equal)


def accumulate(
    ds: Dataset, path: str, table: str, key: Union[str, Sequence[str]], value: str, *, type: Any = None,
    shards: Optional[int] = None, partition: str = "hash", mode: str = "update", job: Optional[str] = None,
    num_cpus: float = 1,
) -> Entry:
    """Adds a column of numbers to the counters of a table, which is made where it is missing; the rest as write().

    type: i32, i64, f32 or f64; None: i64 for integers, f64 for floats. Each row is added once, whatever dies.
    """
    keys = [key] if isinstance(key, str) else list(key)
    numbers = ds.select_columns([*keys, value]).rename_columns({value: "value"} if value != "value" else {})
    return _Job(path, table, job, mode, num_cpus).run(
        numbers, keys, {"kind": "counters"}, {"value": type}, shards, partition, "last"
    )


class _Job:
    """What writes: it samples and splits the blocks, has a shard built of each part, and commits all of them."""

    def __init__(self, path: str, table: str, job: Optional[str], mode: str, num_cpus: float) -> None:
        if mode not in ("create", "replace", "update"):
            raise InvalidArgument(f"mode is {mode!r}", remedy="it may be 'create', 'replace', 'update'")
        self.path, self.table, self.mode = os.path.abspath(path), table, mode
        self.job = uuid.uuid4().hex if job is None else job
        if not self.job or self.job.startswith(".") or "/" in self.job or "\0" in self.job:
            raise InvalidArgument(f"job is {job!r}", remedy="give a name that a directory may have")
        os.makedirs(self.path, exist_ok=True)
        manifest = _manifest.read_manifest(self.path)
        self.before: Optional[Entry] = manifest["tables"].get(table)
        self.done = manifest["jobs"].get(self.job)
        if self.done not in (None, table):
            raise AlreadyExists(f"job {self.job!r} has written table {self.done!r}", remedy="give it another name")
        if self.done is None and self.before is not None and mode == "create":
            raise AlreadyExists(f"table {table!r} is there", remedy="use mode='replace' or 'update', or another name")
        self.options, self.remote = _shards.options_of(num_cpus), {"num_cpus": num_cpus}

    def run(
        self, ds: Dataset, key: Union[str, Sequence[str]], kind: Dict[str, Any], types: Dict[str, Any],
        shards: Optional[int], partition: str, on_equal: str,
    ) -> Entry:
        if self.done is not None:
            return tables(self.path)[self.table]
        with _shards.errors_as_they_are():
            blocks = ds.to_arrow_refs()
            facts = ray.get([_facts.remote(block) for block in blocks])
            schema = next((schema for schema, _ in facts if schema.names), None)
            if schema is None:
                raise InvalidArgument("the dataset has no columns", remedy="write a table that has rows")
            if kind["kind"] == "counters" and types["value"] is None:
                is_float = pa.types.is_floating(schema.field("value").type)
                types = {"value": _types.f64 if is_float else _types.i64}
            spec = _shards.make_spec(schema, kind, key, types)
            if not self.begin(spec, shards):
                if partition not in ("range", "hash"):
                    raise InvalidArgument(f"partition is {partition!r}", remedy="it may be 'range', 'hash'")
                if partition == "range":
                    rows = sum(rows for _, rows in facts)
                    self.entry["splitters"] = _splitters(blocks, rows, spec, len(self.entry["shards"]))
            parts, counts = self.split(blocks)
            del blocks
            sink = _Sink(self, parts, counts, on_equal)
            numbers = ray.data.range(len(parts), override_num_blocks=len(parts))
            numbers.write_datasink(sink, ray_remote_args=self.remote)
        return sink.entry

    def begin(self, spec: _shards.Spec, shards: Optional[int]) -> bool:
        """Makes the entry, as it is until the shards are built. Whether it goes on from that of the table."""
        old = self.before if self.mode == "update" else None
        if old is None:
            shards = max(1, int(ray.cluster_resources().get("CPU", 1))) if shards is None else shards
            if not 1 <= shards <= 65_536:
                raise InvalidArgument(f"{shards} shards are asked for", remedy="there may be 1 to 65536")
            self.entry: Entry = {**spec, "splitters": None, "shards": [None] * shards}
            self.old: List[Optional[str]] = [None] * shards
            return False
        _shards.check_goes_on(self.table, old, spec, shards)
        self.entry = {name: old[name] for name in (*spec, "splitters")}
        self.entry["shards"] = [None] * len(old["shards"])
        self.old = [shard["directory"] for shard in old["shards"]]
        return True

    def split(self, blocks: List[Any]) -> Tuple[List[List[Any]], List[int]]:
        """Of each shard the references of its parts, one for each block, and how many rows these have."""
        n, entry = len(self.entry["shards"]), ray.put(self.entry)
        made = [_split.options(num_returns=n + 1).remote(block, i, entry) for i, block in enumerate(blocks)]
        counts = np.sum(ray.get([counts for counts, *_ in made]), axis=0)
        return [list(parts) for parts in zip(*(parts for _, *parts in made))], counts.tolist()

    def commit(self, made: Iterable[Dict[str, Any]], counts: Sequence[int]) -> Entry:
        """Takes one attempt of each shard, and commits them all. Corruption: rows are missing, or too many."""
        one = {shard["shard"]: shard for shard in made}
        for i, rows in enumerate(counts):
            if i not in one or one[i]["given"] != rows:
                raise Corruption(f"job {self.job!r}: shard {i} was not built of the {rows} rows that it was to have",
                                 remedy="run the job again; nothing was committed")
        shards = [one[i] for i in range(len(counts))]
        entry = {"job": self.job, **self.entry, "shards": shards, "rows": sum(shard["rows"] for shard in shards)}
        entry = _manifest.commit(self.path, self.table, entry, self.before and self.before["job"])
        with contextlib.suppress(OSError, StrideError):  # what is committed is so, whatever is left lying about
            sweep(self.path)
        return entry


def _splitters(blocks: List[Any], rows: int, spec: _shards.Spec, shards: int) -> List[str]:
    """Keys that divide those that differ in equal shares, as far as a sample tells."""
    wanted = _SAMPLES * shards
    share = min(1.0, wanted / max(1, rows))
    while True:
        keys = sorted(set().union(*ray.get([_sample.remote(block, spec, share) for block in blocks])))
        if len(keys) >= wanted // 2 or share == 1:
            return [(keys[len(keys) * i // shards] if keys else b"").hex() for i in range(1, shards)]
        share = min(1.0, share * 1.5 * wanted / max(len(keys), wanted // 64))  # many rows have equal keys


# A worker that dies is no reason to give up: what it did is done again, and as it would have done it.
_task = ray.remote(max_retries=-1)


@_task
def _facts(block: pa.Table) -> Tuple[pa.Schema, int]:
    return block.schema, len(block)


@_task
def _sample(block: pa.Table, spec: _shards.Spec, share: float) -> List[bytes]:
    partition = KeyPartition(_shards.key_of(spec), 1)
    return list(set(partition.sample(_shards.key_frame(block, spec), share))) if len(block) else []


@_task
def _split(block: pa.Table, number: int, entry: Entry) -> List[Any]:
    parts = _shards.split(block, number, entry)
    return [[0 if part is None else len(part) for part in parts], *parts]


class _Sink(Datasink[List[Dict[str, Any]]]):
    """Each of its write tasks is given the number of a shard and builds that. The driver commits them all."""

    def __init__(self, job: _Job, parts: List[List[Any]], counts: List[int], on_equal: str) -> None:
        self.job, self.parts, self.counts, self.on_equal = job, parts, counts, on_equal
        self.entry: Entry = {}

    def write(self, blocks: Iterable[Any], ctx: Any) -> List[Dict[str, Any]]:
        return [self._build(i) for block in blocks for i in BlockAccessor.for_block(block).to_numpy("id").tolist()]

    def _build(self, i: int) -> Dict[str, Any]:
        job = self.job
        parts = (part for part in map(ray.get, self.parts[i]) if part is not None)
        with _shards.Attempt(job.path, job.job, i) as attempt:
            return _shards.build(attempt, job.table, job.entry, parts, job.old[i], self.on_equal, **job.options)

    def on_write_complete(self, write_result: Any) -> None:
        made = [shard for shards in write_result.write_returns for shard in shards]
        self.entry = self.job.commit(made, self.counts)


def dedup(
    ds: Dataset, path: str, table: str, on: Union[str, Sequence[str]], *, shards: Optional[int] = None,
    num_cpus: float = 1,
) -> Dataset:
    """The dataset with the columns ``id``, a number for each vector, and ``new``: whether no row before has the same.

    on: the column of vectors, or columns that each have a part of them: numbers of 32 or 64 bits, or lists of such of
    one length. Rows come in the order of blocks, after all of earlier calls. The vectors are kept in shards by their
    hash, which are committed as by write(): where that fails or dies, no vector of this call is kept.
    """
    on = [on] if isinstance(on, str) else list(on)
    job = _Job(path, table, None, "update", num_cpus)
    with _shards.errors_as_they_are():
        blocks = ds.to_arrow_refs()
        rows, words = zip(*ray.get([_shape.remote(block, on) for block in blocks]))
        wide = set(words) - {0} | ({job.before["words"]} if job.before and job.before["kind"] == "dedup" else set())
        if len(wide) != 1:
            raise InvalidArgument(f"vectors are of {sorted(wide)} words, and of one number of words in a table")
        key = [["vector", f"bytes[{4 * max(wide)}]"]]
        job.begin({"kind": "dedup", "words": max(wide), "key": key, "values": []}, shards)
        n, entry = len(job.entry["shards"]), ray.put(job.entry)
        parts = [_split_vectors.options(num_returns=n + 1).remote(block, on, entry) for block in blocks]
        number = _number.options(num_returns=1 + len(blocks), **job.remote)
        made = [number.remote(job, i, [part[1 + i] for part in parts]) for i in range(n)]
        joined = [_with_ids.remote(block, parts[b][0], *(m[1 + b] for m in made)) for b, block in enumerate(blocks)]
        shards_made = ray.get([m[0] for m in made])
        if sum(shard["given"] for shard in shards_made) != sum(rows):
            raise Corruption(f"table {table!r} was given other vectors than the {sum(rows)} of the dataset")
        job.commit(shards_made, [shard["given"] for shard in shards_made])
    return ray.data.from_arrow_refs(joined)


def _vectors(block: pa.Table, on: List[str]) -> np.ndarray:
    return _shards.vectors_of(block, BlockAccessor.for_block(block.select(on)).to_numpy(on))


@_task
def _shape(block: pa.Table, on: List[str]) -> Tuple[int, int]:
    return len(block), _vectors(block, on).shape[1] if len(block) else 0


@_task
def _split_vectors(block: pa.Table, on: List[str], entry: Entry) -> List[np.ndarray]:
    n, words = len(entry["shards"]), entry["words"]
    if len(block) == 0:
        return [np.empty(0, np.uint64)] + [np.empty((0, words), np.uint32)] * n
    vectors = _vectors(block, on)
    order, ends = _shards.partition_of(entry).order(vectors.view(f"V{4 * words}").reshape(-1))
    return [order, *np.split(vectors[order], ends[:-1].astype(np.int64))]


@_task
def _number(job: _Job, shard: int, parts: List[Any]) -> List[Any]:
    with _shards.Attempt(job.path, job.job, shard) as attempt:
        words, old = job.entry["words"], job.old[shard]
        said, made = _shards.number_vectors(attempt, job.table, words, map(ray.get, parts), old, **job.options)
    return [said, *made]


@_task
def _with_ids(block: pa.Table, order: np.ndarray, *made: Tuple[np.ndarray, np.ndarray]) -> pa.Table:
    ids, new = np.empty(len(block), np.uint64), np.empty(len(block), bool)
    ids[order] = np.concatenate([i * np.uint64(len(made)) + np.uint64(shard) for shard, (i, _) in enumerate(made)])
    new[order] = np.concatenate([is_new for _, is_new in made])
    return block.append_column("id", pa.array(ids)).append_column("new", pa.array(new))


def lookup(
    ds: Dataset, path: str, table: str, on: Union[None, str, Sequence[str]] = None, *, how: str = "left",
    columns: Optional[Sequence[str]] = None, suffix: str = "_right", placement: str = "auto",
    version: Optional[int] = None, concurrency: Optional[int] = None, num_cpus: float = 1, num_gpus: float = 0,
    batch_rows: int = 1 << 20,
) -> Dataset:
    """The dataset with the columns of the table's row of the same key beside them, as Table.join(); it is lazy.

    placement: ``"replicate"``: each worker maps all shards; ``"partition"``: an actor for each shard is sent the keys
    that are its own; ``"auto"``: the first where all shards fit in half of the smallest node's memory. version: of the
    manifest; None: the newest one now. All answers are of that one, also after a worker has died. concurrency: how many
    workers; None: as many as there is room for. num_cpus, num_gpus: of each worker, or of each shard's actor.
    batch_rows: at most, of a call.
    """
    path, gpu = os.path.abspath(path), {"backend": "cuda", "device_values": True} if num_gpus else {}
    entry = _manifest.table_entry(path, table, version)
    keys = [name for name, _ in entry["key"]]
    on = keys if on is None else [on] if isinstance(on, str) else list(on)
    if how not in ("left", "inner"):
        raise InvalidArgument(f"how is {how!r}", remedy="it may be 'left', 'inner'")
    if placement not in ("auto", "replicate", "partition"):
        raise InvalidArgument(f"placement is {placement!r}", remedy="it may be 'auto', 'replicate', 'partition'")
    if len(on) != len(keys):
        raise InvalidArgument(f"on has {len(on)} columns, and keys of the table have {len(keys)}: {', '.join(keys)}")
    if placement == "auto":
        memory = min((node["Resources"].get("memory", 0) for node in ray.nodes() if node["Alive"]), default=0)
        fits = sum(shard["bytes"] for shard in entry["shards"]) <= memory / 2
        placement = "replicate" if fits or entry["kind"] == "prefixes" else "partition"
    cpus = ray.cluster_resources().get("CPU", 1)
    options = {"threads": max(1, int(num_cpus)), **gpu}
    actors: List[Any] = []
    room: Dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus or None}
    if placement == "partition":
        # Half of the cores at most, so that there is room for those who ask.
        each = min(num_cpus, cpus / 2 / len(entry["shards"]))
        actor = ray.remote(num_cpus=each, num_gpus=num_gpus, max_restarts=-1, max_task_retries=-1, max_concurrency=2)
        answerer = actor(_shards.Answerer)
        actors = [answerer.remote(path, table, entry, i, options) for i in range(len(entry["shards"]))]
        room = {"num_cpus": min(1, cpus / 4)}
    most = max(1, int(cpus / room["num_cpus"])) if concurrency is None else concurrency
    pool = ActorPoolStrategy(min_size=1, max_size=most) if concurrency is None else ActorPoolStrategy(size=most)
    given = {"path": path, "table": table, "entry": entry, "on": on, "is_inner": how == "inner", "columns": columns,
             "suffix": suffix, "actors": actors, "options": options}
    return ds.map_batches(_Lookup, fn_constructor_kwargs=given, compute=pool, batch_format="pyarrow",
                          batch_size=batch_rows, **room)


def match(ds: Dataset, path: str, table: str, on: str, **options: Any) -> Dataset:
    """As lookup(), of the longest prefix of each address in a table of prefixes, and with its ``length``."""
    if _manifest.table_entry(path, table, options.get("version"))["kind"] != "prefixes":
        raise InvalidArgument(f"table {table!r} has no prefixes", remedy="use lookup()")
    return lookup(ds, path, table, on, **options)


class _Lookup:
    def __init__(
        self, path: str, table: str, entry: Entry, on: List[str], is_inner: bool, columns: Optional[Sequence[str]],
        suffix: str, actors: List[Any], options: Dict[str, Any],
    ) -> None:
        self.on, self.is_inner, self.columns, self.suffix, self.actors = on, is_inner, columns, suffix, actors
        self.keys, self.partition = [name for name, _ in entry["key"]], _shards.partition_of(entry)
        numbers = [] if actors else range(len(entry["shards"]))
        self.shards = [_shards.open_shard(path, table, entry, i, **options) for i in numbers]

    def __call__(self, batch: pa.Table) -> pa.Table:
        keys = pa.table([batch[name] for name in self.on], names=self.keys)
        answer, found = _shards.ask_shards(self.partition, keys, self._ask)
        taken = set(batch.column_names)
        for name, column in zip(answer.column_names, answer.columns):
            batch = batch.append_column(name + self.suffix if name in taken else name, column)
        return batch.filter(pa.array(found)) if self.is_inner else batch

    def _ask(self, asked: List[Tuple[int, pa.Table]]) -> List[_shards.Answer]:
        if self.actors:
            return ray.get([self.actors[i].answer.remote(keys, self.columns) for i, keys in asked])
        return [_shards.answer_of(self.shards[i], keys, self.columns) for i, keys in asked]


def read(
    path: str, table: str, *, columns: Optional[Sequence[str]] = None, version: Optional[int] = None,
    num_cpus: float = 1, concurrency: Optional[int] = None,
) -> Dataset:
    """The rows of a table, shard by shard, each in the order of keys: a task for each shard that may have some.

    What ``filter(expr=...)`` says of the result is asked where the rows are, and comparisons of the first key column
    with constants tell which shards are read, and where. columns: those of the values that are wanted or filtered by.
    """
    path = os.path.abspath(path)
    source = _Source(path, table, _manifest.table_entry(path, table, version), columns)
    return ray.data.read_datasource(source, num_cpus=num_cpus, concurrency=concurrency)


class _Source(Datasource):
    def __init__(self, path: str, table: str, entry: Entry, columns: Optional[Sequence[str]]) -> None:
        super().__init__()
        self.path, self.table, self.entry, self.columns = path, table, entry, columns

    def supports_predicate_pushdown(self) -> bool:
        return True

    def estimate_inmemory_data_size(self) -> int:
        return sum(shard["bytes"] for shard in self.entry["shards"])

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: Optional[int] = None, data_context: Any = None
    ) -> List[ReadTask]:
        predicate = self.get_current_predicate()
        bounds = _shards.bounds_of(predicate, self.entry["key"][0][0])
        tasks = []
        for i in _shards.shards_within(self.entry, bounds):
            shard = self.entry["shards"][i]
            told = BlockMetadata(shard["rows"] if predicate is None else None, shard["bytes"], None, None)
            given = (self.path, self.table, self.entry, i, self.columns, predicate, bounds)
            read = functools.partial(_shards.scan_shard, *given)
            tasks.append(ReadTask(read, told, per_task_row_limit=per_task_row_limit))
        return tasks
