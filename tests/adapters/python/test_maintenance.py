"""Checkpoints, backups, metrics and diagnoses: that what the library does can be had from Python."""

import os

import pytest

import stridedb as sd


@pytest.fixture
def filled(db):
    table = db.table("t", key=sd.i64, values=sd.i64)
    table.put(range(1000), range(1000))
    return db


def test_copies(filled, tmp_path):
    shares = []
    report = filled.checkpoint(tmp_path / "checkpoint", progress=shares.append)
    assert report["files"] > 0 and shares and all(0 <= share <= 1 for share in shares)
    with sd.open(tmp_path / "checkpoint") as copy:
        assert len(copy["t"]) == 1000
        copy["t"][5000] = 1
    first = filled.backup(str(tmp_path / "backup"))
    assert first["copied_bytes"] == first["bytes"] > 0
    filled["t"][1000] = 1000
    filled.backup(os.fsencode(tmp_path / "backup"))
    report = sd.restore(tmp_path / "backup", tmp_path / "restored")
    assert report["copied_files"] == report["files"]
    with sd.open(tmp_path / "restored") as copy:
        assert len(copy["t"]) == 1001 and copy["t"][1000] == 1000
    assert len(filled["t"]) == 1001


def test_copies_that_may_not_be(filled, tmp_path):
    with pytest.raises(sd.AlreadyExists):
        filled.checkpoint(tmp_path)
    with pytest.raises(sd.NotFound):
        sd.restore(tmp_path / "none", tmp_path / "restored")
    with pytest.raises(sd.InvalidArgument, match="NUL"):
        filled.backup("a\0b")
    with pytest.raises(sd.InvalidType, match="progress"):
        filled.backup(tmp_path / "b", progress=5)

    def stop(share):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        filled.checkpoint(tmp_path / "stopped", progress=stop)
    assert not (tmp_path / "stopped").exists()
    filled.close()
    for call in (lambda: filled.checkpoint(tmp_path / "c"), lambda: filled.backup(tmp_path / "d"), filled.metrics):
        with pytest.raises(sd.Closed):
            call()


def test_metrics(filled):
    table = filled["t"]
    before = filled.metrics()
    assert before["state"]["rows"] >= 1000 and before["state"]["poisoned"] is False
    assert table[5] == 5 and table.get(-1) is None
    table[2000] = 1
    after = filled.metrics()
    gained = {name: after["operations"][name] - before["operations"][name] for name in ("gets", "get_found", "committed_rows")}
    assert gained == {"gets": 2, "get_found": 1, "committed_rows": 1}
    assert after["operations"]["commit_latency"]["count"] == before["operations"]["commit_latency"]["count"] + 1
    assert set(after) == {"operations", "work", "state"}
    assert 'stride_table_rows{table="t"} 1001\n' in filled.prometheus()


def test_diagnoses(filled, path, tmp_path):
    findings = sd.diagnose(path)
    assert findings[0]["what"] and all(f["fine"] == (f["advice"] == "") for f in findings)
    with pytest.raises(sd.NotFound):
        sd.diagnose(tmp_path / "none")
