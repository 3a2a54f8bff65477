"""All damage of a database, and a new one of what is left."""

import pytest

import stridedb as sd


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "db"
    with sd.open(path) as db:
        table = db.table("t", key=sd.u64, values=sd.i64)
        table.put(range(50_000), range(50_000))
        db.compact()
        assert db.damage() == []
    segment = max(path.glob("*.seg"), key=lambda file: file.stat().st_size)
    content = bytearray(segment.read_bytes())
    content[70_000] ^= 1
    segment.write_bytes(content)
    return path


def test_damage(damaged, tmp_path):
    with sd.open(damaged, mode="r") as db:
        (found,) = db.damage()
        with pytest.raises(sd.Corruption):
            db.verify()
    assert found["section"] == "key_data" and found["offset"] == 65536 and found["table"] == "t"
    assert int.from_bytes(found["first_key"], "big") < int.from_bytes(found["last_key"], "big")
    assert found["file"] in found["text"]
    assert sd.verify(damaged) == [found]
    with pytest.raises(sd.NotFound):
        sd.verify(tmp_path / "none")
    with sd.open(damaged), pytest.raises(sd.Locked):
        sd.verify(damaged)


def test_salvage(damaged, tmp_path):
    shares = []
    report = sd.salvage(damaged, tmp_path / "new", progress=shares.append)
    assert not report["complete"] and shares and all(0 <= share <= 1 for share in shares)
    lost = sum(rows["rows"] for rows in report["lost"])
    assert {rows["table"] for rows in report["lost"]} == {"t"} and 0 < lost < 10_000
    with sd.open(tmp_path / "new") as db:
        assert db.damage() == []
        assert len(db["t"]) == 50_000 - lost
        assert db["t"][49_999] == 49_999
    with pytest.raises(sd.AlreadyExists):
        sd.salvage(damaged, tmp_path / "new")

    def stop(share):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        sd.salvage(damaged, tmp_path / "other", progress=stop)
    assert not (tmp_path / "other").exists()
