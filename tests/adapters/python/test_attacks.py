"""Faults that attackers have found."""

from __future__ import annotations

import datetime
import decimal
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import polars as pl
import pytest

import stridedb as sd


@pytest.fixture
def db(tmp_path):
    with sd.open(tmp_path / "app.db") as database:
        yield database


class Broken:
    def __iter__(self):
        raise RuntimeError("no iterator")


def failing():
    yield 1
    raise RuntimeError("in the middle")


def test_iterables_that_raise_change_nothing(db):
    table = db.table("t", key=int, values=int)
    hits = db.counters("hits", key=sd.i64)
    calls = [
        lambda it: table.put(it, [1, 2]),
        lambda it: table.put([1, 2], it),
        lambda it: table.put({"key": it, "value": [1, 2]}),
        lambda it: table.get(it),
        lambda it: table.delete(it),
        lambda it: hits.add(it, 1),
        lambda it: table.join({"key": it}),
    ]
    for call in calls:
        for given in (failing(), Broken()):
            with pytest.raises(RuntimeError):
                call(given)
    with pytest.raises(ValueError):
        table.get(map(int, ["1", "two"]))
    assert len(table) == 0 and len(hits) == 0


def test_a_memoryview_that_was_released(db):
    view = memoryview(b"abc")
    view.release()
    plain = db.table("plain")
    fixed = db.table("fixed", key=int, values=sd.fixed_bytes(3))
    for change in (lambda: plain.put([b"k"], [view]), lambda: plain.__setitem__(b"k", view), lambda: fixed.put([1], [view])):
        with pytest.raises(ValueError):
            change()
    assert len(plain) == 0 and len(fixed) == 0


def test_ctrl_c_in_a_generator(tmp_path):
    program = textwrap.dedent(
        """
        import os, signal, sys, time, stridedb as sd
        db = sd.open(sys.argv[1])
        t = db.table("t", key=int, values=int)
        def slow():
            yield 1
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
            yield 2
        try:
            t.put(slow(), [1, 2])
        except KeyboardInterrupt:
            print("interrupted", len(t))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "c.db")], capture_output=True, text=True, env=dict(os.environ)
    )
    assert (done.returncode, done.stdout) == (0, "interrupted 0\n"), done.stderr


@pytest.mark.parametrize("compressed", [False, True])
def test_a_dedup_table_that_is_opened_twice(tmp_path, compressed):
    with sd.open(tmp_path / "d.db") as db:
        one, other = db.dedup("d", words=1, compressed=compressed), db.dedup("d", words=1, compressed=compressed)
        assert one.find_or_put(np.array([10], "u4"))[0].tolist() == [0]
        assert other.find_or_put(np.array([20, 10], "u4"))[0].tolist() == [1, 0]
        assert len(one) == len(other) == 2
        del one
        assert other.find_or_put(np.array([30], "u4"))[0].tolist() == [2]
        with pytest.raises(sd.InvalidArgument):
            db.dedup("d", words=2, compressed=compressed)
    with sd.open(tmp_path / "d.db") as db:
        again = db.dedup("d", words=1, compressed=compressed)
        assert again.find(np.array([10, 20, 30, 40], "u4")).tolist()[:3] == [0, 1, 2]


def test_objects_of_polars(db):
    pl = pytest.importorskip("polars")
    table = db.table("b", key=int, values=sd.bytes_)
    table.put([1], pl.Series([b"abc"], dtype=pl.Object))
    table.put(pl.DataFrame({"key": [5, 6], "value": pl.Series([b"x", b"y"], dtype=pl.Object)}))
    assert list(table.items()) == [(1, b"abc"), (5, b"x"), (6, b"y")]
    with pytest.raises(sd.InvalidType):
        table.put([1], pl.Series([object()], dtype=pl.Object))


def test_join_keeps_rows_together_whatever_their_index(db):
    pd = pytest.importorskip("pandas")
    table = db.table("t", key=("k", int), values={"b": bytes, "v": sd.vector(sd.f32, 2)})
    table.put({"k": [1, 2, 3], "b": [b"1", b"2", b"3"], "v": np.arange(6, dtype="f4").reshape(3, 2)})
    frame = pd.DataFrame({"k": [1, 2, 3]})
    for given in (frame[frame.k > 1], frame[::-1], frame.set_index(pd.Index([7, 7, 7])), frame.set_index("k", drop=False)):
        joined = table.join(given)
        assert joined["b"].tolist() == [str(k).encode() for k in given["k"]]
        assert [v[0] for v in joined["v"]] == [2.0 * (k - 1) for k in given["k"]]
        assert joined.index.equals(given.index)


def test_join_makes_no_column_twice_and_keeps_those_of_the_frame(db):
    table = db.table("v", key=("k", int), values={"name": str, "name_right": str})
    table.put({"k": [1], "name": ["table"], "name_right": ["right"]})
    for frame, columns in (
        ({"k": [1], "name": ["f"]}, None),
        ({"k": [1], "name": ["f"], "name_right": ["own"]}, ["name"]),
    ):
        with pytest.raises(sd.InvalidArgument, match="two columns 'name_right'"):
            table.join(frame, columns=columns)
        assert table.join(frame, columns=["name"], suffix="_of_table")["name"] == ["f"]
    joined = table.join({"k": [1, 2], "big": [2**63, -1], "x": [b"q\0", b"r"], "m": [1, "a"]}, how="inner")
    assert (joined["big"], joined["x"], joined["m"]) == ([2**63], [b"q\0"], [1])
    with pytest.raises(sd.InvalidArgument, match="3 cells beside 2 rows"):
        table.join({"k": [1, 2], "m": [1, 2, 3]}, how="inner")


def test_join_of_prefixes_needs_no_on(db):
    table = db.prefixes("p", bits=32, values=sd.u32)
    table.put(["1.0.0.0/8"], [1])
    frame = {"prefix": ["1.0.0.0/8", "2.0.0.0/8"]}
    assert table.join(frame)["value"].to_list() == [1, None]
    assert table.join(frame, how="inner")["prefix"] == ["1.0.0.0/8"]
    for bits in (0, None):
        with pytest.raises(sd.InvalidArgument):
            db.prefixes("other", bits=bits)
    assert db.tables() == ["p"] and db.prefixes("p").address_bits == 32


def test_a_load_that_replaces_other_columns_is_one_step(db):
    pytest.importorskip("pyarrow")
    db.load({"k": [1, 2], "v": [1, 2]}, table="t", key="k")
    before = db.snapshot()
    with pytest.raises(sd.InvalidArgument):
        db.load([{"k": [1], "w": ["a"]}, {"k": [None], "w": ["b"]}], table="t", key="k", replace=True)
    assert list(db["t"].items()) == [(1, {"v": 1}), (2, {"v": 2})] and db.tables() == ["t"]
    table = db.load([{"k": [1], "w": ["a"]}, {"k": [2], "w": ["b"]}], table="t", key="k", replace=True)
    assert list(table.items()) == list(db["t"].items()) == [(1, {"w": "a"}), (2, {"w": "b"})]
    assert db.tables() == ["t"]
    assert list(before["t"].items()) == [(1, {"v": 1}), (2, {"v": 2})]
    for keys in ([5, 6], [7]):  # of keys alone
        assert list(db.load({"k": keys}, table="t", key="k", replace=True).items()) == [(k, b"") for k in keys]


def test_a_load_that_replaces_keeps_what_the_table_is(db):
    pytest.importorskip("pyarrow")
    columns = {"key": ("k", int), "values": {"v": int, "end": sd.optional(sd.timestamp_us)}}
    table = db.table("t", **columns, expires="end", ttl=3600)
    end = np.array(["2100-01-01"], "M8[us]")
    db.load({"k": [1], "v": [5], "end": end}, table="t", key="k", replace=True)
    assert len(table) == 1 and len(db.table("t", **columns, expires="end", ttl=3600)) == 1


def test_a_failed_load_drops_nothing_of_others(db):
    pytest.importorskip("pyarrow")

    def frames():
        yield {"k": [1], "v": [1]}
        db.table("t", key=("k", int), values={"v": int}).put({"k": [7], "v": [7]})
        raise RuntimeError

    with pytest.raises(RuntimeError):
        db.load(frames(), table="t", key="k")
    assert list(db["t"].items()) == [(7, {"v": 7})]


def test_what_is_known_of_tables_is_not_dropped(db):
    db.table("t", key=("id", int), values={"name": str}).put({"id": [1], "name": ["Ada"]})
    with pytest.raises(sd.InvalidArgument, match=".stride"):
        db.drop(".stride")
    assert db["t"][1] == {"name": "Ada"}


@pytest.mark.parametrize("reads", [False, True])
def test_a_change_that_failed_inside_is_told_at_the_end(db, reads):
    table = db.table("t", key=int, values=int)

    def swallow(t):
        t.put(table, [1], [1])
        with pytest.raises(sd.InvalidType):
            t.put(table, [2], [2.5])

    with pytest.raises(sd.Closed, match="a change that failed"):
        with db.transaction(reads=reads) as t:
            swallow(t)
    with pytest.raises(sd.Closed):
        db.retry(swallow)
    with db.transaction() as t:
        t.put(table, [1], [1])
        t.abort()
    assert len(table) == 0


def test_integers_of_numpy_are_exact_in_floats(db):
    table = db.table("f", key=float, values=int)
    for number in (np.int64(2**53 + 1), np.uint64(2**64 - 1), 2**53 + 1):
        with pytest.raises(sd.StrideError, match="does not fit"):
            table.put([number], [1])
    with pytest.raises(sd.InvalidType):
        table.put([np.True_], [1])
    table.put([np.int64(2**53), np.float32(1.5), np.int8(-3), np.array(2.5)], [1, 2, 3, 4])
    assert list(table.keys()) == [-3.0, 1.5, 2.5, 2.0**53]


def test_snapshots_have_the_names_of_their_time(db):
    for name in "ab":
        db.table(name, key=int, values=str).put([1], ["in " + name])
    before = db.snapshot()
    db.rename("a", "x")
    db.rename("b", "a")
    db.rename("x", "b")
    assert (before["a"][1], before["b"][1], db["a"][1]) == ("in a", "in b", "in b")
    after = db.snapshot()
    db.drop("b")
    assert after["b"][1] == "in a"
    with pytest.raises(sd.NotFound):
        after["x"]
    db.table("b", key=int, values=int).put([1], [5])
    assert after["b"][1] == "in a"
    db.close()
    assert (before["a"][1], after["a"][1]) == ("in a", "in b")


def test_cells_of_pandas_arrays(db):
    pd = pytest.importorskip("pandas")
    floats = db.table("f", key=int, values=sd.optional(sd.f64))
    floats.put([1, 2], pd.array([1.5, None], dtype="Float64"))
    assert (floats[1], floats[2]) == (1.5, None)
    numbers = db.table("n", key=int, values=sd.optional(sd.i64))
    numbers.put([1, 2], pd.array([1, None], dtype="Int64"))
    assert (numbers[1], numbers[2]) == (1, None)
    large = db.table("u", key=int, values=sd.u64)
    large.put([1, 2], pd.Series([2**63, 1], dtype=object))
    large.put(pd.DataFrame({"key": [3], "value": pd.Series([2**64 - 1], dtype=object)}))
    assert list(large.items()) == [(1, 2**63), (2, 1), (3, 2**64 - 1)]


def test_columns_keep_their_names(db):
    assert list(db.table("k", key=("value", sd.bytes_), values={"n": int}).key_columns) == ["value"]
    assert list(db.table("v", key=("id", int), values={"key": sd.bytes_}).value_columns) == ["key"]


def test_what_a_table_was_made_with_is_compared(db):
    db.counters("c", sd.i32, key=sd.i32)
    with pytest.raises(sd.InvalidArgument):
        db.counters("c", sd.i32, key=sd.i32, wrap=True)
    db.table("t", key=int, values=str)
    with pytest.raises(sd.InvalidArgument):
        db.table("t", key=int, values=str, share_values=True)


def test_a_table_of_a_snapshot_is_not_pickled_as_the_one_of_now(tmp_path):
    with sd.open(tmp_path / "p.db") as db:
        db.table("t", key=int, values=int).put([1], [1])
    with sd.open(tmp_path / "p.db", mode="r") as db:
        assert pickle.loads(pickle.dumps(db["t"]))[1] == 1
        with pytest.raises(sd.InvalidArgument, match="snapshot"):
            pickle.dumps(db.snapshot()["t"])


def test_a_load_whose_old_table_stays_says_so(db, monkeypatch):
    pytest.importorskip("pyarrow")
    db.load({"k": [1], "v": [1]}, table="t", key="k")

    def full(self, name):
        raise sd.NoSpace("the disk is full")

    monkeypatch.setattr(sd.Database, "drop", full)
    with pytest.warns(UserWarning, match=r"'t \(replaced 0\)', which could not be dropped: the disk is full"):
        table = db.load({"k": [1], "w": ["a"]}, table="t", key="k", replace=True)
    assert list(table.items()) == [(1, {"w": "a"})]
    assert list(db["t (replaced 0)"].items()) == [(1, {"v": 1})]


def test_what_an_index_raises_is_not_swallowed(db):
    class Number:
        def __index__(self):
            raise KeyboardInterrupt

    table = db.table("f", key=int, values=float)
    with pytest.raises(KeyboardInterrupt):
        table.put([1], [Number()])
    assert len(table) == 0


def test_numbers_of_other_classes(db):
    table = db.table("t", key=sd.i64, values=sd.f64)
    for bad in (
        decimal.Decimal("1E+400"), -decimal.Decimal("1E+400"), np.longdouble("1e400"), decimal.Decimal("sNaN"),
        np.datetime64("2020-01-01", "ns"), np.timedelta64(1, "ns"), np.complex64(1j), np.str_("1.5"), np.void(b"1"),
    ):
        for call in (lambda: table.put([1], [bad]), lambda: table.__setitem__(1, bad)):
            with pytest.raises(sd.InvalidArgument, match="column 'value'"):
                call()
    for good in (decimal.Decimal("-Infinity"), decimal.Decimal("0.5"), np.longdouble("inf"), np.float16(1.5)):
        table[1] = good
        assert table[1] == float(good)


def test_times_that_leave_the_years_of_python(db):
    table = db.table("t", key=sd.i64, values=sd.timestamp_us)
    east, west = (datetime.timezone(datetime.timedelta(hours=h)) for h in (5, -5))
    table.put([1, 2], [datetime.datetime(1, 1, 1, tzinfo=east), datetime.datetime(9999, 12, 31, 23, tzinfo=west)])
    assert table[1] == np.datetime64("0000-12-31T19:00:00") and table[2] == np.datetime64("10000-01-01T04:00:00")


def test_characters_that_are_none(db):
    with pytest.raises(sd.InvalidArgument, match="column 'value'"):
        db.table("t", key=sd.i64, values=sd.str_).put([1], np.array([0x7FFFFFFF], dtype="u4").view("U1"))


def test_names_of_columns_with_a_nul(db):
    table = db.table("t", key=sd.i64, values={"a\0b": sd.i64, "a\0c": sd.i64})
    table.put([1], {"a\0b": [1], "a\0c": [2]})
    table[2] = {"a\0b": 3, "a\0c": 4}
    assert list(table.items()) == [(1, {"a\0b": 1, "a\0c": 2}), (2, {"a\0b": 3, "a\0c": 4})]
    assert table[1] == {"a\0b": 1, "a\0c": 2} and table[2] == {"a\0b": 3, "a\0c": 4}


def test_join_of_frames_of_other_libraries(db):
    table = db.table("t", key=sd.i64, values={"v": sd.i64})
    table.put([1], {"v": [10]})
    derived = type("GeoDataFrame", (pd.DataFrame,), {"__module__": "geopandas.geodataframe"})
    assert table.join(derived({"k": [1]}), on="k")["v"].tolist() == [10]
    for frame in (pd.DataFrame({"k": [1]}), pl.DataFrame({"k": [1]}), pl.DataFrame({"k": [1]}).to_arrow(), {"k": [1]}):
        with pytest.raises(sd.KeyNotFound, match="the frame has no column 'x'") as caught:
            table.join(frame, on="x")
        assert caught.value.remedy == "its columns are: k"


def test_names_that_a_snapshot_has(db):
    db.table("t", key=sd.i64)
    before = db.snapshot()
    db.table("later", key=sd.i64)
    assert "t" in before and "later" not in before


def test_what_wraps_is_told_in_pythons_words(db):
    hits = db.counters("hits", sd.i32)
    hits.add([b"a"], 2**31 - 1)
    with pytest.raises(sd.InvalidArgument, match="with wrap=True"):
        hits.add([b"a"])


def test_put_if_absent_comes_last_in_a_transaction(db):
    table = db.table("t", key=sd.i64, values=sd.i64)
    table[1] = 10
    with db.transaction() as t:
        t.put_if_absent(table, [1, 2], [11, 21])
        t.delete(table, 1)
        t.put(table, [2], [20])
    assert t.was_new().tolist() == [True, False]
    assert list(table.items()) == [(1, 11), (2, 20)]
