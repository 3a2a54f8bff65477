"""Rows of other databases that become a part of one."""

import os

import numpy as np
import pytest

import stridedb as sd


def make_shard(path, keys, values, **options):
    with sd.open(path) as shard:
        shard.table("t", key=sd.i64, values=sd.i64, **options).put(keys, values)
        shard.compact()
    return path


def files_of(path):
    return {name: (path / name).read_bytes() for name in sorted(os.listdir(path)) if not name.startswith("LOG")}


@pytest.fixture
def shards(tmp_path):
    """Four databases, the third one without rows."""
    sizes = [1000, 500, 0, 2000]
    starts = np.cumsum([0] + sizes)
    paths = []
    for i, size in enumerate(sizes):
        keys = np.arange(starts[i], starts[i] + size)
        paths.append(make_shard(tmp_path / f"shard{i}", keys, keys * 3))
    return paths


def test_shards_become_one_table(db, path, shards):
    table = db.table("t", key=sd.i64, values=sd.i64)
    table.put([5, -1], [0, 7])
    before = [files_of(shard) for shard in shards]
    old = db.snapshot()
    shares = []
    paths = [os.fsencode(shards[3]), str(shards[2]), shards[1], shards[0]]
    assert db.adopt("t", iter(paths), progress=shares.append) == 3500
    assert shares and all(0 <= share <= 1 for share in shares)
    assert [files_of(shard) for shard in shards] == before
    assert len(table) == 3501 and table[-1] == 7 and table[5] == 15
    found = table.get(np.arange(3500))
    assert np.array_equal(np.asarray(found["value"]), np.arange(3500) * 3)
    assert len(old["t"]) == 2 and old["t"][5] == 0
    db.verify()
    db.close()
    with sd.open(path) as again:
        assert len(again["t"]) == 3501 and again["t"][3499] == 3499 * 3


def test_one_path_and_a_table(db, shards):
    table = db.table("t", key=sd.i64, values=sd.i64)
    assert db.adopt(table, shards[1]) == 500
    assert db.adopt(table, str(shards[2])) == 0
    assert db.adopt(table, []) == 0
    assert len(table) == 500


def test_what_is_refused(db, path, shards, tmp_path):
    table = db.table("t", key=sd.i64, values=sd.i64)
    again = make_shard(tmp_path / "again", [7, 9], [1, 1])
    with pytest.raises(sd.InvalidArgument, match="overlap from 7 on") as error:
        db.adopt("t", [shards[0], again])
    assert "shard0" in str(error.value) and "again" in str(error.value)
    other = tmp_path / "other"
    with sd.open(other) as shard:
        shard.table("t", key=sd.i64, values=sd.f64)
    with pytest.raises(sd.InvalidArgument, match="schema"):
        db.adopt("t", other)
    logged = tmp_path / "logged"
    with sd.open(logged) as shard:
        shard.table("t", key=sd.i64, values=sd.i64).put([1], [1])
    with pytest.raises(sd.InvalidArgument, match="compact"):
        db.adopt("t", logged)
    with pytest.raises(sd.NotFound):
        db.adopt("t", tmp_path / "none")
    with pytest.raises(sd.NotFound):
        db.adopt("none", shards)
    with pytest.raises(sd.InvalidArgument):
        db.adopt("t", path)
    with pytest.raises(sd.InvalidArgument, match="NUL"):
        db.adopt("t", ["a\0b"])
    with pytest.raises(sd.InvalidType, match="progress"):
        db.adopt("t", shards, progress=5)
    with pytest.raises(sd.ReadOnly):
        db.adopt(db.snapshot()["t"], shards)

    def stop(share):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        db.adopt("t", shards, progress=stop)
    assert len(table) == 0
    with open(next(shards[0].glob("*.seg")), "r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(sd.Corruption, match="shard0"):
        db.adopt("t", shards)
    assert len(table) == 0
    assert db.adopt("t", shards[1:]) == 2500
    db.verify()
    db.close()
    with pytest.raises(sd.Closed):
        db.adopt(table, shards)
