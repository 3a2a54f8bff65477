"""Loads of all rows into StrideDB and its peers; lookups then read what these have made."""

from __future__ import annotations

import importlib
import os
import time
from typing import Any, Dict, List

import stridedb as sd

from data import NAMES, Rows
from timing import Comparison

TYPES = {name: sd.i32 if name == "w" else sd.i64 for name in NAMES}


def module(name: str) -> Any:
    """A peer's module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _load_lmdb(path: str, rows: Rows) -> Any:
    lmdb = module("lmdb")
    env = lmdb.open(path, map_size=1 << 40, subdir=True)
    keys, values = rows.key_bytes(rows.keys[rows.sorted_places]), rows.value_bytes()
    begin = time.perf_counter()
    with env.begin(write=True) as transaction, transaction.cursor() as cursor:
        cursor.putmulti(zip(keys, (values[i] for i in rows.sorted_places.tolist())), append=True)
    return env, time.perf_counter() - begin


def _load_rocksdict(path: str, rows: Rows) -> Any:
    rocksdict = module("rocksdict")
    keys, values = rows.key_bytes(rows.keys), rows.value_bytes()
    begin = time.perf_counter()
    db = rocksdict.Rdict(path, rocksdict.Options(raw_mode=True))
    for first in range(0, len(keys), 100_000):
        batch = rocksdict.WriteBatch(raw_mode=True)
        for i in range(first, min(first + 100_000, len(keys))):
            batch[keys[i]] = values[i]
        db.write(batch)
    db.flush()
    return db, time.perf_counter() - begin


def _load_duckdb(path: str, rows: Rows) -> Any:
    duckdb = module("duckdb")
    begin = time.perf_counter()
    connection = duckdb.connect(path)
    given = {"key": rows.keys, **rows.columns}  # noqa: F841 (DuckDB finds it by its name)
    connection.execute("create table t as select * from given")
    connection.execute("checkpoint")
    return connection, time.perf_counter() - begin


_PEERS = {
    "lmdb": ("lmdb putmulti, sorted keys, append", _load_lmdb),
    "rocksdict": ("rocksdict WriteBatch", _load_rocksdict),
    "duckdb": ("DuckDB create table from NumPy", _load_duckdb),
}


def load_all(folder: str, rows: Rows, wanted: List[str]) -> tuple[Dict[str, Any], List[Comparison]]:
    """What is open then, by name, and how long each has taken, once."""
    db = sd.open(os.path.join(folder, "stride"))
    opened: Dict[str, Any] = {"stride": db}
    table = db.table("t", key=("key", sd.i64), values=TYPES)
    begin = time.perf_counter()
    table.put({"key": rows.keys, **rows.columns})
    seconds = time.perf_counter() - begin
    # The same rows with values of one cell, as bytes.
    cells = db.table("cells", key=("key", sd.i64), values=sd.fixed_bytes(44))
    cells.put(rows.keys, rows.records.view("V44"))
    comparisons = []
    for name, (what, load) in _PEERS.items():
        if name not in wanted or not module(name):
            continue
        opened[name], taken = load(os.path.join(folder, name), rows)
        comparisons.append(Comparison("put of all rows", what, None, len(rows.keys), [seconds], [taken]))
    return opened, comparisons
