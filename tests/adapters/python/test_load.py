"""Loading files and frames: all of it, or nothing."""

import datetime
import gc
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import stridedb as sd

FRAME = pa.table({
    "id": pa.array([3, 1, 2], pa.int64()), "name": ["c", None, "b"], "x": [1.5, 2.5, None],
    "day": pa.array([datetime.date(2020, 1, 1)] * 3), "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
})
EXPECTED = [
    (1, {"name": None, "x": 2.5, "day": datetime.date(2020, 1, 1), "kind": "v"}),
    (2, {"name": "b", "x": None, "day": datetime.date(2020, 1, 1), "kind": "u"}),
    (3, {"name": "c", "x": 1.5, "day": datetime.date(2020, 1, 1), "kind": "u"}),
]


def reader(table=FRAME):
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=2)))


class Stream:
    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


SOURCES = {
    "table": lambda: FRAME, "reader": reader, "stream": lambda: Stream(FRAME), "polars": lambda: pl.from_arrow(FRAME),
    "pandas": lambda: FRAME.to_pandas(types_mapper=pd.ArrowDtype), "batches": lambda: FRAME.to_batches(max_chunksize=1),
    "lists": lambda: [[FRAME[:1]], FRAME[1:]],
    "generator": lambda: (FRAME[i : i + 1] for i in range(3)),
    "dict": lambda: {n: FRAME[n] for n in FRAME.column_names}, "readers": lambda: [reader(), reader()],
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_frames(db, source):
    table = db.load(source(), table="t", key="id")
    assert list(table.items()) == EXPECTED
    assert table.schema == 'id i64 key, name string?, x f64?, day date?, kind string?'
    again = db.load(source(), table="t")
    assert list(again.items()) == EXPECTED
    replaced = db.load(FRAME[:1], table="t", key="id", replace=True)
    assert list(replaced.items()) == EXPECTED[2:]


def test_files(db, tmp_path):
    plain = FRAME.set_column(4, "kind", FRAME["kind"].cast(pa.string()))
    pa.parquet.write_table(FRAME, tmp_path / "f.parquet")
    pa.feather.write_feather(plain, str(tmp_path / "f.arrow"), compression="uncompressed")
    pa.csv.write_csv(plain, tmp_path / "f.csv")
    (tmp_path / "f.jsonl").write_text('{"id": 1, "name": "a"}\n{"id": 2, "name": null}\n')
    for name in ("f.parquet", "f.arrow"):
        assert list(db.load(tmp_path / name, table=name, key="id").items()) == EXPECTED
    assert [
        k for k, _ in db.load(str(tmp_path / "f.csv"), table="csv", key="id", progress=lambda s: None).items()
    ] == [1, 2, 3]
    assert list(db.load(tmp_path / "f.jsonl", table="json").items()) == [(1, {"name": "a"}), (2, {"name": None})]
    for bad in ("f.xyz", "f"):
        (tmp_path / bad).write_text("x")
        with pytest.raises(sd.InvalidArgument, match="ending"):
            db.load(tmp_path / bad, table="bad")
    with pytest.raises(FileNotFoundError):
        db.load(tmp_path / "missing.csv", table="bad")
    assert "bad" not in db


BROKEN = {
    "broken.parquet": "no parquet", "broken.arrow": "no arrow", "broken.jsonl": '{"id": 1', "empty.csv": "",
    "ragged.csv": "id,x\n1,2\n3\n", "letters.csv": "id,x\n" + "1,2\n" * 400_000 + "3,many\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_that_cannot_be_read(db, tmp_path, name):
    path = tmp_path / name
    path.write_text(BROKEN[name])
    with pytest.raises(sd.InvalidArgument, match="cannot be read") as caught:
        db.load(path, table="t")
    assert caught.value.file == str(path) and caught.value.remedy and name in str(caught.value)
    assert db.tables() == []


# pyarrow says of these that they are damaged, by an OSError without a name of a file.
def test_packed_files_that_are_damaged(db, tmp_path):
    packed = gzip.compress(b"id,x\n" + b"1,2\n" * 10_000)
    pa.parquet.write_table(pa.table({"id": list(range(5000))}), tmp_path / "f.parquet")
    parquet = bytearray((tmp_path / "f.parquet").read_bytes())
    parquet[4:2000] = bytes(1996)
    for name, data in (
        ("cut.csv.gz", packed[:-20]), ("plain.csv.gz", b"id,x\n1,2\n"), ("plain.csv.zst", b"id,x\n1,2\n"),
        ("zeros.parquet", parquet),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(sd.Corruption, match="cannot be read") as caught:
            db.load(path, table="t")
        assert caught.value.file == str(path) and isinstance(caught.value, OSError)
        assert db.tables() == []


def test_files_that_the_system_refuses(db, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="folder.csv"):
        db.load(tmp_path / "folder.csv", table="t")
    (tmp_path / "unreadable.csv").symlink_to("/proc/self/mem")
    with pytest.raises(OSError) as caught:
        db.load(tmp_path / "unreadable.csv", table="t")
    assert caught.value.errno is not None and not isinstance(caught.value, sd.StrideError)
    assert db.tables() == []


def test_two_columns_of_one_name(db, tmp_path):
    (tmp_path / "values.csv").write_text("id,x,x\n1,2,3\n")
    (tmp_path / "keys.csv").write_text("id,x,id\n1,2,3\n")
    frame = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["id", "x", "x"])
    for source, column in ((tmp_path / "values.csv", "x"), (tmp_path / "keys.csv", "id"), (frame, "x")):
        for replace in (False, True):
            with pytest.raises(sd.InvalidArgument, match=f"two columns '{column}'"):
                db.load(source, table="t", replace=replace)
        assert db.tables() == []
    table = db.table("t", key=("id", sd.i64), values={"x": sd.i64})
    with pytest.raises(sd.InvalidArgument, match="two columns 'x'"):
        db.load(frame, table="t")
    assert len(table) == 0


def failing(error, n=2):
    for i in range(n):
        yield {"id": np.arange(i * 10, i * 10 + 10), "v": np.arange(10)}
    raise error


@pytest.mark.parametrize(
    "error", [RuntimeError("midway"), KeyboardInterrupt(), GeneratorExit(), MemoryError()], ids=repr
)
def test_a_source_that_fails_midway(db, error):
    table = db.table("t", key=("id", sd.i64), values={"v": sd.optional(sd.i64)})
    table.put({"id": [1], "v": [77]})
    for replace in (False, True):
        with pytest.raises(type(error)):
            db.load(failing(error), table="t", replace=replace)
        assert list(table.items()) == [(1, {"v": 77})]
    with pytest.raises(type(error)):
        db.load(failing(error), table="new", key="id")
    assert db.tables() == ["t"]
    # Also one whose columns are others than those of the table that is replaced.
    other = db.table("o", key=("id", sd.i64), values={"w": sd.str_})
    other.put({"id": [1], "w": ["x"]})
    with pytest.raises(type(error)):
        db.load(failing(error), table="o", replace=True)
    assert list(db["o"].items()) == [(1, {"w": "x"})]
    assert list(db.load([{"id": [5], "v": [6]}], table="o", replace=True).items()) == [(5, {"v": 6})]
    gc.collect()


def test_sources_that_are_none(db):
    for bad in (
        [], iter([]), 5, None, b"x", [5], ["x"], [{"id": [1], "v": [1]}, {"id": ["x"], "v": [1]}],
        [{"id": [1]}, {"id": [2], "v": [3]}], [{"id": [None], "v": [1]}],
        [{"id": [1, 2], "v": [1]}], {"id": [1j]}, {"id": [[1]], "v": [{}]}, {}, pl.DataFrame({"id": [[1, 2]]}),
        FRAME.select(["name"]), reader(FRAME[:0].select([])),
    ):
        with pytest.raises((sd.InvalidArgument, ValueError, TypeError, pa.ArrowException)) as caught:
            db.load(bad, table="t")
        assert str(caught.value) and db.tables() == []
    with pytest.raises(sd.InvalidArgument, match="no column 'nope'"):
        db.load(FRAME, table="t", key="nope")
    db.close()
    with pytest.raises(sd.Closed):
        db.load(FRAME, table="t")
    with pytest.raises(sd.Closed):
        db.load(failing(RuntimeError("x")), table="t")


def test_columns_of_keys_alone_are_a_set(tmp_path):
    with sd.open(str(tmp_path / "db")) as db:
        words = db.load([{"word": ["b", "a"]}, {"word": ["c"]}], table="words")
        assert list(words.keys()) == ["a", "b", "c"]
        assert "b" in words and "d" not in words
        assert words["a"] == b""
        pairs = db.load({"y": [1, 1], "x": [5, 4]}, table="pairs", key=["x", "y"])
        assert list(pairs.keys()) == [(4, 1), (5, 1)]
        with pytest.raises(sd.InvalidArgument, match="no column 'value'"):  # it may have been forgotten
            words.put({"word": ["z"]})
