"""What outlives what: views, tables, scans and snapshots of databases that are closed or gone; and memory."""

import fcntl
import gc
import os
import resource
import sys
import tracemalloc
import weakref

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import stridedb as sd


def filled(db):
    table = db.table("t", key=sd.i64, values={"a": sd.i64, "s": sd.str_, "v": sd.vector(sd.f32, 3)})
    n = 2000
    table.put(
        {
            "key": range(n), "a": np.arange(n) * 3, "s": [f"s{i}" for i in range(n)],
            "v": np.arange(3 * n, dtype="f4").reshape(n, 3)
        }
    )
    return table


def churn(path):
    """Takes and gives memory, so that what dangles is seen."""
    with sd.open(path) as db:
        for _ in range(5):
            filled(db).get(np.arange(2000))
    gc.collect()
    np.random.default_rng(0).integers(0, 255, 1 << 20, "u1").sum()


def test_views_outlive_all(path, tmp_path):
    db = sd.open(path)
    table = filled(db)
    rows = table.get(np.arange(2000))
    scanned = next(iter(table.scan(batch_rows=1000)))
    bound = table.lower_bound([5, 3000])
    kept = {
        "numpy": rows["a"].numpy(), "vectors": rows["v"].numpy(), "asarray": np.asarray(scanned["a"]),
        "keys": scanned["key"].numpy(),
        "arrow": pa.table(rows), "polars": pl.DataFrame(rows), "column": rows["s"], "found": rows.found,
        "part": rows["a"].numpy()[5:10],
        "stream": rows.__arrow_c_stream__(), "bound": bound["s"],
    }
    del rows, scanned, bound
    db.close()
    del table, db
    churn(str(tmp_path / "other"))
    assert kept["numpy"].tolist() == [i * 3 for i in range(2000)] and kept["part"].tolist() == [15, 18, 21, 24, 27]
    assert (kept["vectors"] == np.arange(6000, dtype="f4").reshape(2000, 3)).all()
    assert kept["asarray"].tolist() == [i * 3 for i in range(1000)] and kept["keys"].tolist() == list(range(1000))
    texts = [f"s{i}" for i in range(2000)]
    assert kept["arrow"]["s"].to_pylist() == kept["polars"]["s"].to_list() == kept["column"].to_list() == texts
    assert kept["found"].all() and kept["bound"].to_list() == ["s5", None]
    del kept
    gc.collect()


def test_arrays_that_are_given_may_go(db):
    table = db.table("t", key=sd.i64, values=sd.i64)
    keys = np.arange(1000)
    reference = weakref.ref(keys)
    rows = table.get(keys)
    t = db.transaction()
    t.put(table, keys, keys)
    del keys
    gc.collect()
    assert reference() is None
    t.commit()
    assert len(rows) == 1000 and len(table) == 1000


def test_scans_and_snapshots_after_close(db):
    table = filled(db)
    scan, snapshot = table.scan(batch_rows=100), db.snapshot()
    at = snapshot["t"]
    table.delete_range()
    first = next(scan)
    db.close()
    db.close()
    assert first["key"].to_list() == list(range(100)) and len([row for rows in scan for row in rows]) == 1900
    assert at[5]["a"] == 15 and at.get([5])["s"].to_list() == ["s5"] and len(at) == 2000
    assert sum(len(rows) for rows in at.scan()) == 2000
    with pytest.raises(StopIteration):
        next(scan)


def test_everything_says_closed(db):
    table, counters, prefixes = filled(db), db.counters("c"), db.prefixes("p", bits=32, values=sd.i64)
    transaction, dedup = db.transaction(), db.dedup("d", 1)
    transaction.put(counters, [b"a"], [1])
    db.close()
    calls = [
        lambda: table[1], lambda: 1 in table, lambda: len(table), lambda: table.get([1]), lambda: table.contains([1]),
        lambda: table.lower_bound([1]),
        lambda: table.put({"key": [1], "a": [1], "s": ["x"], "v": [[1, 2, 3]]}), lambda: table.delete([1]),
        lambda: table.delete_range(), lambda: table.scan(),
        lambda: counters.add([b"a"], 1), lambda: counters.group(), lambda: prefixes.match(["1.2.3.4"]),
        lambda: prefixes.match("1.2.3.4"),
        lambda: prefixes.match_all("1.2.3.4"), table.segments, table.explain, table.items().__next__,
        transaction.commit, db.tables, db.compact, db.sync, db.verify,
        db.calibrate, db.statistics, db.snapshot, db.transaction, lambda: db.size_bytes, lambda: db.backend,
        lambda: db["t"], lambda: db.table("new", key=sd.i64),
        lambda: db.drop("t"), lambda: db.dedup("e", 1), lambda: db.plan(table), lambda: "t" in db,
        lambda: db.load({"a": [1]}, table="x"),
        lambda: dedup.find_or_put(np.arange(1, dtype="u4")),
        lambda: table.put_if_absent({"key": [1], "a": [1], "s": ["x"], "v": [[1, 2, 3]]}),
    ]
    for i, call in enumerate(calls):
        with pytest.raises(sd.Closed) as caught:
            call()
        assert "closed" in str(caught.value), i
    assert repr(db) and repr(table) and db.path and table.name == "t" and table.schema


def _is_locked(path):
    with open(os.path.join(path, "LOCK")) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def test_a_second_handle_is_of_the_same_database(path):
    first, second = sd.open(path), sd.open(path)
    first.table("t", key=sd.i64, values=sd.i64)[1] = 2
    assert second["t"][1] == 2
    first.close()
    second["t"][1] = 3
    assert second["t"][1] == 3 and _is_locked(path)
    with pytest.raises(sd.Closed):
        first["t"]
    second.close()
    assert not _is_locked(path)


def test_a_reader_refreshes(path):
    with sd.open(path) as db, sd.open(path, "r") as reader:
        table = db.table("t", key=sd.i64, values=sd.i64)
        table[1] = 2
        reader.refresh()
        before = reader.snapshot()
        assert reader["t"][1] == 2
        table[1] = 3
        assert reader["t"][1] == 2
        reader.refresh()
        assert reader["t"][1] == 3 and before["t"][1] == 2
        db.refresh()
    with pytest.raises(sd.Closed):
        reader.refresh()


def test_a_table_keeps_its_database(path):
    table = sd.open(path, durability="none").table("t", key=sd.i64, values=sd.i64)
    gc.collect()
    table[1] = 2
    assert table[1] == 2
    assert _is_locked(path)
    del table
    gc.collect()
    assert not _is_locked(path)
    with sd.open(path) as db:
        assert db["t"][1] == 2


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


CALLS = {
    "get": lambda t, db: t.get(np.arange(2000)).to_dict(),
    "numpy": lambda t, db: (t.get(np.arange(2000))["v"].numpy(), t.get([5000])["a"].numpy(fill=0)),
    "arrow": lambda t, db: (pa.table(t.get(np.arange(2000))), pl.DataFrame(t.get([1]))),
    "one": lambda t, db: (t[5], t.get(5), 5 in t, t.get(-1)),
    "scan": lambda t, db: sum(len(r) for r in t.scan(batch_rows=100)),
    "put": lambda t,
    db: t.put(pa.table({"key": [1], "a": [3], "s": ["s1"], "v": pa.array([[3.0, 4, 5]], pa.list_(pa.float32(), 3))})),
    "bad": lambda t,
    db: [raised(lambda: t.get(bad)) for bad in (["x"], [None], np.array([1.5]), pa.array(["a"]), {"x": 1}, object())],
    "bad export": lambda t, db: raised(lambda: np.asarray(t.get([-1])["a"])),
    "transaction": lambda t, db: db.transaction().put(t, {"key": [1], "a": [1], "s": ["x"], "v": [[1, 2, 3]]}),
    "closed": lambda t, db: raised(lambda: sd.open(db.path)),
    "bound": lambda t, db: t.lower_bound(np.arange(100)).to_dict(),
    "cursor": lambda t, db: (list(t.cursor(5, 10)), t.cursor().seek(7), raised(lambda: t.cursor().key)),
    "counts": lambda t, db: t.counts(np.arange(100), np.arange(100)).sum(),
    "snapshot": lambda t, db: db.snapshot()["t"].get([1]).to_dict(),
}


def raised(call):
    with pytest.raises(sd.StrideError):
        call()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_nothing_leaks(db, call):
    table = filled(db)

    def many(n):
        for _ in range(n):
            call(table, db)
        gc.collect()

    many(20)
    tracemalloc.start()
    many(20)
    before, resident = tracemalloc.take_snapshot(), _resident()
    many(60)
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    grown = sum(
        s.size_diff for s in after.compare_to(before, "filename") if "tracemalloc" not in s.traceback[0].filename
    )
    assert grown < 30_000, grown
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which keeps what is given back
        assert _resident() - resident < 24 << 20


def test_references_are_given_back(db):
    table = db.table("t", key=sd.i64, values=sd.str_)
    keys, values, marker = [10**9 + i for i in range(50)], [f"value {i}" for i in range(50)], object()
    counts = [sys.getrefcount(x) for x in (keys, values, keys[0], values[0], marker)]
    for _ in range(20):
        table.put(keys, values)
        table.get(keys).to_dict()
        table.get(-1, marker)
        raised(lambda: table.put(keys, values[1:]))
        raised(lambda: table.put(keys, [*values[1:], marker]))
    assert [sys.getrefcount(x) for x in (keys, values, keys[0], values[0], marker)] == counts


def test_large_lists(db):
    n = 300_000
    table = db.table("t", key=sd.i64, values=sd.str_)
    table.put(list(range(n)), ["x" * (i % 5) for i in range(n)])
    rows = table.get(list(range(-1, n)))
    assert rows.found.sum() == n and rows["value"][-1] == "x" * ((n - 1) % 5) and len(table) == n
    table[5] = "y" * 5_000_000
    assert table[5] == "y" * 5_000_000
