"""What tables return as columns and frames of other libraries: each cell is asserted."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import stridedb as sd
from random_tables import ALL_CELLS, cells_of, new_name, plain

NUMBERS = [sd.i8, sd.i16, sd.i32, sd.i64, sd.u8, sd.u16, sd.u32, sd.u64, sd.f32, sd.f64, sd.bool_]


def table_of(database, type, cells):
    table = database.table(new_name(), key=sd.u32, values={"v": type})
    table.put(range(len(cells)), {"v": [list(c) if isinstance(c, tuple) else c for c in cells]})
    return table


def as_arrow(cell):
    """A cell as pyarrow's to_pylist() has it."""
    if hasattr(cell, "hex") and hasattr(cell, "urn"):
        return cell.bytes
    return plain(cell)


def from_arrow(array):
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        return [None if n is None else np.datetime64(n, "ns") for n in array.cast(pa.int64()).to_pylist()]
    return [plain(cell) for cell in array.to_pylist()]


@pytest.mark.parametrize("type", list(ALL_CELLS), ids=str)
@given(data=st.data())
def test_arrow(shared, type, data):
    column = data.draw(st.sampled_from([type, sd.optional(type)]))
    cells = data.draw(st.lists(cells_of(column), max_size=15))
    rows = table_of(shared, column, cells).get(range(len(cells) + 1))  # the last one is not there
    expected = [as_arrow(c) for c in cells] + [None]
    assert from_arrow(pa.array(rows["v"])) == expected
    arrow = pa.table(rows)
    arrow.validate(full=True)
    assert arrow.column_names == ["v"] and from_arrow(arrow["v"].combine_chunks()) == expected
    batch = pa.record_batch(rows)
    assert batch.num_rows == len(expected) and from_arrow(batch["v"]) == expected
    assert from_arrow(rows.to_arrow()["v"].combine_chunks()) == expected
    assert arrow["v"].null_count == sum(c is None for c in expected)


@pytest.mark.parametrize("type", [t for t in ALL_CELLS if t != sd.timestamp_ns], ids=str)
@given(data=st.data())
def test_polars(shared, type, data):
    cells = data.draw(st.lists(cells_of(sd.optional(type)), max_size=15))
    rows = table_of(shared, sd.optional(type), cells).get(range(len(cells)))
    expected = [as_arrow(c) for c in cells]
    if type == sd.timestamp_s:  # polars has milliseconds
        assert pl.DataFrame(rows).schema["v"] == pl.Datetime("ms")
    for series in (pl.DataFrame(rows)["v"], pl.Series(rows["v"]), rows.to_polars()["v"]):
        assert [plain(c) for c in map(tuple_of, series.to_list())] == expected


def tuple_of(cell):
    return tuple(cell) if isinstance(cell, (list, pl.Series)) else cell


@pytest.mark.parametrize("type", NUMBERS, ids=str)
@given(data=st.data())
def test_numpy(shared, type, data):
    cells = data.draw(st.lists(cells_of(type), max_size=15))
    table = table_of(shared, type, cells)
    column = table.get(range(len(cells)))["v"]
    for array in (column.numpy(), np.asarray(column), np.array(column)):
        assert array.tolist() == cells and array.dtype == sd._types.numpy_type(str(type))
    with_missing = table.get(range(len(cells) + 2))["v"]
    assert with_missing.numpy(fill=1).tolist() == cells + [1, 1]
    assert with_missing.valid().tolist() == [True] * len(cells) + [False] * 2
    if type in (sd.f32, sd.f64):
        assert np.isnan(with_missing.numpy()[-2:]).all() and with_missing.numpy()[:-2].tolist() == cells
    else:
        with pytest.raises(sd.InvalidArgument, match="2 cells that are missing"):
            np.asarray(with_missing)
    assert np.array(column, dtype="f8").tolist() == [float(c) for c in cells]


FILLS = {
    sd.i8: (7, [1.5, 300, "x", True, float("nan")]),
    sd.f32: (0.5, [1e300, "x", np.timedelta64(1, "s")]),
    sd.bool_: (True, ["x", 2, 0.0]),
    sd.date: (datetime.date(2020, 1, 1), [0, datetime.datetime(2020, 1, 1)]),
    sd.timestamp_us: (datetime.datetime(2020, 1, 1), [0, "2020"]),
    sd.fixed_bytes(2): (b"ab", [b"a", "ab"]),
}


@pytest.mark.parametrize("type", FILLS, ids=str)
def test_what_missing_cells_become_is_of_the_columns_type(db, type):
    good, bad = FILLS[type]
    table = db.table("t", key=sd.i64, values=sd.optional(type))
    table.put([1], [None])
    column = table.get([1])["value"]
    filled = column.numpy(good)[0]
    assert (filled.tobytes() if type == sd.fixed_bytes(2) else filled.item()) == good
    for fill in bad:
        with pytest.raises(sd.InvalidArgument, match="column 'value'"):
            column.numpy(fill)


def test_what_missing_times_vectors_and_texts_become(db):
    values = {"t": sd.optional(sd.timestamp_us), "v": sd.optional(sd.vector(sd.f32, 2)), "s": sd.optional(sd.str_)}
    table = db.table("t", key=sd.i64, values=values)
    table.put({"key": [1]})
    row = table.get([1])
    for nothing in (None, np.datetime64("NaT"), pd.NaT):
        assert np.isnat(row["t"].numpy(nothing)).tolist() == [True]
    assert row["v"].numpy(0).tolist() == [[0, 0]] and row["v"].numpy([1, 2]).tolist() == [[1, 2]]
    with pytest.raises(sd.InvalidArgument, match="3 elements"):
        row["v"].numpy([1, 2, 3])
    assert row["s"].numpy("").tolist() == [""] and row["s"].numpy(0).tolist() == [0]


def test_copies_of_arrays(db):
    column = db.table("t", key=sd.i64, values=sd.i64)
    column.put([1, 2], [3, 4])
    column = column.get([1, 2])["value"]
    view = np.array(column, copy=False)
    assert view.tolist() == [3, 4] and not np.shares_memory(np.array(column, copy=True), view)
    assert np.shares_memory(np.asarray(column), view)
    with pytest.raises(ValueError, match="without a copy"):
        np.array(column, copy=False, dtype="f4")
    with pytest.raises(sd.KeyNotFound, match="no column 'x'"):
        db["t"].get([1], columns=["x"])


@given(
    st.lists(
        st.tuples(
            st.integers(-100, 100), st.none() | st.text(max_size=5), st.none() | st.integers(0, 9),
            st.floats(allow_nan=False), st.none() | st.booleans()
        ), max_size=12
    )
)
def test_pandas(shared, cells):
    table = shared.table(new_name(), key=("id", sd.i64), values={
        "n": sd.i16, "s": sd.optional(sd.str_), "o": sd.optional(sd.u8), "f": sd.f64, "b": sd.optional(sd.bool_),
        "d": sd.date, "t": sd.optional(sd.timestamp_ms),
    })
    day = datetime.date(2020, 2, 29)
    moments = [None if c[2] is None else datetime.datetime(2000, 1, 1, c[2]) for c in cells]
    columns = dict(zip("nsofb", map(list, zip(*cells)))) if cells else dict.fromkeys("nsofb", [])
    table.put({"id": range(len(cells)), **columns, "d": [day] * len(cells), "t": moments})
    for rows in ([table.get(range(len(cells)))], list(table.scan())):
        if not rows or not cells:
            continue
        frame = rows[0].to_pandas()
        assert frame["n"].tolist() == columns["n"] and frame["f"].tolist() == columns["f"]
        for name in "sob":
            assert [None if c is pd.NA else c for c in frame[name].tolist()] == columns[name]
        assert [None if c is pd.NaT else c.to_pydatetime() for c in frame["t"]] == moments
        assert (frame["d"] == pd.Timestamp(day)).all()
        assert frame["n"].dtype == "int16" and str(frame["s"].dtype) == "string"


@given(
    st.lists(st.tuples(st.integers(0, 20), st.text(max_size=3)), max_size=15), st.lists(st.integers(0, 25), max_size=10)
)
def test_joins(shared, rows, wanted):
    table = shared.table(new_name(), key=("id", sd.i64), values={"s": sd.str_, "x": sd.i32})
    table.put({"id": [k for k, _ in rows], "s": [s for _, s in rows], "x": [k * 2 for k, _ in rows]})
    there = dict(rows)
    expected = [(k, k + 0.5, there.get(k), k * 2 if k in there else None) for k in wanted]
    columns = {"id": np.array(wanted, "i8"), "x": np.array(wanted, "f8") + 0.5}
    frames = [pl.DataFrame(columns), pa.table(columns), pd.DataFrame(columns), columns]
    for how in ("left", "inner"):
        rows_expected = [row for row in expected if how == "left" or row[2] is not None]
        for frame in frames:
            joined = table.join(frame, on="id", how=how)
            assert type(joined) is type(frame)
            lists = [column_list(joined[name]) for name in ("id", "x", "s", "x_right")]
            assert list(zip(*lists)) == rows_expected, type(frame)


def column_list(column):
    convert = getattr(column, "to_pylist", None) or getattr(column, "tolist", None)
    cells = convert() if convert else list(column)
    return [None if c is pd.NA or c != c else c for c in cells]


def test_empty_and_single_rows(db):
    types = {f"c{i}": sd.optional(t) for i, t in enumerate(ALL_CELLS)}
    table = db.table("t", key=[("a", sd.i64), ("b", sd.str_)], values=types)
    nothing = table.get([])
    assert len(nothing) == 0 and pa.table(nothing).num_rows == 0 and pl.DataFrame(nothing).shape == (0, len(types))
    assert nothing.to_pandas().shape == (0, len(types)) and all(len(a) == 0 for a in nothing.to_numpy().values())
    assert nothing.found.tolist() == [] and list(nothing) == [] and nothing.to_dict() == {name: [] for name in types}
    assert list(table.scan()) == [] and len(table.lower_bound([])) == 0 and table.lower_bound([(1, "x")])[0] is None
    table.put({"a": [1], "b": ["x"]})
    for rows in (table.get([(1, "x")]), *table.scan(columns=list(types))):
        assert len(rows) == 1 and pl.DataFrame(rows).height == 1 and pa.table(rows).num_rows == 1
        assert all(rows[name][0] is None and rows[name][-1] is None for name in types)
        for bad in (1, -2, 2**40):
            with pytest.raises(IndexError):
                rows[bad]
    assert repr(table.get([(1, "x")])) and table.get([(1, "x")])._repr_html_() and repr(table) and table._repr_html_()


def test_shown_cells(db):
    table = db.table("<b>", key=sd.str_, values={"<i>": sd.str_})
    table.put(["<k>"], {"<i>": ["<script>"]})
    assert "<script>" not in table.get(["<k>", "no"])._repr_html_()
    assert "<b>" not in table._repr_html_().replace("<b>&lt;b&gt;</b>", "")
    assert "..." in repr(db.table("n", key=sd.i64, values=sd.i64).get(range(20)))


def test_group(db):
    table = db.counters("c", sd.i64, key=[("day", sd.date), ("id", sd.u32)])
    days = [datetime.date(2020, 1, d) for d in (1, 1, 2, 2, 2, 3)]
    table.put({"day": days, "id": range(6), "value": [5, -1, 2, 3, 4, 7]})
    groups = table.group("sum", "min", "max", by=1)
    assert groups.to_dict() == {
        "day": [datetime.date(2020, 1, d) for d in (1, 2, 3)], "count": [2, 3, 1], "sum": [4, 9, 7], "min": [-1, 2, 7],
        "max": [5, 4, 7],
    }
    assert table.group().to_dict() == {"count": [6]}
    assert table.group("sum", by=1, start=(days[2],)).to_dict()["sum"] == [9, 7]
    assert table.group(prefix_bytes=4)["count"].to_list() == [2, 3, 1]
    # Counts are those of rows of any table.
    texts = db.table("texts", key=[("a", sd.i8), ("b", sd.str_)], values={"x": sd.optional(sd.str_), "y": sd.f32})
    texts.put({"a": [1, 1, 2], "b": ["k", "l", "k"], "x": ["long text", None, ""], "y": [1, 2, 3]})
    assert texts.group(by=1).to_dict() == {"a": [1, 2], "count": [2, 1]}
    with pytest.raises(sd.InvalidArgument, match="no numbers"):
        texts.group("sum")
    routes = db.prefixes("routes", bits=32, values=sd.str_)
    routes.put(["10.0.0.0/8", "10.1.0.0/16"], ["a", "bcd"])
    assert routes.group().to_dict() == {"count": [2]}
    with pytest.raises(sd.InvalidArgument, match="3 key columns"):
        table.group(by=3)
    with pytest.raises(sd.InvalidArgument, match="'mean'"):
        table.group("mean")


@pytest.mark.parametrize("type", NUMBERS[:-1], ids=str)
def test_dlpack(shared, type):
    table = shared.table(new_name(), key=sd.u32, values={"n": type, "pad": sd.u8, "v": sd.vector(type, 3)})
    table.put(range(5), {"n": range(5), "pad": [0] * 5, "v": [[i, i, i] for i in range(5)]})
    rows = table.get([4, 0])
    assert np.from_dlpack(rows["n"]).tolist() == [4, 0]
    assert np.from_dlpack(rows["v"]).tolist() == [[4, 4, 4], [0, 0, 0]]
    missing = table.get([9])["n"]
    if type in (sd.f32, sd.f64):
        assert np.isnan(np.from_dlpack(missing)).all()
    else:
        with pytest.raises(sd.InvalidArgument, match="missing"):
            np.from_dlpack(missing)
