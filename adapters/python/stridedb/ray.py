"""Tables in shards, in the jobs of Ray Data: written by many workers, committed once, looked up by all.

>>> import ray, stridedb.ray as sr                                     # doctest: +SKIP
>>> sr.write(ray.data.read_parquet("users/"), "/shared/app", "users", key="id", shards=16)  # doctest: +SKIP
>>> orders = sr.lookup(ray.data.read_parquet("orders/"), "/shared/app", "users", on="user")  # doctest: +SKIP

A path is that of a directory which all nodes see. docs/cluster.md says what is promised, and how it is done.
"""

from __future__ import annotations

import functools
import os
import pickle
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import pyarrow as pa

from . import _manifest, _shards
from ._manifest import Entry, sweep
from .errors import Corruption, InvalidArgument, Unavailable

try:
    import ray
    from ray.data import ActorPoolStrategy, Dataset, TaskPoolStrategy
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask
    from ray.util.annotations import RayDeprecationWarning

    from ._ray_jobs import (
        RETRIES, Columns, Job, blocks_of, errors_as_they_are, number_shard, shape, split_vectors, with_ids,
    )
except ImportError as error:
    raise Unavailable("Ray Data is not installed", remedy='run pip install "stridedb[ray]"') from error

__all__ = ["accumulate", "dedup", "errors_as_they_are", "lookup", "match", "read", "sweep", "tables", "write"]


def tables(path: str, version: Optional[int] = None) -> Dict[str, Entry]:
    """What the newest manifest, or that of a version, says of each table: its job, rows, shards and columns."""
    manifest = _manifest.read_manifest(path, version)
    return {name: dict(entry, version=manifest["version"]) for name, entry in manifest["tables"].items()}


def write(
    ds: Dataset, path: str, table: str, key: Columns, *, shards: Optional[int] = None, partition: str = "range",
    mode: str = "create", on_equal: str = "last", types: Optional[Mapping[str, Any]] = None,
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
    Unavailable: the workers that take one of the tasks die again and again.
    """
    if on_equal not in ("last", "error"):
        raise InvalidArgument(f"on_equal is {on_equal!r}", remedy="it may be 'last', 'error'")
    kind: Dict[str, Any] = {"kind": "rows"}
    if text or bits is not None:
        if shards not in (None, 1):
            raise InvalidArgument("a table of prefixes has one shard, and every node reads it", remedy="leave shards out")
        if not isinstance(key, str):
            raise InvalidArgument(f"key is {key!r}", remedy="give the name of the column of prefixes")
        kind, shards = {"kind": "prefixes", "bits": None if text else bits}, 1
        ds, key = ds if key == "prefix" else ds.rename_columns({key: "prefix"}), "prefix"
    return Job(path, table, job, mode, num_cpus, shards).run(ds, key, kind, dict(types or {}), partition, on_equal)


def accumulate(
    ds: Dataset, path: str, table: str, key: Columns, value: str, *, type: Any = None, shards: Optional[int] = None,
    partition: str = "hash", mode: str = "update", job: Optional[str] = None, num_cpus: float = 1,
) -> Entry:
    """Adds a column of numbers to the counters of a table, which is made where it is missing; the rest as write().

    type: i32, i64, f32 or f64; None: i64 for integers, f64 for floats. Each row is added once, whatever dies.
    """
    keys = [key] if isinstance(key, str) else list(key)
    if value in keys or "value" in keys:
        raise InvalidArgument("a column of keys is called 'value', or is the one to add", remedy="rename it")
    numbers = ds.select_columns([*keys, value]).rename_columns({value: "value"} if value != "value" else {})
    kind = {"kind": "counters"}
    return Job(path, table, job, mode, num_cpus, shards).run(numbers, keys, kind, {"value": type}, partition, "last")


def dedup(
    ds: Dataset, path: str, table: str, on: Columns, *, shards: Optional[int] = None, num_cpus: float = 1
) -> Dataset:
    """The dataset with the columns ``id``, a number for each vector, and ``new``: whether no row before has the same.

    on: the column of vectors, or columns that each have a part of them: numbers of 32 or 64 bits, or lists of such of
    one length. Rows come in the order of blocks, after all of earlier calls. The vectors are kept in shards by their
    hash, which are committed as by write(): where that fails or dies, no vector of this call is kept.
    """
    on = [on] if isinstance(on, str) else list(on)
    job = Job(path, table, None, "update", num_cpus, shards)
    with errors_as_they_are():
        blocks = blocks_of(ds)
        shapes = [shape for shape in ray.get([shape.remote(block, on) for block in blocks]) if shape]
        if not shapes:
            raise InvalidArgument("the dataset has no rows", remedy="give a dataset that has some")
        rows, words, parts = zip(*shapes)
        if len(set(map(tuple, parts))) != 1:
            raise InvalidArgument(f"vectors are of {parts[0]}, and of {next(p for p in parts if p != parts[0])}")
        key = [["vector", f"bytes[{4 * words[0]}]"]]
        job.begin({"kind": "dedup", "words": words[0], "parts": parts[0], "key": key, "values": []})
        n, entry = len(job.entry["shards"]), ray.put(job.entry)
        split = [split_vectors.options(num_returns=n + 1).remote(block, on, entry) for block in blocks]
        numbered = number_shard.options(num_returns=1 + len(blocks), **job.remote)
        made = [numbered.remote(job, i, [part[1 + i] for part in split]) for i in range(n)]
        joined = [with_ids.remote(block, split[b][0], *(m[1 + b] for m in made)) for b, block in enumerate(blocks)]
        shards_made = ray.get([m[0] for m in made])
        if sum(shard["given"] for shard in shards_made) != sum(rows):
            raise Corruption(f"table {table!r} was given other vectors than the {sum(rows)} of the dataset")
        job.commit(shards_made, [shard["given"] for shard in shards_made])
    return ray.data.from_arrow_refs(joined)


def lookup(
    ds: Dataset, path: str, table: str, on: Optional[Columns] = None, *, how: str = "left",
    columns: Optional[Sequence[str]] = None, suffix: str = "_right", placement: str = "auto",
    version: Optional[int] = None, concurrency: Optional[int] = None, num_cpus: float = 1, num_gpus: float = 0,
    batch_rows: int = 1 << 20,
) -> Dataset:
    """The dataset with the columns of the table's row of the same key beside them, as Table.join(); it is lazy. A null
    has no row.

    placement: ``"replicate"``: each worker maps all shards; ``"partition"``: an actor for each shard is sent the keys
    that are its own, for as long as the result is kept; ``"auto"``: the first where all shards fit in half of the
    smallest node's memory. version: of the manifest; None: the newest one now. All answers are of that one, also after
    a worker has died. concurrency: how many workers; None: as many as there is room for. num_cpus: of each worker; or
    threads of each shard's actor, which reserves none. num_gpus: of each worker, or of each actor. batch_rows:
    that are looked up at once, at most.
    """
    path, gpu = os.path.abspath(path), {"backend": "cuda", "device_values": True} if num_gpus else {}
    entry = _manifest.table_entry(path, table, version)
    keys, added = ([name for name, _ in entry[side]] for side in ("key", "values"))
    on = keys if on is None else [on] if isinstance(on, str) else list(on)
    if entry["kind"] == "dedup":
        raise InvalidArgument(f"table {table!r} is a set of vectors", remedy="use dedup()")
    if how not in ("left", "inner"):
        raise InvalidArgument(f"how is {how!r}", remedy="it may be 'left', 'inner'")
    if placement not in ("auto", "replicate", "partition"):
        raise InvalidArgument(f"placement is {placement!r}", remedy="it may be 'auto', 'replicate', 'partition'")
    if len(on) != len(keys):
        raise InvalidArgument(f"on has {len(on)} columns, and keys of the table have {len(keys)}: {', '.join(keys)}")
    if not num_cpus > 0:
        raise InvalidArgument(f"num_cpus is {num_cpus!r}", remedy="give a share of a core, or a number of them")
    if placement == "auto":
        memory = min((node["Resources"].get("memory", 0) for node in ray.nodes() if node["Alive"]), default=0)
        fits = sum(shard["bytes"] for shard in entry["shards"]) <= memory / 2
        placement = "replicate" if fits or entry["kind"] == "prefixes" else "partition"
    cpus = ray.cluster_resources().get("CPU", 1)
    options, actors = {"threads": max(1, int(num_cpus)), **gpu}, []
    room: Dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus or None}
    if placement == "partition":
        # They reserve no cores: tasks before them could wait for those, and they for the tasks.
        actor = ray.remote(num_cpus=0, num_gpus=num_gpus, max_restarts=RETRIES, max_task_retries=RETRIES,
                           max_concurrency=2, scheduling_strategy="SPREAD")(_shards.Answerer)
        actors = [actor.remote(path, table, entry, i, options) for i in range(len(entry["shards"]))]
        room = {"num_cpus": min(1, cpus / 4)}
    wanted = _shards.names_of("columns", columns, added) if added else []
    given = {"path": path, "table": table, "entry": entry, "on": on, "is_inner": how == "inner", "suffix": suffix,
             "columns": wanted, "options": options, "batch_rows": batch_rows}
    map_batches = functools.partial(ds.map_batches, batch_format="pyarrow", batch_size=None, **room)
    with warnings.catch_warnings():
        # Ray Data 2.60 to 2.63 takes numbers of retries, has no other name for them, and says that 2.64 won't.
        warnings.simplefilter("ignore", RayDeprecationWarning)
        if num_gpus and not actors:  # what lies on a GPU stays there: an actor has it
            most = max(1, int(cpus / num_cpus))
            pool = (ActorPoolStrategy(min_size=1, max_size=most) if concurrency is None
                    else ActorPoolStrategy(size=concurrency))
            return map_batches(_Lookup, fn_constructor_kwargs=given, compute=pool, max_restarts=RETRIES,
                               max_task_retries=RETRIES)
        return map_batches(_look_up, fn_kwargs={"given": pickle.dumps(given), "actors": actors}, max_retries=RETRIES,
                           compute=TaskPoolStrategy(size=concurrency))


def match(ds: Dataset, path: str, table: str, on: str, **options: Any) -> Dataset:
    """As lookup(), of the longest prefix of each address in a table of prefixes, and with its ``length``."""
    if _manifest.table_entry(path, table, options.get("version"))["kind"] != "prefixes":
        raise InvalidArgument(f"table {table!r} has no prefixes", remedy="use lookup()")
    return lookup(ds, path, table, on, **options)


class _Lookup:
    def __init__(
        self, path: str, table: str, entry: Entry, on: List[str], is_inner: bool, columns: Optional[Sequence[str]],
        suffix: str, options: Dict[str, Any], batch_rows: int, actors: Sequence[Any] = (),
    ) -> None:
        self.on, self.is_inner, self.columns, self.suffix, self.actors = on, is_inner, columns, suffix, actors
        self.threads, self.batch_rows = max(2, options["threads"]), batch_rows
        self.keys, self.partition = [name for name, _ in entry["key"]], _shards.partition_of(entry)
        numbers = [] if actors else range(len(entry["shards"]))
        self.shards = [_shards.open_shard(path, table, entry, i, **options) for i in numbers]

    def __call__(self, block: pa.Table) -> pa.Table:
        if len(block) <= self.batch_rows:
            return self._answered(block)
        return pa.concat_tables(self._answered(block.slice(at, self.batch_rows))
                                for at in range(0, len(block), self.batch_rows))

    def _answered(self, batch: pa.Table) -> pa.Table:
        _shards.names_of("on", self.on, batch.column_names)
        keys = pa.table([batch[name] for name in self.on], names=self.keys)
        answer, found = _shards.ask_shards(self.partition, keys, self._ask, self.threads)
        taken = set(batch.column_names)
        for name, column in zip(answer.column_names, answer.columns):
            name = name + self.suffix if name in taken else name
            if name in batch.column_names:
                raise InvalidArgument(f"the dataset has a column {name!r}, too", remedy="rename it, or choose a suffix")
            batch = batch.append_column(name, column)
        return batch.filter(pa.array(found)) if self.is_inner else batch

    def _ask(self, asked: List[Tuple[int, pa.Table]]) -> List[_shards.Answer]:
        if self.actors:
            return ray.get([self.actors[i].answer.remote(keys, self.columns) for i, keys in asked])
        return [_shards.answer_of(self.shards[i], keys, self.columns) for i, keys in asked]


def _look_up(block: pa.Table, given: bytes, actors: List[Any]) -> pa.Table:
    """A task's block. The process that runs the task runs others, too, and keeps the shards open for these."""
    return (_Lookup(actors=actors, **pickle.loads(given)) if actors else _opened(given))(block)


@functools.lru_cache(maxsize=4)
def _opened(given: bytes) -> _Lookup:
    return _Lookup(**pickle.loads(given))


def read(
    path: str, table: str, *, columns: Optional[Sequence[str]] = None, version: Optional[int] = None,
    num_cpus: float = 1, concurrency: Optional[int] = None,
) -> Dataset:
    """The rows of a table, shard by shard, each in the order of keys: a task for each shard that may have some.

    What ``filter(expr=...)`` says of the result is asked where the rows are, and comparisons of the first key column
    with constants tell which shards are read, and where. columns: those that are wanted or filtered by, beside the key.
    """
    path, entry = os.path.abspath(path), _manifest.table_entry(path, table, version)
    if entry["kind"] == "dedup":
        raise InvalidArgument(f"table {table!r} is a set of vectors", remedy="use dedup()")
    keys, values = ([name for name, _ in entry[side]] for side in ("key", "values"))
    wanted = _shards.names_of("columns", columns, keys + values)
    wanted = None if wanted is None and values else [name for name in wanted or [] if name not in keys]
    return ray.data.read_datasource(_Source(path, table, entry, wanted), num_cpus=num_cpus, concurrency=concurrency)


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
        first = _shards.scan_shard(self.path, self.table, self.entry, 0, self.columns, None, (None, None))
        schema, tasks = next(first).schema, []  # that of the empty batch
        for i in _shards.shards_within(self.entry, bounds) or [0]:
            shard = self.entry["shards"][i]
            told = BlockMetadata(shard["rows"] if predicate is None else None, shard["bytes"], None, None)
            given = (self.path, self.table, self.entry, i, self.columns, predicate, bounds)
            read = functools.partial(_shards.scan_shard, *given)
            tasks.append(ReadTask(read, told, schema, per_task_row_limit))
        return tasks
