"""Frames of other libraries into tables: values come back as they were."""

import array
import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import stridedb as sd
from random_tables import CELLS, KEY_TYPES, Model, cells_of, identity, new_name, plain

ARROW = {
    sd.bool_: pa.bool_(), sd.i8: pa.int8(), sd.i16: pa.int16(), sd.i32: pa.int32(), sd.i64: pa.int64(),
    sd.u8: pa.uint8(), sd.u16: pa.uint16(), sd.u32: pa.uint32(), sd.u64: pa.uint64(), sd.f32: pa.float32(),
    sd.f64: pa.float64(), sd.date: pa.date32(), sd.timestamp_s: pa.timestamp("s"),
    sd.timestamp_ms: pa.timestamp("ms"), sd.timestamp_us: pa.timestamp("us"), sd.timestamp_ns: pa.timestamp("ns"),
    sd.uuid: pa.binary(16), sd.str_: pa.string(), sd.bytes_: pa.binary(), sd.fixed_bytes(5): pa.binary(5),
    sd.fixed_bytes(16): pa.binary(16),
}
OTHER_ARROW = {
    sd.str_: [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    sd.bytes_: [pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary()), pa.binary(7)],
    sd.i64: [pa.dictionary(pa.uint16(), pa.int64()), pa.int32(), pa.uint8()],
    sd.f64: [pa.float32(), pa.int32()],
    sd.timestamp_us: [pa.timestamp("us", "Europe/Berlin"), pa.timestamp("s", "UTC"), pa.timestamp("ms")],
    sd.date: [pa.date64(), pa.timestamp("s")],
    sd.fixed_bytes(5): [pa.binary(), pa.binary_view()],
}


def arrow_array(cells, type):
    """Cells as an array of Arrow's; times are exact."""
    if pa.types.is_dictionary(type):
        return arrow_array(cells, type.value_type).dictionary_encode().cast(type)
    if type == pa.binary(16):
        cells = [getattr(c, "bytes", c) for c in cells]
    if pa.types.is_timestamp(type) and type.unit == "ns":
        return pa.array([None if c is None else int(c.astype("i8")) for c in cells], pa.int64()).cast(type)
    if pa.types.is_timestamp(type) and type.tz:
        return pa.array(cells, pa.timestamp(type.unit)).cast(type)
    return pa.array(cells, type)


def chunked(array, cuts):
    """The array in pieces that are slices of another one, and empty ones among them."""
    longer = pa.concat_arrays([array[:1], array, array[:1]]) if len(array) else array
    whole = longer.slice(len(array[:1]), len(array))
    cuts = [0, *sorted(min(c, len(array)) for c in cuts), len(array)]
    return pa.chunked_array([whole[a:b] for a, b in zip(cuts, cuts[1:])], whole.type)


@pytest.mark.parametrize("type", list(ARROW), ids=str)
@given(data=st.data())
def test_arrow_columns(shared, type, data):
    cells = data.draw(st.lists(cells_of(sd.optional(type)), max_size=20))
    array = chunked(arrow_array(cells, ARROW[type]), data.draw(st.lists(st.integers(0, 20), max_size=3)))
    table = shared.table(new_name(), key=sd.i64, values={"v": sd.optional(type)})
    frame = pa.table({"key": range(len(cells)), "v": array})
    table.put(frame)
    assert [plain(c) for c in table.get(range(len(cells)))["v"].to_list()] == [plain(c) for c in cells]
    # Keys and values apart, of one batch and of chunks.
    table.delete_range()
    table.put(pa.array(range(len(cells))), {"v": array})
    assert [plain(c) for c in table.get(range(len(cells)))["v"].to_list()] == [plain(c) for c in cells]
    # As keys.
    keys = shared.table(new_name(), key=type, values=sd.i64)
    there = array.drop_null()
    keys.put(there, np.arange(len(there)))
    assert keys.contains(there).all() and len(keys) == len({identity(c) for c in cells if c is not None})


@pytest.mark.parametrize("type,arrow", [(t, a) for t, all in OTHER_ARROW.items() for a in all], ids=str)
@given(data=st.data())
def test_other_types_of_arrow(shared, type, arrow, data):
    cells = {
        pa.int32(): st.integers(-(2**31), 2**31 - 1), pa.uint8(): st.integers(0, 255),
        pa.float32(): st.floats(width=32, allow_nan=False), pa.binary(7): st.binary(min_size=7, max_size=7),
    }.get(arrow, CELLS[type])
    if pa.types.is_timestamp(arrow):
        step = {"s": 1_000_000, "ms": 1000, "us": 1}[arrow.unit]
        cells = CELLS[sd.timestamp_us].map(lambda t: t.replace(microsecond=t.microsecond // step * step))
        if type == sd.date:
            cells = cells.map(lambda t: datetime.datetime(t.year, t.month, t.day))
    given_cells = data.draw(st.lists(cells | st.none(), max_size=12))
    array = chunked(arrow_array(given_cells, arrow), data.draw(st.lists(st.integers(0, 12), max_size=2)))
    table = shared.table(new_name(), key=sd.i64, values={"v": sd.optional(type)})
    table.put(pa.table({"key": range(len(given_cells)), "v": array}))
    assert [plain(c) for c in table.get(range(len(given_cells)))["v"].to_list()] == [plain(c) for c in given_cells]


@given(data=st.data())
def test_frames_of_each_library(shared, data):
    """The same rows by a dict, NumPy, polars, pandas and pyarrow make the same table."""
    types = data.draw(st.lists(st.sampled_from([t for t in KEY_TYPES if t != sd.uuid]), min_size=2, max_size=5))
    cells = st.tuples(*[CELLS[t] for t in types])
    rows = data.draw(st.lists(cells, max_size=10))
    names = [f"c{i}" for i in range(len(types))]
    arrow = pa.table({n: arrow_array([r[i] for r in rows], ARROW[t]) for i, (n, t) in enumerate(zip(names, types))})
    frames = {
        "arrow": arrow,
        "batches": pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches(max_chunksize=3)),
        "batch": arrow.combine_chunks().to_batches()[0] if rows else arrow,
        "polars": pl.from_arrow(arrow),
        "pandas": arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "rows": None,
    }
    made = {}
    for kind, frame in frames.items():
        table = shared.table(new_name(), key=[("c0", types[0])], values=dict(zip(names[1:], types[1:])))
        if kind == "rows":
            for batch in made["arrow"].scan(batch_rows=2):
                table.put(batch)
        else:
            table.put(frame)
        made[kind] = table
    expected = [plain(item) for item in map(list_of_item, made["arrow"].items())]
    assert len(expected) == len({identity(r[0]) for r in rows})
    last = {identity(r[0]): r for r in rows}
    assert {identity(k): v for k, *v in expected} == {i: list(plain(r[1:])) for i, r in last.items()} or not rows
    for kind, table in made.items():
        assert [plain(item) for item in map(list_of_item, table.items())] == expected, kind


def list_of_item(item):
    key, row = item
    return [key, *row.values()]


NUMPY = [
    ("?", sd.bool_), ("i1", sd.i8), ("<i2", sd.i16), (">i4", sd.i32), (">i8", sd.i64), ("u1", sd.u8), (">u2", sd.u16),
    ("<u4", sd.u32), ("u8", sd.u64), ("f2", sd.f32), (">f4", sd.f32), ("f8", sd.f64), (">f8", sd.f64), ("i4", sd.i64),
    ("u4", sd.i64), ("f4", sd.f64), ("M8[D]", sd.date), ("M8[s]", sd.timestamp_s), (">M8[ms]", sd.timestamp_ms),
    ("M8[us]", sd.timestamp_us), ("M8[ns]", sd.timestamp_ns), ("M8[h]", sd.timestamp_s), ("M8[m]", sd.timestamp_us),
    ("S5", sd.bytes_), ("S5", sd.fixed_bytes(5)), ("V5", sd.fixed_bytes(5)), ("U5", sd.str_), ("O", sd.str_),
]


@pytest.mark.parametrize("dtype,type", NUMPY, ids=str)
@given(data=st.data())
def test_numpy_arrays(shared, dtype, type, data):
    """Of any byte order and stride, in both directions."""
    n = data.draw(st.integers(0, 10))
    if dtype in ("S5", "V5", "U5", "O"):
        texts = [f"{i:05}" for i in range(3 * n)]
        array = np.array(
            [t.encode() for t in texts] if dtype in ("S5", "V5") else texts, dtype="S5" if dtype == "V5" else dtype
        )
        array = array.view(dtype) if dtype == "V5" else array
    else:
        array = np.array(data.draw(st.lists(st.integers(0, 100), min_size=3 * n, max_size=3 * n)))
        array = (array % 2 if dtype == "?" else array).astype(dtype)
    step = data.draw(st.sampled_from([3, -3, 1]))
    array = array[: n if step == 1 else None : step]
    table = shared.table(new_name(), key=sd.u32, values={"v": type})
    table.put(np.arange(len(array), dtype="u4"), {"v": array})
    got = table.get(np.arange(len(array), dtype="u4"))["v"]
    expected = [b.tobytes() for b in array] if dtype == "V5" else array.tolist()
    if type == sd.timestamp_ns:
        assert (got.numpy() == array).all()
    else:
        assert [plain(c) for c in got.to_list()] == [plain(c) for c in expected]
    if dtype not in ("V5", "O", "S5"):
        assert (got.numpy() == array).all()


@given(st.data())
def test_arrays_of_vectors(shared, data):
    n = data.draw(st.integers(1, 6))
    array = np.arange(n * 2 * 6, dtype=data.draw(st.sampled_from(["f4", ">f4", "f8"]))).reshape(n * 2, 6)
    array = data.draw(
        st.sampled_from([array, array[::2], array[::-1], array[:, ::2], array[:, ::-1], np.asfortranarray(array)])
    )
    table = shared.table(
        new_name(), key=sd.i64, values=sd.vector(sd.f32 if array.itemsize == 4 else sd.f64, array.shape[1])
    )
    table.put(range(len(array)), array)
    assert (table.get(range(len(array)))["value"].numpy() == array).all()
    table.put(
        range(len(array)),
        pa.FixedSizeListArray.from_arrays(
            np.ascontiguousarray(array).ravel().astype(array.dtype.newbyteorder("=")), array.shape[1]
        )
    )
    assert (table.get(range(len(array)))["value"].numpy() == array).all()
    table.put(range(len(array)), pl.Series(array.astype(array.dtype.newbyteorder("="))))
    assert (table.get(range(len(array)))["value"].numpy() == array).all()


@given(st.lists(st.integers(0, 100), max_size=20), st.data())
def test_masked_arrays_and_nat_are_null(shared, numbers, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(numbers), max_size=len(numbers)))
    expected = [None if hidden else n for n, hidden in zip(numbers, mask)]
    table = shared.table(new_name(), key=sd.i64, values={"v": sd.optional(sd.i32)})
    masked = np.ma.array(numbers, mask=mask, dtype=data.draw(st.sampled_from(["i8", ">i4", "u1", "i2"])))
    table.put(range(len(numbers)), {"v": masked})
    assert table.get(range(len(numbers)))["v"].to_list() == expected
    times = np.array(numbers, dtype="M8[us]")
    times[np.array(mask, dtype=bool)] = "NaT"
    table = shared.table(new_name(), key=sd.i64, values={"v": sd.optional(sd.timestamp)})
    table.put(range(len(numbers)), {"v": times})
    assert table.get(range(len(numbers)))["v"].valid().tolist() == [not hidden for hidden in mask]


def test_arrays_at_odd_places(db):
    """Unaligned ones, and such whose elements are all the same one."""
    for dtype, type in (
        ("i8", sd.i64), ("i4", sd.i32), ("f8", sd.f64), ("M8[us]", sd.timestamp), ("M8[D]", sd.date), ("u2", sd.u16)
    ):
        odd = np.frombuffer(bytearray(b"\1" + np.arange(50).astype(dtype).tobytes()), dtype, offset=1)
        table = db.table(f"t{dtype}", key=type, values=type)
        table.put(odd, odd)
        assert (table.get(odd)["value"].numpy() == odd).all() and table.contains(odd).all() and len(table) == 50
        same = np.broadcast_to(odd[7:8], 20)
        table.put(same, np.broadcast_to(odd[9:10], 20))
        assert len(table) == 50 and (table.get(same)["value"].numpy() == odd[9]).all()
        assert table.lower_bound(odd)["value"].valid().all()
    vectors = np.frombuffer(bytearray(1 + 4 * 6 * 10), "f4", offset=1).reshape(10, 6)
    table = db.table("v", key=sd.i64, values=sd.vector(sd.f32, 6))
    table.put(range(10), vectors)
    assert (table.get(range(10))["value"].numpy() == vectors).all()
    ids, new = db.dedup("d", 6).find_or_put(vectors.view("u4"))
    assert ids.tolist() == [0] * 10 and new.sum() == 1
    assert sd.VectorSet(6).find_or_put(vectors.view("i4"))[0].tolist() == [0] * 10
    routes = db.prefixes("p", bits=32, values=sd.i64)
    routes.put(["0.0.0.0/0"], [1])
    assert routes.match(np.frombuffer(bytearray(41), "u4", offset=1)).found.all()


def test_columns_that_are_missing_or_null(db):
    table = db.table(
        "t", key=sd.i64,
        values={"a": sd.optional(sd.i32), "b": sd.optional(sd.str_), "c": sd.optional(sd.vector(sd.f32, 2))}
    )
    table.put({"key": [1, 2]})
    table.put(pa.table({"key": [3, 4], "a": pa.nulls(2), "b": pa.nulls(2), "c": pa.nulls(2)}))
    table.put(pl.DataFrame({"key": [5], "a": [None]}))
    table.put(pd.DataFrame({"key": [6], "b": [None]}))
    rows = table.get([1, 2, 3, 4, 5, 6])
    assert rows.found.all() and all(rows[name].to_list() == [None] * 6 for name in "abc")


def test_empty_frames_change_nothing(db):
    table = db.table("t", key=sd.i64, values={"v": sd.str_})
    for frame in (
        {"key": [], "v": []}, pa.table({"key": pa.array([], pa.int64()), "v": pa.array([], pa.string())}),
        pl.DataFrame({"key": [], "v": []}), pd.DataFrame({"key": [], "v": []}),
        pa.table({"key": pa.nulls(0), "v": pa.nulls(0)}),
        pa.RecordBatchReader.from_batches(pa.schema([("key", pa.int64()), ("v", pa.string())]), iter([])),
        {"key": np.array([], "i8"), "v": np.array([], "U3")}, table.get([]).to_dict() | {"key": []},
    ):
        table.put(frame)
    assert len(table) == 0 and list(table.items()) == []
    for keys in (
        [], (), np.array([], "i4"), pa.array([], pa.int8()), pl.Series([], dtype=pl.Int64),
        pa.chunked_array([], pa.int64()), range(0)
    ):
        assert len(table.get(keys)) == 0 and table.contains(keys).tolist() == []
        table.delete(keys)


def test_large_offsets_and_buffers(db):
    table = db.table("t", key=sd.i64, values={"v": sd.optional(sd.str_)})
    strings = [None if i % 7 == 0 else "é" * (i % 40) for i in range(10_000)]
    for type in (pa.string(), pa.large_string(), pa.string_view()):
        table.delete_range()
        table.put(pa.table({"key": range(10_000), "v": pa.array(strings, type)}).slice(5000, 4000))
        assert table.get(range(4990, 9001))["v"].to_list() == [None] * 10 + strings[5000:9000] + [None]
    assert table.get(pa.array(strings, pa.string()).dictionary_encode().indices.drop_null()).found.any() is not None


def test_other_sequences(db):
    table = db.table("t", key=sd.i64, values=sd.i64)
    table.put(range(5), array.array("q", range(5)))
    table.put((5, 6), memoryview(array.array("i", [5, 6])))
    table.put((i for i in [7, 8]), iter([7, 8]))
    table.put({9: None}.keys(), [9])
    table.put(pd.Index([10, 11]), pd.Series([10, 11]))
    table.put(pl.Series([12]), pd.array([12], dtype="Int64"))
    table.put(pd.Series([13, 14], dtype="category").cat.codes + 13, pa.chunked_array([[13], [14]]))
    assert list(table.items()) == [(i, i) for i in range(15)]


def test_floats_of_16_bits(db):
    cells = [1.5, -0.0, 2.0**-24, 2.0**-14, 65504.0, -float("inf")]
    halves = np.array(cells, dtype="f2")
    frames = [pd.DataFrame({"key": range(6), "value": halves}), pa.table({"key": range(6), "value": pa.array(halves)})]
    if hasattr(pl, "Float16"):
        frames.append(pl.DataFrame({"key": range(6), "value": pl.Series(cells, dtype=pl.Float16)}))
    for type in (sd.f32, sd.f64):
        table = db.table(str(type), key=sd.i64, values=type)
        for frame in frames:
            table.put(frame)
            assert [str(v) for _, v in table.items()] == [str(cell) for cell in cells]
            table.delete_range()
    vectors = db.table("vectors", key=sd.i64, values=sd.vector(sd.f32, 2))
    vectors.put([1, 2, 3], pa.FixedSizeListArray.from_arrays(pa.array(halves), 2))
    assert [v.tolist() for _, v in vectors.items()] == [cells[:2], cells[2:4], cells[4:]]


def test_booleans_are_two_keys(db):
    table = db.table("t", key=sd.bool_, values=sd.i64)
    table.put(np.array([0, 2], dtype="u1").view(bool), [5, 6])
    table.put([True], [7])
    assert list(table.items()) == [(False, 5), (True, 7)]


def test_pandas_without_pyarrow(python, path):
    python(
        """
        import sys
        sys.modules["pyarrow"] = None
        import pandas as pd, stridedb as sd
        with sd.open(sys.argv[1]) as db:
            t = db.table("t", key=sd.i64, values={"s": sd.str_, "f": sd.f64})
            t.put(pd.DataFrame({"key": [1, 2], "s": ["a", "b"], "f": [1.5, 2.5]}))
            assert list(t.items()) == [(1, {"s": "a", "f": 1.5}), (2, {"s": "b", "f": 2.5})]
            assert t.get(pd.Series([2]))["s"].to_list() == ["b"]
        """,
        path,
    )
