"""Input that is wrong: each call raises an exception that says so, and changes nothing."""

import base64
import datetime
import decimal
import io
import uuid
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import foreign_strings
import stridedb as sd
from random_tables import CELLS


@pytest.fixture
def table(db):
    table = db.table("t", key=sd.i64, values={"v": sd.i32, "s": sd.optional(sd.str_)})
    table.put({"key": [1], "v": [10], "s": ["one"]})
    yield table
    assert list(table.items()) == [(1, {"v": 10, "s": "one"})]


class Raises:
    """Raises whatever it is asked for."""

    def _raise(self, *arguments):
        raise RuntimeError("from within")

    __index__ = __float__ = __len__ = __iter__ = __array__ = __repr__ = __bool__ = _raise


BAD_KEYS = [
    [1.0], [1.5], ["1"], [b"1"], [True], [None], [[1]], [(1,)], [2**63], [-(2**63) - 1], [10**5000], [object()],
    [1, "2"], [1, None],
    [decimal.Decimal(1)], [datetime.date(2020, 1, 1)], [{}], [np.float64(1)], [uuid.UUID(int=1)], [Raises()],
    np.array([1.0]), np.array([True]), np.array(["1"]), np.array([b"1"]), np.array([1, None], dtype=object),
    np.array([1.5], dtype=object),
    np.array([[[1]]]), np.array([[1, 2]]), np.array([2**63], "u8"), np.array([1j]), np.array([1], "M8[us]"),
    np.array([1], "m8[s]"),
    np.array([(1, 2)], dtype=[("a", "i8"), ("b", "i8")]), np.array([(1,)], dtype=[("a", "i8")]),
    np.ma.array([1, 2], mask=[0, 1]),
    np.zeros(2, "V8"), np.zeros(2, "V0"), np.zeros((2, 0), "i8"), np.array([1], "g"), np.array([float("nan")]),
    pa.array([1.0]), pa.array(["1"]), pa.array([1, None]), pa.array([True]), pa.array([[1]]), pa.array([b"1"]),
    pa.array([1], pa.duration("s")), pa.array([1], pa.time32("s")), pa.array([1], pa.decimal128(5)),
    pa.array([1], pa.timestamp("s")),
    pa.chunked_array([[1], [None]]), pa.chunked_array([["x"], ["y"]]), pa.array([1, None]).dictionary_encode(),
    pa.nulls(1),
    pa.array([None, 1], pa.int64())[:1], pa.array([2**63], pa.uint64()), pa.table({"x": [1]}), pa.table({"key": [1.5]}),
    pa.table({"x": [1], "y": [2]}),
    pl.Series([1.5]), pl.Series(["a"]), pl.Series([1, None]), pl.Series([[1]]), pl.Series([object()], dtype=pl.Object),
    pl.DataFrame({"x": [1]}), pd.Series([1.5]), pd.Series(["a"]), pd.Series([1, None], dtype="Int64"),
    pd.Series([1, "a"], dtype=object),
    pd.Series([1, None], dtype=object), pd.Index([1.5]), pd.DataFrame({"x": [1]}), {"x": [1]}, {"key": [None]},
    {1: [1]}, {"key": 1}, {"\udc80": [1]},
    memoryview(b"ab").cast("c"), (x for x in [1, 1.5]), iter(["a"]), {1.5}, "abc", b"abc", object(), 1.5, [range(3)],
    Raises(),
]


@pytest.mark.parametrize("keys", BAD_KEYS, ids=lambda k: f"{type(k).__name__}-{id(k)}")
def test_bad_keys(table, keys):
    if hasattr(keys, "__next__"):
        with pytest.raises(sd.InvalidArgument):
            table.contains(keys)
        return
    for call in (
        table.get, table.contains, table.delete, table.lower_bound, lambda k: table.put(k, {"v": [1], "s": ["x"]})
    ):
        with pytest.raises((sd.InvalidArgument, RuntimeError)) as caught:
            call(keys)
        assert caught.type is not RuntimeError or str(caught.value) == "from within"
        assert str(caught.value) and len(str(caught.value)) < 1000


BAD_VALUES = [
    [1.0], ["1"], [None], [2**31], [-(2**31) - 1], [True], [1, 2], [], np.array([1.0]), np.array([2**31]), np.array(1),
    np.ma.array([1], mask=[1]),
    pa.array([2**31]), pa.array([1, 2]), pa.array([None], pa.int32()), pa.nulls(1), 5, "x", None, {}, [[1]], [Raises()],
    pl.Series([2**31]),
    pd.Series([None]), np.array([1], dtype=">f4"), object(),
]


@pytest.mark.parametrize("values", BAD_VALUES, ids=lambda k: f"{type(k).__name__}-{id(k)}")
def test_bad_values(table, values):
    for call in (
        lambda: table.put({"key": [5], "v": values}), lambda: table.put([5], {"v": values}),
        lambda: table.put_if_absent([5], {"v": values}),
    ):
        with pytest.raises((sd.InvalidArgument, RuntimeError)) as caught:
            call()
        assert str(caught.value)
    if not isinstance(values, int) and getattr(values, "ndim", 1):  # which are one value
        with pytest.raises((sd.InvalidArgument, RuntimeError)):
            table[5] = {"v": values}


def test_bad_rows(table):
    for frame in (
        {"key": [5]}, {"key": [5], "v": [1], "x": [1]}, {"key": [5, 6], "v": [1]}, {"v": [1]}, {}, [1], 5, "x", None,
        {"key": [5], "v": [1], "a\udc80": [1]},
        {"key": [5], "v": [1], 3: [4]}, pa.table({"key": [5], "v": [1], "w": [1]}),
        pl.DataFrame({"key": [5], "v": ["a"]}),
        pa.table([[5], [1], [2]], names=["key", "v", "v"]), pa.table({"key": [5, None], "v": [1, 2]}),
        pd.DataFrame({"key": [5], "v": [1.5]}),
        pd.DataFrame([[5, 1, 2]], columns=["key", "v", "v"]), pa.array([5]), pa.array([{"key": 5, "v": 1}, None]),
        [{"key": 5}], Raises(), object(),
        {"key": [5], "v": [1], "": [1]}, {"key": [5], "v": [1], "é\n\0": [1]},
    ):
        with pytest.raises((sd.InvalidArgument, ValueError, RuntimeError)) as caught:
            table.put(frame)
        assert str(caught.value)
    for key, value in (
        (5, {}), (5, {"v": 1, "x": 2}), (5, 5), (5, None), (5, {"v": None}), (5, {"v": "a"}), (None, {"v": 1}),
        (5, {"v": 1, "\udc80": 1}), (5, {"v": 1, 3: 1}),
        ([5, 6], {"v": 1}), ([5], {"v": [1, 2]}), (5, [1, "a"]),
    ):
        with pytest.raises(sd.InvalidArgument):
            table[key] = value
    with pytest.raises(sd.InvalidArgument, match="'first'"):
        table.put({"key": [5], "v": [1]}, on_equal="first")
    with pytest.raises(sd.AlreadyExists):
        table.put({"key": [5, 5], "v": [1, 2]}, on_equal="error")
    for durability in ("bogus", ""):
        with pytest.raises(sd.InvalidArgument, match="durability"):
            table.put({"key": [5], "v": [1]}, durability=durability)
    for bad in (1.5, "a", (1,), [1], None):
        with pytest.raises(sd.InvalidArgument):
            table[bad]
        with pytest.raises(sd.InvalidArgument):
            del table["x" if isinstance(bad, (list, tuple)) else bad]  # of which all are deleted
        if bad is not None:
            with pytest.raises(sd.InvalidArgument):
                table.scan(bad)
            with pytest.raises(sd.InvalidArgument):
                table.delete_range(None, bad)
    with pytest.raises(sd.InvalidArgument, match="prefix"):
        table.scan(prefix=1)


def test_what_a_message_says(table):
    with pytest.raises(sd.InvalidArgument) as caught:
        table.put({"key": [5, 6], "v": np.array([1, 2**40])})
    assert caught.value.message == "column 'v', row 1: 1099511627776 does not fit in i32"
    with pytest.raises(sd.InvalidType) as caught:
        table.put({"key": np.array([1.5]), "v": [1]})
    assert caught.value.message == "column 'key' is of type i64, and cells of type f64 are given"
    assert caught.value.remedy.startswith("round it and convert it to an integer type first")
    assert isinstance(caught.value, (sd.StrideError, ValueError)) and isinstance(caught.value, TypeError)
    with pytest.raises(KeyError) as caught:
        table[7]
    assert str(caught.value) == "table 't' has no key 7"


def test_composite_keys(db):
    table = db.table("t", key=[("a", sd.i64), ("b", sd.str_)], values=sd.optional(sd.i64))
    table.put([(1, "x"), (2, "y")], [10, 20])
    for one in ((1, "x"), (np.int64(1), "x"), (np.int32(1), np.str_("x"))):
        assert table.get(one) == table[one] == 10 and one in table
    for many in (
        [(1, "x"), (2, "y")], ([1, 2], ["x", "y"]), [[1, 2], ["x", "y"]], (np.array([1, 2]), pa.array(["x", "y"])),
        {"a": [1, 2], "b": ["x", "y"]}
    ):
        assert table.get(many)["value"].to_list() == [10, 20]
    for bad in (
        (), (1,), (1, "x", 2), (1, 2), ("x", 1), (None, "x"), (1, None), [(1,)], [()], [(1, "x"), 5], [1, 2, 3],
        ([1, 2],), ([1], ["x", "y"]),
        {"a": [1]}, 5, "x", None, [("x", 1)], [(1, "x"), (1, "x", 2)], np.array([[1, 2]]), (np.array(1), "x", 2),
        [(None, "x")], [(1, "\ud800")],
    ):
        for call in (table.get, table.delete, lambda k: table.put(k, [1])):
            with pytest.raises(sd.InvalidArgument):
                call(bad)
    for call in (table.__getitem__, table.__contains__, table.__delitem__):
        for bad in ((), (1,), 5, None, {}):
            with pytest.raises(sd.InvalidArgument):
                call(bad)
    table[3, "z"] = None
    assert dict(table.items()) == {(1, "x"): 10, (2, "y"): 20, (3, "z"): None}


def test_texts(db):
    table = db.table("t", key=sd.str_, values=sd.bytes_)
    for bad in ("\ud800", "a\udcffb"):
        for call in (
            table.__getitem__, table.__contains__, lambda k: table.get([k]), lambda k: table.put([k], [b""]),
            lambda k: table.scan(prefix=k)
        ):
            with pytest.raises(sd.InvalidArgument, match="surrogates"):
                call(bad)
    for bad in (b"x", 5, bytearray(b"x")):
        with pytest.raises(sd.InvalidType):
            table[bad]
    with pytest.raises(sd.InvalidType, match="stridedb.str_ in place of bytes"):
        table["x"] = "y"
    table["é\0x"] = b"\0\xff"
    table[""] = bytearray(b"")
    table["m"] = memoryview(b"abcd")[::2]
    assert dict(table.items()) == {"": b"", "m": b"ac", "é\0x": b"\0\xff"}


def test_numbers_that_do_not_fit(db):
    for type, bad in ((sd.f32, [1e300, -1e300, 2**24 + 1, 10**400]), (sd.f64, [2**53 + 1, 10**400, -(2**1024)])):
        table = db.table(str(type), key=sd.i64, values=type)
        for number in bad:
            with pytest.raises(sd.InvalidArgument, match="does not fit"):
                table[1] = number
            if abs(number) < 2**63:
                with pytest.raises(sd.InvalidArgument):
                    table.put([1], np.array([number]))
        for good in (float("inf"), -float("inf"), 2**24, -0.0, 0.5, np.float16(0.5), True == 1.0 and 1):
            table[1] = good
            assert table[1] == good
        for wrong in (True, "1", None, 1j, b"1"):
            with pytest.raises(sd.InvalidArgument):
                table[1] = wrong


def test_times_that_do_not_fit(db):
    dates = db.table("d", key=sd.i64, values=sd.date)
    for bad in (
        np.array([2**62 + 5], "M8[D]"), np.array([2**40], "M8[D]"), np.array([1], "M8[s]"), np.array([2**62], "M8[h]"),
        pa.array([1], pa.date64())
    ):
        if isinstance(bad, pa.Array):
            bad = pa.array([1], pa.int64()).cast(pa.timestamp("ms"))
        with pytest.raises(sd.InvalidArgument):
            dates.put([1], bad)
    times = db.table("t", key=sd.i64, values=sd.timestamp_ns)
    for bad in (
        np.datetime64("3000-01-01", "s"), np.datetime64("NaT"), pd.NaT, datetime.date(2020, 1, 1), 5,
        datetime.datetime(3000, 1, 1), "2020"
    ):
        with pytest.raises(sd.InvalidArgument):
            times[1] = bad
    with pytest.raises(sd.InvalidArgument):
        times.put([1], np.array(["3000-01-01"], "M8[s]"))
    seconds = db.table("s", key=sd.i64, values=sd.timestamp_s)
    for bad in (
        datetime.datetime(2020, 1, 1, microsecond=1), np.datetime64(1, "ms"), np.array([2**60], "M8[h]"),
        np.datetime64(2**62, "h")
    ):
        with pytest.raises(sd.InvalidArgument):
            seconds.put([1], bad if isinstance(bad, np.ndarray) else [bad])
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    seconds[1] = datetime.datetime(2020, 1, 1, 1, tzinfo=berlin)
    assert seconds[1] == datetime.datetime(2020, 1, 1)
    vectors = db.table("v", key=sd.i64, values=sd.vector(sd.timestamp_us, 2))
    vectors.put([1], np.array([[1, 2]], "M8[ms]"))
    assert vectors[1].tolist() == np.array([1, 2], "M8[ms]").tolist()
    with pytest.raises(sd.InvalidArgument, match="element of the vector"):
        vectors.put([1], np.array([[1, "NaT"]], "M8[us]"))


def test_vectors(db):
    table = db.table("v", key=sd.i64, values=sd.vector(sd.f32, 2))
    for bad in (
        [[1.0]], [[1.0, 2.0, 3.0]], [1.0], [["a", "b"]], [[1.0, None]], [None], np.zeros((1, 3), "f4"),
        np.zeros(1, "f4"),
        np.zeros((1, 2, 1), "f4"), pa.array([[1.0, 2.0]]), pa.array([[1.0, None]], pa.list_(pa.float32(), 2)),
        pa.array([[1.0] * 3], pa.list_(pa.float32(), 3)),
        np.ma.array(np.zeros((1, 2), "f4"), mask=[[0, 1]]), pa.array([[1, 2]], pa.list_(pa.float32())),
    ):
        with pytest.raises(sd.InvalidArgument):
            table.put([1], bad)
    for bad in (0, 2**18 + 1, 2**32 - 1):
        with pytest.raises(sd.InvalidArgument):
            sd.vector(sd.f32, bad)
    for bad in (0, 2**20 + 1):
        with pytest.raises(sd.InvalidArgument):
            sd.fixed_bytes(bad)
    for bad in (sd.str_, sd.bytes_, sd.uuid, sd.vector(sd.f32, 2), sd.optional(sd.f32)):
        with pytest.raises(sd.InvalidType):
            sd.vector(bad, 2)
    assert len(table) == 0


def test_types_that_are_none(db):
    for bad in (
        {"a": []}, {"a": 5}, {"a": "i65"}, {"a": None}, {5: sd.i64}, {"a": list}, {"a": {}}, "i65", 5, [("a",)],
        [("a", sd.i64), "b"], object(), {"a": "\udc80"},
        {"": sd.i64}, {"a\udc80": sd.i64}, [("a", sd.i64), ("a", sd.i64)], {"a": sd.vector}, [5], {"a": Raises()},
    ):
        with pytest.raises(sd.InvalidArgument):
            db.table("x", key=sd.i64, values=bad)
        with pytest.raises(sd.InvalidArgument):
            db.table("x", key=bad, values=sd.i64)
    for bad in (sd.optional(sd.i64), sd.vector(sd.i64, 2)):
        with pytest.raises(sd.InvalidArgument):
            db.table("x", key=bad, values=sd.i64)
    for text in (
        "", "f32[]", "f32[0]", "f32[-1]", "f32[99999999999999]", "bytes[4294967296]", "f32[1", "\udc80", "i64??"
    ):
        with pytest.raises((sd.InvalidType, TypeError)):
            sd.Type(text)
    with pytest.raises(sd.InvalidType):
        sd.Type.__new__(sd.Type).__setstate__("nonsense")
    table = db.table("x", key={"a": int}, values={"b": str, "c": uuid.UUID, "d": float, "e": bool, "f": datetime.date})
    with pytest.raises(sd.InvalidArgument, match="other columns"):
        db.table("x", key=sd.i64)
    assert db.tables() == ["x"] and db["x"].schema == table.schema


def test_names(db):
    for bad in ("", "a\0b", "x" * 256, "\ud800"):
        with pytest.raises(sd.InvalidArgument):
            db.table(bad, key=sd.i64, values=sd.i64)
    for bad in (5, None, b"x"):
        with pytest.raises((sd.InvalidType, TypeError)):
            db.table(bad)
    for name in ("é", "a b/c\n", "\udcff\udcfe", "x" * 255):
        table = db.table(
            name, key=sd.i64, values={name.replace("\udcff\udcfe", "ß") : sd.i64} if len(name) < 50 else sd.i64
        )
        assert table.name == name and name in db and db[name].name == name and repr(table)
        assert db.snapshot()[name].name == name
        if name == "a b/c\n":
            table.put({"key": [1], name: [2]})
            rows = table.get([1])
            assert table[1] == {name: 2} and rows.columns == [name]
            assert pl.DataFrame(rows).columns == [name] and pa.table(rows).column_names == [name]
    assert sorted(db.tables()) == sorted(["é", "a b/c\n", "\udcff\udcfe", "x" * 255])
    db.drop("\udcff\udcfe")
    assert len(db.tables()) == 3
    for call in (db.drop, db.__getitem__, db.snapshot().table, db.snapshot().__getitem__):
        with pytest.raises(sd.NotFound):
            call("missing")
    with pytest.raises(LookupError):
        db["missing"]


def test_strings_that_are_no_utf8(tmp_path):
    """Made by a program that does not look, they can be read, and are not lost."""
    zipfile.ZipFile(io.BytesIO(base64.b85decode(foreign_strings.DATABASE))).extractall(tmp_path)
    with sd.open(tmp_path / "badutf", "r") as db:
        table = db["s"]
        expected = [("ok", {"s": "ab"}), ("\udcffk", {"s": "\udcff\udcfe"})]
        assert list(table.items()) == expected and table["ok"] == {"s": "ab"}
        rows = next(iter(table.scan()))
        assert rows["s"].numpy().tolist() == ["ab", "\udcff\udcfe"] and rows.to_pandas()["s"].tolist()[0] == "ab"
        for call in (lambda: pa.table(rows), lambda: pl.DataFrame(rows), lambda: pa.array(rows["s"])):
            with pytest.raises(sd.Corruption, match="row 1: the string is no UTF-8"):
                call()
        with pytest.raises(sd.InvalidArgument, match="surrogates"):
            table["\udcffk"]


def test_options(tmp_path):
    path = tmp_path / "db"
    for mode in ("r", "w"):
        with pytest.raises(sd.NotFound) as caught:
            sd.open(path, mode)
        assert str(path) in str(caught.value) and not path.exists()
    for options in (
        {"mode": "q"}, {"durability": "x"}, {"threads": -1}, {"threads": "x"}, {"memory_limit": -1}, {"backend": "x"},
        {"memtable": 1.5}, {"memory_limit": 2**70}, {"devices": "x"}, {"devices": 5}, {"devices": [0, 0]},
        {"devices": [1000]}
    ):
        with pytest.raises(sd.InvalidArgument):
            sd.open(path, **options)
    for bad in (None, 5, ["x"]):
        with pytest.raises(TypeError):
            sd.open(bad)
    with pytest.raises(sd.InvalidArgument, match="NUL"):
        sd.open(str(path) + "\0x")
    (tmp_path / "file").write_text("x")
    with pytest.raises(sd.StrideError):
        sd.open(tmp_path / "file")
    with sd.open(path, "x") as db:
        with pytest.raises(sd.AlreadyExists):
            sd.open(path, "x")
        with pytest.raises(sd.InvalidArgument, match="durability"):
            sd.open(path, durability="none")
        with sd.open(path, "r") as reader:
            with pytest.raises(sd.ReadOnly):
                reader.drop("t")
            with pytest.raises(sd.NotFound):
                reader.table("t", key=sd.i64)
        db.table("t", key=sd.i64, values=sd.i64)[1] = 2
        snapshot = db.snapshot()["t"]
        for write in (
            lambda: snapshot.put([1], [2]), lambda: snapshot.__setitem__(1, 2), lambda: snapshot.delete([1]),
            lambda: snapshot.delete_range(), lambda: snapshot.__delitem__(1)
        ):
            with pytest.raises(sd.ReadOnly):
                write()
    with pytest.raises(sd.AlreadyExists):
        sd.open(path, "x")
    odd = tmp_path / "s\udcff"
    for form in (odd, str(odd), bytes(odd)):
        with sd.open(form) as db:
            assert db.path == str(odd)
    with sd.open(path, "r") as reader:
        for write in (lambda: reader["t"].put([1], [2]), lambda: reader["t"].delete_range(), reader.compact):
            with pytest.raises(sd.ReadOnly):
                write()
        assert list(reader["t"].items()) == [(1, 2)]


@pytest.mark.parametrize("type", list(CELLS), ids=str)
def test_each_type_refuses_the_others(db, type):
    table = db.table("t", key=type, values=sd.i64)
    for bad in (None, object(), 1j, [], {}, Raises(), "\ud800"):
        with pytest.raises((sd.InvalidArgument, RuntimeError)):
            table[bad]
        with pytest.raises((sd.InvalidArgument, RuntimeError)):
            table.put([bad], [1])
    for other in CELLS:
        example = {
            sd.str_: "x", sd.bytes_: b"x", sd.bool_: True, sd.f64: 0.5, sd.i64: -1, sd.date: datetime.date(2020, 1, 1),
            sd.uuid: uuid.UUID(int=5)
        }.get(other)
        if example is not None and other != type and not (
            type in (sd.f32, sd.f64) and other in (sd.i64, sd.f64)
        ) and not str(type).startswith("i"):
            with pytest.raises(sd.InvalidArgument):
                table[example]


def test_remedies_are_those_of_python(db):
    routes = db.prefixes("routes", bits=32, values=sd.u8)
    for bad in ("10.0.0.1/8", b"\x0a\0\0\1\x08", b"\x0a\0\0\0\x21", b"123"):
        with pytest.raises(sd.InvalidArgument) as caught:
            routes.put([bad], [1])
        assert "ip_network(prefix, strict=False)" in caught.value.remedy and "::" not in str(caught.value)
    assert len(routes) == 0


def test_progress_that_cannot_be_called(table):
    for bad in (5, "bar", [1]):
        with pytest.raises(sd.InvalidType, match="progress is"):
            table.put({"key": [5], "v": [1]}, progress=bad)


def test_keys_are_told_as_values(db):
    key = [("at", sd.date), ("who", sd.str_), ("n", sd.i16)]
    visits = db.table("visits", key=key, values=sd.i64)
    numbers = db.table("numbers", key=sd.i64, values=sd.i64)
    floats = db.table("floats", key=sd.f64)
    words = db.table("0x80", key=sd.str_)
    ids = db.table("ids", key=sd.uuid)
    routes = db.prefixes("routes", bits=32)
    day, name = datetime.date(2024, 2, 29), uuid.UUID(int=77)
    for table, keys, told in (
        (numbers, [-5, 7, -5], "-5"),
        (floats, [0.25, -1.5, -1.5], "-1.5"),
        (words, ["é'\n", "x", "é'\n"], repr("é'\n")),
        (words, ["k" * 100] * 2, repr("k" * 100)),
        (ids, [name, name], repr(name)),
        (routes, ["10.0.0.0/8", "10.0.0.0/8"], "'10.0.0.0/8'"),
    ):
        values = np.arange(len(keys)) if table.name == "numbers" else [b""] * len(keys)
        with pytest.raises(sd.AlreadyExists) as caught:
            table.put(keys, values, on_equal="error")
        assert caught.value.message == f"two rows that are put into table '{table.name}' have the key {told}"
        assert len(table) == 0
    with pytest.raises(sd.AlreadyExists) as caught:
        visits.put({"at": [day] * 2, "who": ["a\0"] * 2, "n": [-3] * 2, "value": [1, 2]}, on_equal="error")
    assert caught.value.message.endswith("have the key " + repr((day, "a\0", -3)))
    hits = db.counters("hits", sd.i32, key=key)
    more = db.counters("more", sd.i32, key=sd.i64)
    with pytest.raises(sd.InvalidArgument) as caught:
        hits.add([(day, "b", 9)], 1 << 31 - 1)
        hits.add([(day, "b", 9)], [2**31 - 1])
    assert f"key {(day, 'b', 9)!r}: the sum is" in caught.value.message
    with pytest.raises(sd.InvalidArgument, match="table 'more', key -1: the sum is") as caught:
        with db.transaction() as t:
            t.add(hits, [(day, "c", 9)])
            t.add(more, [-1, -1], 2**31 - 1)
    sums = db.counters("sums", sd.i64, key=[("n", sd.i16), ("m", sd.i16)])
    sums.add([(-7, 1), (-7, 2)], 2**63 - 1)
    with pytest.raises(sd.InvalidArgument, match="of keys that begin with -7 does not fit"):
        sums.group("sum", by=1)
    numbers.put([1, 2], [0, 1])
    with pytest.raises(sd.NotFound, match=r"source 1 \(key -4\) is not there"):
        db.plan(numbers, [2, -4], unmapped="error")
