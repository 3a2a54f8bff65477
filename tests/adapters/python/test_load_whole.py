"""A load is there as a whole or not at all, also one that replaces what a table had."""

from __future__ import annotations

import pytest

import stridedb as sd

pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")


@pytest.fixture
def db(tmp_path):
    with sd.open(tmp_path / "load.db") as database:
        yield database


def frames_that_fail(**columns):
    yield pl.DataFrame(columns)
    raise RuntimeError("in the middle")


def test_a_load_that_fails_leaves_no_table(db):
    with pytest.raises(RuntimeError):
        db.load(frames_that_fail(k=[1], v=[1]), table="t", key="k")
    assert db.tables() == []


def test_a_load_that_fails_leaves_what_was_there(db):
    db.load({"k": [1, 2], "v": ["a", "b"]}, table="t", key="k")
    for replace in (False, True):
        with pytest.raises(RuntimeError):
            db.load(frames_that_fail(k=[1], v=["x"]), table="t", key="k", replace=replace)
        assert list(db["t"].items()) == [(1, {"v": "a"}), (2, {"v": "b"})]


def test_nothing_replaces_nothing(db):
    db.load({"k": [1], "v": ["a"]}, table="t", key="k")
    with pytest.raises(sd.InvalidArgument):
        db.load([], table="t", key="k", replace=True)
    assert list(db["t"]) == [1]


def test_replacing_takes_the_rows_and_keeps_the_table(db):
    before = db.load({"k": [1, 2], "v": ["a", "b"]}, table="t", key="k")
    snapshot = db.snapshot()
    db.load([pl.DataFrame({"k": [2], "v": ["c"]}), pl.DataFrame({"k": [3], "v": ["d"]})], "t", "k", replace=True)
    assert list(before.items()) == [(2, {"v": "c"}), (3, {"v": "d"})]
    assert list(snapshot["t"]) == [1, 2]


def test_replacing_with_other_columns_makes_the_table_anew(db):
    db.load({"k": [1, 2], "v": ["a", "b"]}, table="t", key="k")
    db.load({"k": [5], "v": [0.5]}, table="t", key="k", replace=True)
    assert list(db["t"].items()) == [(5, {"v": 0.5})]


def test_replacing_the_prefixes_of_a_table(db):
    routes = db.prefixes("routes", bits=32, values={"asn": sd.u32})
    routes.put(["1.0.0.0/8"], {"asn": [1]})
    db.load({"prefix": ["10.0.0.0/8"], "asn": [2]}, table="routes", replace=True)
    assert routes.match(["10.1.1.1", "1.1.1.1"])["asn"].to_list() == [2, None]
