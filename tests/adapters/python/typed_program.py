"""Uses the whole public interface in its types. A type checker reads it; test_types.py runs it, too."""

import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import numpy.typing as npt

import stridedb as sd
from stridedb import errors


def tables(db: sd.Database) -> None:
    users: sd.Table = db.table("users", key=("id", sd.i64), values={"name": sd.str_, "score": sd.optional(sd.f64)})
    users.put({"id": [17], "name": ["Ada"], "score": [1.5]}, on_equal="error", durability="flush")
    users.put([18], {"name": ["Bo"], "score": [None]}, progress=lambda share: None)
    users[4] = {"name": "Max", "score": None}
    new: npt.NDArray[np.bool_] = users.put_if_absent([4, 5], {"name": ["a", "b"], "score": [0.0, 1.0]})
    assert new.tolist() == [False, True]
    assert users[17]["name"] == "Ada" and 17 in users and len(users) == 4
    rows: sd.Rows = users.get([4, 6], columns=["name"])
    found: npt.NDArray[np.bool_] = rows.found
    row: Optional[Dict[str, Any]] = rows[0]
    column: sd.Column = rows["name"]
    cells: List[Any] = column.to_list()
    assert row == {"name": "Max"} and list(column) == cells and column[0] == "Max" and len(rows) == 2
    assert found.tolist() == column.valid().tolist()
    kind: sd.Type = column.type
    assert kind.nullable and kind.width == 0 and column.name == "name"
    assert users.get(99, default="x") == "x" and users.contains([99]).tolist() == [False]
    assert rows.to_dict()["name"] == cells and list(rows.to_numpy(fill="")) == rows.columns == ["name"]
    above: sd.Rows = users.lower_bound([6])
    numbers: npt.NDArray[Any] = above["id"].numpy(fill=0)
    assert numbers.tolist() == [17] and np.asarray(above["id"]).tolist() == [17]
    for each in rows:
        assert each is None or "name" in each
    joined = users.join({"id": np.array([17])}, on="id", how="inner", columns=["name"], suffix="_2")
    assert list(joined) == ["id", "name"]
    scan: sd.Scan = users.scan(4, 18, reverse=True, columns=["name"], batch_rows=2)
    assert sum(len(batch) for batch in scan) == 3
    pairs: Iterator[Tuple[Any, Any]] = users.items(5, reverse=True)
    assert next(pairs)[0] == 18 and list(users.keys()) == list(users) == [4, 5, 17, 18]
    counts: npt.NDArray[np.uint64] = users.counts([4, 5], [17, 18])
    assert users.count(5, 18) + users.count() == 6 and counts.tolist() == [2, 2]
    assert users.upper_bound([17])["id"].to_list() == users.previous([20])["id"].to_list() == [18]
    with users.cursor(5, stop=18) as cursor:
        moved: bool = cursor.seek(6) and cursor.previous() and cursor.next() and cursor.valid
        moved = moved and cursor.seek_for_previous(6) and cursor.seek_to_last() and cursor.seek_to_first()
        found_key, found_value = next(cursor)
        assert moved and found_key == cursor.key == 5 and found_value == cursor.value
        assert [key for key, _ in cursor] == [5, 17]
    cursor.close()
    segments: List[Dict[str, Any]] = users.segments()
    assert isinstance(users.explain(), str) and isinstance(segments, list)
    types: Dict[str, sd.Type] = {**users.key_columns, **users.value_columns}
    assert types["id"] == sd.i64 and users.schema and users.name == "users" and users.address_bits == 0
    del users[4]
    users.delete([5])
    users.delete_range(17, None, durability="sync")
    db.drop("users")


def others(db: sd.Database) -> None:
    routes = db.prefixes("routes", bits=32, values={"asn": sd.u32})
    routes.put(["10.0.0.0/8"], {"asn": [1]})
    assert routes.match("10.1.1.1")["asn"] == 1 and len(routes.match_all("10.0.0.1")) == 1
    assert routes.match(["10.1.1.1"], columns=["asn"]).found.tolist() == [True]
    hits = db.counters("hits", sd.i64, key=sd.str_, wrap=False)
    hits.add(["a", "b"], [1, 2])
    groups: sd.Rows = hits.group("sum", "min", "max", prefix_bytes=0)
    assert groups["sum"].to_list() == [3]
    vectors = np.array([[1, 2], [1, 2]], dtype=np.uint32)
    states: sd.Dedup = db.dedup("states", 2, compressed=True, durability="none", threads=1)
    for vector_set in (states, sd.VectorSet(2, form="slots", capacity=100, backend="host", threads=1)):
        ids, new = vector_set.find_or_put(vectors)
        assert vector_set.find(vectors).tolist() == ids.tolist() and new.tolist() == [True, False]
        assert vector_set.get(ids).shape == (2, 2) and len(vector_set) == 1 and vector_set.absent
        assert vector_set.words == 2 and vector_set.memory_bytes > 0
    in_memory = sd.VectorSet(2)
    in_memory.clear()
    assert in_memory.id_limit >= 0
    texts = sd.RowSet(threads=1)
    assert texts.put(["a", "a"], text=True).tolist() == [True, False] and len(texts) == 1
    mapping = db.table("mapping", key=sd.str_, values=sd.u64)
    mapping.put(["a", "b"], [0, 1])
    plan: sd.Plan = db.plan("mapping", ["a", "b", "z"], names=False, targets=2, unmapped="count")
    sums: npt.NDArray[Any] = plan.map([1, 2, 4], into=np.zeros(2, dtype=np.int64), reproducible=True)
    assert sums.tolist() == [1, 2] and plan.unmapped == 1 and plan.sources == 3 and plan.targets == 2
    assert plan.backend and plan.memory_bytes > 0 and isinstance(plan.target_names, list)
    assert db.map_weights(mapping, ["a"], [2.0], reproducible=True).tolist() == [2.0]
    with db.transaction() as t:
        t.put(hits, ["c"], [5])
        t.add(hits, "a", 1)
        t.put_if_absent(mapping, ["a"], [7])
        t.delete(hits, "b")
        t.delete_range(hits, "x", "y")
        staged: int = t.staged_rows
    assert staged == 5 and t.was_new().tolist() == [False]
    other: sd.Transaction = db.transaction()
    other.abort()
    third = db.transaction()
    third.commit(durability="sync", progress=None)
    with db.transaction(reads=True) as reading:
        assert reading.count(mapping, "a", stop="b") == 1 and reading.counts(mapping, ["a"], ["c"]).tolist() == [2]
        assert len(reading.lower_bound(mapping, ["a"])) == len(reading.upper_bound(mapping, ["a"])) == 1
        assert len(reading.previous(mapping, ["a"])) == 1
        within: sd.Cursor = reading.cursor(mapping, prefix="a")
        assert [key for key, _ in within] == ["a"]


def types() -> List[sd.Type]:
    return [
        sd.bool_, sd.i8, sd.i16, sd.i32, sd.i64, sd.u8, sd.u16, sd.u32, sd.u64, sd.f32, sd.f64, sd.date, sd.timestamp,
        sd.timestamp_s, sd.timestamp_ms, sd.timestamp_us, sd.timestamp_ns, sd.uuid, sd.str_, sd.bytes_,
        sd.fixed_bytes(3), sd.vector(sd.f32, 64), sd.optional(sd.i8), sd.Type("f32[64]?"),
    ]


def main(path: "os.PathLike[str]") -> None:
    with sd.open(path, "a", durability="none", threads=1, background=False, backend="host") as db:
        tables(db)
        others(db)
        before: sd.Snapshot = db.snapshot()
        names: List[str] = db.tables()
        assert "hits" in db and db["hits"].name == before["hits"].name == before.table("hits").name
        assert list(db) == names and db.path and not db.read_only and isinstance(db.options, dict)
        assert db.size_bytes > 0 and db.backend and isinstance(db.statistics(), list)
        db.sync()
        db.compact()
        db.verify()
        try:
            db.table("hits", create=False)["nobody"]
        except sd.KeyNotFound as error:
            what: str = error.message + error.remedy
            where: Tuple[Optional[str], Optional[int]] = (error.file, error.offset)
            assert what and where == (None, None) and isinstance(error, errors.StrideError)
    assert len(types()) == 24 and sd.__version__
