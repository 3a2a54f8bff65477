"""Batches of keys: StrideDB beside C++, Python's dict, stores, DuckDB and DataFrame libraries."""

from __future__ import annotations

import os
import subprocess
from typing import Any, Dict, List

import numpy as np

from data import NAMES, Rows
from puts import module
from timing import Comparison, Contender, compare

TABLE = "t"


class Native:
    """The C++ program, which looks the same batches up in the same database."""

    def __init__(self, program: str, database: str, folder: str, rows: Rows) -> None:
        keys = os.path.join(folder, "keys.bin")
        np.concatenate(rows.batches).tofile(keys)
        arguments = [program, database, TABLE, keys, str(len(rows.batches[0]))]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, calls: int) -> float:
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def _stores(opened: Dict[str, Any], rows: Rows) -> List[Contender]:
    peers = []
    as_bytes = [rows.key_bytes(batch) for batch in rows.batches[:2]]
    if "lmdb" in opened:
        transaction = opened["lmdb"].begin(buffers=False)

        def getmulti(i: int) -> Any:
            return transaction.cursor().getmulti(as_bytes[i % 2])

        def check(pairs: Any, i: int) -> None:
            rows.check_records([value for _, value in pairs], i)

        peers.append(Contender("lmdb getmulti", getmulti, check, goal=25))
    if "rocksdict" in opened:
        db = opened["rocksdict"]
        peers.append(Contender("rocksdict list of keys", lambda i: db[as_bytes[i % 2]], rows.check_records, goal=35))
    return peers


def _dict(rows: Rows) -> Contender:
    mapping = dict(zip(rows.keys.tolist(), rows.value_bytes()))
    lists = [batch.tolist() for batch in rows.batches[:2]]

    def check(answer: Any, i: int) -> None:
        rows.check_records([answer[key] for key in lists[i % 2]], i)

    return Contender("dict comprehension", lambda i: {key: mapping[key] for key in lists[i % 2]}, check, goal=5)


def _duckdb_join(connection: Any, rows: Rows, keys: int, goal: float) -> Contender:
    def join(i: int) -> Any:
        q = {"key": rows.batches[i % len(rows.batches)][:keys]}  # noqa: F841 (found by its name)
        return connection.execute("select t.* from q join t using (key)").fetchnumpy()

    def check(answer: Any, i: int) -> None:
        if keys == len(rows.batches[0]):
            rows.check_any_order(answer["key"], answer, i)
        elif sorted(answer["key"].tolist()) != sorted(rows.batches[i][:keys].tolist()):
            raise SystemExit("wrong answer: keys")

    return Contender(f"DuckDB join with a stored table, {keys:,} keys", join, check, goal=goal)


def _polars(rows: Rows) -> List[Contender]:
    polars = module("polars")
    if not polars:
        return []
    table = polars.DataFrame({"key": rows.keys, **rows.columns})

    def asked(i: int) -> Any:
        return polars.DataFrame({"key": rows.batches[i % len(rows.batches)]})

    def check(answer: Any, i: int) -> None:
        rows.check_any_order(answer["key"].to_numpy(), {name: answer[name].to_numpy() for name in NAMES}, i)

    def left(i: int) -> Any:
        return asked(i).join(table, on="key", how="left")

    def inner(i: int) -> Any:
        return table.join(asked(i), on="key")

    return [
        Contender("Polars left join, which builds its table", left, check, goal=3),
        Contender("Polars inner join, probe side all rows", inner, check, goal=1),
    ]


def _pandas(rows: Rows) -> List[Contender]:
    pandas = module("pandas")
    if not pandas:
        return []
    table = pandas.DataFrame({"key": rows.keys, **rows.columns})
    indexed = table.set_index("key")
    index = indexed.index
    index.get_indexer(rows.batches[0])  # makes its table

    def merge(i: int) -> Any:
        return pandas.DataFrame({"key": rows.batches[i % len(rows.batches)]}).merge(table, on="key", how="left")

    def take(i: int) -> Any:
        return indexed.take(index.get_indexer(rows.batches[i % len(rows.batches)]))

    def check_places(answer: Any, i: int) -> None:
        if not np.array_equal(answer, rows.places[i]):
            raise SystemExit("wrong answer: places")

    return [
        Contender("pandas.merge", merge, rows.check_columns, goal=15),
        Contender("pandas get_indexer and its rows", take, rows.check_columns, goal=4),
        Contender(
            "pandas get_indexer, no rows",
            lambda i: index.get_indexer(rows.batches[i % len(rows.batches)]),
            check_places,
            goal=4,
        ),
    ]


def _searchsorted(rows: Rows) -> List[Contender]:
    keys, records = rows.keys[rows.sorted_places], rows.records[rows.sorted_places]

    def places(i: int) -> np.ndarray:
        return np.searchsorted(keys, rows.batches[i % len(rows.batches)])

    def check_places(answer: np.ndarray, i: int) -> None:
        if not np.array_equal(rows.sorted_places[answer], rows.places[i]):
            raise SystemExit("wrong answer: places")

    return [
        Contender("numpy.searchsorted and its rows", lambda i: records[places(i)], rows.check_columns, goal=4),
        Contender("numpy.searchsorted, no rows", places, check_places, goal=4),
    ]


def compare_lookups(
    opened: Dict[str, Any], rows: Rows, native: Any, wanted: List[str], repeat: int
) -> List[Comparison]:
    table = opened["stride"][TABLE]
    batch = len(rows.batches[0])

    def get(keys: int) -> Any:
        return lambda i: table.get(rows.batches[i % len(rows.batches)][:keys])

    def check(answer: Any, i: int) -> None:
        if not answer.found.all():
            raise SystemExit("wrong answer: a key is not found")
        rows.check_columns(answer.to_numpy(), i)

    def check_all(answer: Any, i: int) -> None:
        if not answer.all():
            raise SystemExit("wrong answer: a key is not found")

    stride = Contender("StrideDB", get(batch), check, calls=5)
    contains = Contender("StrideDB", lambda i: table.contains(rows.batches[i % len(rows.batches)]), check_all, calls=5)
    what = f"get of {batch:,} keys"
    comparisons = []
    if native:
        same = Contender("C++, keys as they are stored", lambda i: None, calls=5, seconds=native.seconds, goal=0.95)
        comparisons += compare(what, batch, stride, [same], 3 * repeat)
    groups = [
        ("stores", lambda: _stores(opened, rows)),
        ("dict", lambda: [_dict(rows)]),
        ("duckdb", lambda: [_duckdb_join(opened["duckdb"], rows, batch, 5)] if "duckdb" in opened else []),
        ("polars", lambda: _polars(rows)),
        ("pandas", lambda: _pandas(rows)),
        ("numpy", lambda: _searchsorted(rows)),
    ]
    for name, make in groups:
        if name not in wanted:
            continue
        peers = make()
        comparisons += compare(what, batch, stride, peers, repeat)
        without = [peer for peer in peers if peer.name.endswith("no rows")]
        comparisons += compare(f"contains of {batch:,} keys", batch, contains, without, repeat)
    if "duckdb" in opened:
        few = min(1000, batch)
        comparisons += compare(
            f"get of {few:,} keys",
            few,
            Contender("StrideDB", get(few), calls=200),
            [_duckdb_join(opened["duckdb"], rows, few, 100)],
            repeat,
        )
    return comparisons
