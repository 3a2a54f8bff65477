"""What writes tables in shards with Ray: jobs of tasks that split blocks and build shards, and the commit at their end."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import pyarrow as pa
import ray
from ray.data import Dataset
from ray.data.block import BlockAccessor
from ray.data.datasource import Datasink
from ray.exceptions import OutOfMemoryError, RayActorError, RayTaskError, WorkerCrashedError

from . import _manifest, _shards, _types, errors
from ._core import KeyPartition
from ._manifest import Entry
from .errors import AlreadyExists, Corruption, InvalidArgument, StrideError, Unavailable

RETRIES = 20  # of what dies: an input that kills each worker that takes it does not do so for ever
_SAMPLES = 4096  # keys that differ, for each shard: so its rows are within a tenth of the mean
_GROUP_BYTES = 32 << 20  # of blocks that are split at once

_TOLD = re.compile(r"^\S*stridedb\.errors\.(\w+): (.*)$", re.MULTILINE)

Columns = Union[str, Sequence[str]]


@contextlib.contextmanager
def errors_as_they_are() -> Iterator[None]:
    """Around what runs a dataset: an exception of this package in a worker is raised as it is, and not as what Ray
    makes of it. Unavailable: workers have died again and again."""
    try:
        yield
    except Exception as error:
        chain: List[BaseException] = [error]
        for link in chain:
            next_one = getattr(link, "cause", None) or link.__cause__ or link.__context__
            chain += [next_one] if isinstance(next_one, BaseException) and next_one not in chain else []
        # Ray raises a class of its own, which is derived from that of the exception, too.
        ours = [e for e in chain if isinstance(e, StrideError) and type(e).__module__ == StrideError.__module__]
        # Of a function that a dataset maps Ray keeps the text alone.
        told = [t for e in chain if isinstance(e, RayTaskError) for t in _TOLD.findall(str(e)) if hasattr(errors, t[0])]
        died = [e for e in chain if isinstance(e, (WorkerCrashedError, RayActorError, OutOfMemoryError))]
        if ours[:1] == [error]:
            raise
        if ours or told:
            raise (ours + [getattr(errors, name)(text) for name, text in told])[0] from error
        if died:
            raise Unavailable(f"the workers of a task died {RETRIES + 1} times", remedy="see Ray's logs") from error
        raise


class Job:
    """What writes: it samples and splits the blocks, has a shard built of each part, and commits all of them."""

    def __init__(
        self, path: str, table: str, job: Optional[str], mode: str, num_cpus: float, shards: Optional[int]
    ) -> None:
        if mode not in ("create", "replace", "update"):
            raise InvalidArgument(f"mode is {mode!r}", remedy="it may be 'create', 'replace', 'update'")
        if not num_cpus > 0:
            raise InvalidArgument(f"num_cpus is {num_cpus!r}", remedy="give a share of a core, or a number of them")
        if shards is not None and (type(shards) is not int or not 1 <= shards <= 65_536):
            raise InvalidArgument(f"{shards!r} shards are asked for", remedy="there may be 1 to 65536")
        if not isinstance(table, str) or not table:
            raise InvalidArgument(f"table is {table!r}", remedy="give a name")
        self.path, self.table, self.mode, self.shards = os.path.abspath(path), table, mode, shards
        self.job = uuid.uuid4().hex if job is None else job
        if not isinstance(self.job, str) or not 0 < len(os.fsencode(self.job)) <= 200 or self.job[0] == "." or (
            set("/\0") & set(self.job)
        ):
            raise InvalidArgument(f"job is {job!r}", remedy="give a name that a directory may have, of 200 bytes at most")
        manifest = _manifest.read_manifest(self.path)
        os.makedirs(self.path, exist_ok=True)
        self.before: Optional[Entry] = manifest["tables"].get(table)
        self.done = manifest["jobs"].get(self.job)
        if self.done not in (None, table):
            raise AlreadyExists(f"job {self.job!r} has written table {self.done!r}", remedy="give it another name")
        if self.done is None and self.before is not None and mode == "create":
            raise AlreadyExists(f"table {table!r} is there", remedy="use mode='replace' or 'update', or another name")
        self.options, self.remote = _shards.options_of(num_cpus), {"num_cpus": num_cpus, "max_retries": RETRIES}

    def run(
        self, ds: Dataset, key: Columns, kind: Dict[str, Any], types: Dict[str, Any], partition: str, on_equal: str
    ) -> Entry:
        if self.done is not None:
            return _manifest.table_entry(self.path, self.table)
        if partition not in ("range", "hash"):
            raise InvalidArgument(f"partition is {partition!r}", remedy="it may be 'range', 'hash'")
        with errors_as_they_are():
            blocks = blocks_of(ds)
            schemas, rows, sizes = zip(*ray.get([_facts.remote(block) for block in blocks])) if blocks else ((), (), ())
            schema = _shards.unify(schemas, rows)
            if kind["kind"] == "counters" and types["value"] is None:
                is_float = pa.types.is_floating(schema.field("value").type)
                types = {"value": _types.f64 if is_float else _types.i64}
            spec = _shards.make_spec(schema, kind, key, types)
            if not self.begin(spec) and partition == "range":
                self.entry["splitters"] = _splitters(blocks, sum(rows), spec, len(self.entry["shards"]))
            parts, counts = self.split(blocks, sizes, schema, kind["kind"] == "rows" and on_equal == "last")
            del blocks
            sink = _Sink(self, parts, counts, on_equal)
            numbers = ray.data.range(len(parts), override_num_blocks=len(parts))
            numbers.write_datasink(sink, ray_remote_args=self.remote)
        return sink.entry

    def begin(self, spec: _shards.Spec) -> bool:
        """Makes the entry, as it is until the shards are built. Whether it goes on from that of the table."""
        old = self.before if self.mode == "update" else None
        if old is None:
            shards = max(1, int(ray.cluster_resources().get("CPU", 1))) if self.shards is None else self.shards
            self.entry: Entry = {**spec, "splitters": None, "shards": [None] * shards}
            self.old: List[Optional[Dict[str, Any]]] = [None] * shards
            return False
        _shards.check_goes_on(self.table, old, spec, self.shards)
        self.entry = {name: old[name] for name in (*spec, "splitters")}
        self.entry["shards"] = [None] * len(old["shards"])
        self.old = list(old["shards"])
        return True

    def split(
        self, blocks: List[Any], sizes: Sequence[int], schema: pa.Schema, last_counts: bool
    ) -> Tuple[List[Any], List[int]]:
        """Of each shard a reference to those of its parts, and how many rows these have."""
        n, entry, made, first = len(self.entry["shards"]), ray.put(self.entry), [], 0
        groups = np.cumsum([0, *sizes]) // _GROUP_BYTES  # of the bytes before a block
        for i in range(1, len(blocks) + 1):
            if i == len(blocks) or groups[i] != groups[first]:
                task = _split.options(num_returns=n + 1)
                made.append(task.remote(entry, schema, last_counts, *blocks[first:i]))
                first = i
        counts = np.sum(ray.get([counts for counts, *_ in made]), axis=0)
        return [ray.put(list(parts)) for parts in zip(*(parts for _, *parts in made))], counts.tolist()

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
            _manifest.sweep(self.path)
        return entry


def blocks_of(ds: Dataset) -> List[Any]:
    """References of a dataset's blocks as Arrow tables, in its order, and not in that in which they are ready."""
    options = ds.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        return ds.to_arrow_refs()
    finally:
        options.preserve_order = before


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
_task = ray.remote(max_retries=RETRIES)


@_task
def _facts(block: pa.Table) -> Tuple[pa.Schema, int, int]:
    return block.schema, len(block), block.nbytes


@_task
def _sample(block: pa.Table, spec: _shards.Spec, share: float) -> List[bytes]:
    partition = KeyPartition(_shards.key_of(spec), 1)
    return list(set(partition.sample(_shards.key_frame(block, spec), share))) if len(block) else []


@_task
def _split(entry: Entry, schema: pa.Schema, last_counts: bool, *blocks: pa.Table) -> List[Any]:
    parts = _shards.split(entry, schema, last_counts, *blocks)
    return [[0 if part is None else len(part) for part in parts], *parts]


class _Sink(Datasink[List[Dict[str, Any]]]):
    """Each of its write tasks is given the number of a shard and builds that. The driver commits them all."""

    def __init__(self, job: Job, parts: List[Any], counts: List[int], on_equal: str) -> None:
        self.job, self.parts, self.counts, self.on_equal = job, parts, counts, on_equal
        self.entry: Entry = {}

    def write(self, blocks: Iterable[Any], ctx: Any) -> List[Dict[str, Any]]:
        return [self._build(i) for block in blocks for i in BlockAccessor.for_block(block).to_numpy("id").tolist()]

    def _build(self, i: int) -> Dict[str, Any]:
        job = self.job
        parts = (part for part in map(ray.get, ray.get(self.parts[i])) if part is not None)
        with _shards.Attempt(job.path, job.job, i) as attempt:
            return _shards.build(attempt, job.table, job.entry, parts, job.old[i], self.on_equal, **job.options)

    def on_write_complete(self, write_result: Any) -> None:
        made = [shard for shards in write_result.write_returns for shard in shards]
        self.entry = self.job.commit(made, self.counts)


def _vectors(block: pa.Table, on: List[str]) -> Tuple[np.ndarray, List[str]]:
    return _shards.vectors_of(block, BlockAccessor.for_block(block.select(on)).to_numpy(on))


@_task
def shape(block: pa.Table, on: List[str]) -> Optional[Tuple[int, int, List[str]]]:
    """Rows, words of a vector, and what it is made of; None of a block without rows."""
    if len(block) == 0:
        return None
    _shards.names_of("on", on, block.column_names)
    if {"id", "new"} & set(block.column_names):
        raise InvalidArgument("the dataset has a column 'id' or 'new'", remedy="rename it: dedup() adds such")
    vectors, parts = _vectors(block, on)
    return len(block), vectors.shape[1], parts


@_task
def split_vectors(block: pa.Table, on: List[str], entry: Entry) -> List[np.ndarray]:
    n, words = len(entry["shards"]), entry["words"]
    if len(block) == 0:
        return [np.empty(0, np.uint64)] + [np.empty((0, words), np.uint32)] * n
    vectors, _ = _vectors(block, on)
    order, ends, places = _shards.partition_of(entry).order(vectors.view(f"V{4 * words}").reshape(-1))
    return [places, *np.split(vectors[order], ends[:-1].astype(np.int64))]


@_task
def number_shard(job: Job, shard: int, parts: List[Any]) -> List[Any]:
    with _shards.Attempt(job.path, job.job, shard) as attempt:
        words, old = job.entry["words"], job.old[shard]
        said, made = _shards.number_vectors(attempt, job.table, words, map(ray.get, parts), old, **job.options)
    return [said, *made]


@_task
def with_ids(block: pa.Table, places: np.ndarray, *made: Tuple[np.ndarray, np.ndarray]) -> pa.Table:
    ids = np.concatenate([i * np.uint64(len(made)) + np.uint64(shard) for shard, (i, _) in enumerate(made)])
    new = np.concatenate([is_new for _, is_new in made])
    return block.append_column("id", pa.array(ids[places])).append_column("new", pa.array(new[places]))
