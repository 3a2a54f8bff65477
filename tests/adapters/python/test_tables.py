"""Tables of all types beside a dict and a sorted list."""

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import stridedb as sd
from random_tables import ALL_CELLS, CELLS, KEY_TYPES, Model, cells_of, identity, order, plain, value_types


@st.composite
def models(draw, database, max_keys=3):
    key = draw(st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=max_keys))
    values = draw(st.lists(value_types(), min_size=1, max_size=4))
    model = Model(database, key, values)
    for rows in draw(st.lists(model.rows_strategy(), min_size=1, max_size=3)):
        model.put(rows)
    return model


def some_keys(draw, model):
    there = [row[0] for row in model.rows.values()]
    wanted = draw(st.lists(model.keys(), max_size=5))
    if there:
        wanted += draw(st.lists(st.sampled_from(there), max_size=8))
    return draw(st.permutations(wanted))


@pytest.mark.parametrize("type", list(ALL_CELLS), ids=str)
@settings(max_examples=8)
@given(data=st.data())
def test_cells_of_each_type(shared, type, data):
    for column in (type, sd.optional(type)):
        model = Model(shared, [sd.u32], [column])
        cells = data.draw(st.lists(cells_of(column), min_size=1, max_size=20))
        model.put([(i, (cell,)) for i, cell in enumerate(cells)])
        rows = model.table.get(range(len(cells)))
        assert [plain(c) for c in rows["v0"].to_list()] == [plain(c) for c in cells]
        assert rows["v0"].valid().tolist() == [c is not None for c in cells]
        for i, cell in enumerate(cells):
            assert plain(model.table[i]["v0"]) == plain(cell)


@pytest.mark.parametrize("type", KEY_TYPES, ids=str)
@settings(max_examples=8)
@given(data=st.data())
def test_keys_of_each_type(shared, type, data):
    model = Model(shared, [type], [sd.i64])
    keys = data.draw(st.lists(CELLS[type], min_size=1, max_size=20, unique_by=identity))
    model.put([(key, (i,)) for i, key in enumerate(keys)])
    assert model.rows_of(model.table.scan()) == model.expected(model.sorted())
    assert model.table.get(keys)["v0"].to_list() == list(range(len(keys)))
    for i, key in enumerate(keys):
        assert model.table[key] == {"v0": i} and key in model.table


@given(data=st.data())
def test_get_and_contains(shared, data):
    model = data.draw(models(shared))
    wanted = some_keys(data.draw, model)
    there = [identity(key) in model.rows for key in wanted]
    rows = model.table.get(wanted)
    assert rows.found.tolist() == there and len(rows) == len(wanted)
    assert model.table.contains(wanted).tolist() == there
    for i, key in enumerate(wanted):
        expected = dict(zip(model.value_names, plain(model.rows[identity(key)][1]))) if there[i] else None
        assert (None if rows[i] is None else {n: plain(c) for n, c in rows[i].items()}) == expected
        assert (key in model.table) == there[i]
        one = model.table.get(key, "default")
        assert ({n: plain(c) for n, c in one.items()} if there[i] else one) == (expected or "default")
    assert len(model.table) == len(model.rows)


@given(data=st.data())
def test_scan(shared, data):
    model = data.draw(models(shared))
    rows = model.sorted()
    bounds = st.none() | model.keys() | st.sampled_from([r[0] for r in rows] or [None])
    start, stop = data.draw(bounds), data.draw(bounds)
    batch_rows = data.draw(st.sampled_from([0, 1, 3]))
    inside = [
        row for row in rows
        if (start is None or order(start) <= order(row[0])) and (stop is None or order(row[0]) < order(stop))
    ]
    table = model.table
    assert model.rows_of(table.scan(start, stop, batch_rows=batch_rows)) == model.expected(inside)
    assert model.rows_of(table.scan(start, stop, reverse=True)) == model.expected(inside[::-1])
    assert [plain(key) for key in table] == [plain(key) for key, _ in rows]
    assert [plain(key) for key, _ in table.items(start, stop)] == [plain(key) for key, _ in inside]


@given(data=st.data())
def test_prefixes_of_composite_keys(shared, data):
    model = Model(shared, data.draw(st.lists(st.sampled_from(KEY_TYPES), min_size=2, max_size=3)), [sd.i32])
    model.put(data.draw(model.rows_strategy()))
    rows = model.sorted()
    assume(rows)
    first = data.draw(st.sampled_from(rows))[0][:1]
    inside = [row for row in rows if order(row[0][:1]) == order(first)]
    assert model.rows_of(model.table.scan(prefix=first)) == model.expected(inside)
    from_there = [row for row in rows if order(row[0][:1]) >= order(first)]
    assert model.rows_of(model.table.scan(start=first)) == model.expected(from_there)


@pytest.mark.parametrize("type", [sd.str_, sd.bytes_], ids=str)
@given(data=st.data())
def test_prefixes_of_strings(shared, type, data):
    letters = st.text("ab", max_size=5) if type == sd.str_ else st.binary(max_size=3)
    model = Model(shared, [type], [sd.u8])
    model.put([(key, (1,)) for key in data.draw(st.lists(letters, max_size=20))])
    prefix = data.draw(letters)
    inside = [row for row in model.sorted() if row[0].startswith(prefix)]
    assert model.rows_of(model.table.scan(prefix=prefix)) == model.expected(inside)


@given(data=st.data())
def test_delete(shared, data):
    model = data.draw(models(shared))
    gone = some_keys(data.draw, model)
    model.table.delete(gone)
    for key in gone:
        model.rows.pop(identity(key), None)
    assert model.rows_of(model.table.scan()) == model.expected(model.sorted())
    one = data.draw(model.keys())
    del model.table[one]
    model.rows.pop(identity(one), None)
    assert model.rows_of(model.table.scan()) == model.expected(model.sorted())


@given(data=st.data())
def test_delete_range(shared, data):
    model = data.draw(models(shared))
    bounds = st.none() | model.keys()
    start, stop = data.draw(bounds), data.draw(bounds)
    model.table.delete_range(start, stop)
    kept = [
        row for row in model.sorted()
        if (start is not None and order(row[0]) < order(start)) or (stop is not None and order(row[0]) >= order(stop))
    ]
    assert model.rows_of(model.table.scan()) == model.expected(kept)


@given(data=st.data())
def test_put_if_absent(shared, data):
    model = data.draw(models(shared))
    rows = data.draw(model.rows_strategy())
    expected = []
    for key, value in rows:
        expected.append(identity(key) not in model.rows)
        model.rows.setdefault(identity(key), (key, value))
    assert model.table.put_if_absent(model.frame(rows)).tolist() == expected
    assert model.rows_of(model.table.scan()) == model.expected(model.sorted())


@given(data=st.data())
def test_lower_bound(shared, data):
    model = data.draw(models(shared))
    wanted = some_keys(data.draw, model)
    rows = model.sorted()
    found = model.table.lower_bound(wanted)
    expected = [next((row for row in rows if order(row[0]) >= order(key)), None) for key in wanted]
    assert found.found.tolist() == [row is not None for row in expected]
    got = model.rows_of([found])
    for i, row in enumerate(expected):
        if row is not None:
            assert got[i] == model.expected([row])[0]
        else:
            assert found[i] is None and all(found[name][i] is None for name in found.columns)


@given(data=st.data())
def test_keys_apart_from_values(shared, data):
    model = data.draw(models(shared))
    rows = data.draw(model.rows_strategy())
    frame = model.frame(rows)
    values = {name: frame[name] for name in model.value_names}
    model.table.put([key for key, _ in rows], values)
    model.rows.update({identity(key): (key, value) for key, value in rows})
    if rows:
        key, value = data.draw(st.sampled_from(rows))
        model.table[key] = {name: cell for name, cell in zip(model.value_names, value)}
        model.rows[identity(key)] = key, value
    assert model.rows_of(model.table.scan()) == model.expected(model.sorted())


@settings(max_examples=10)
@given(data=st.data())
def test_all_is_there_after_reopening(tmp_path_factory, data):
    path = str(tmp_path_factory.mktemp("reopened") / "db")
    with sd.open(path, durability=data.draw(st.sampled_from(["sync", "flush", "none"]))) as db:
        model = data.draw(models(db))
        if data.draw(st.booleans()):
            db.compact()
    with sd.open(path, "r") as db:
        table = db.table(model.table.name)
        assert table.schema == model.table.schema
        assert model.rows_of(table.scan()) == model.expected(model.sorted())


def test_float_keys_are_in_total_order(db):
    table = db.table("t", key=sd.f64, values=sd.i64)
    nan = float("nan")
    table.put([nan, 0.0, -0.0, float("inf"), -float("inf"), 1.0], range(6))
    assert table.get([nan, -0.0])["value"].to_list() == [0, 2]
    keys = list(table)
    assert keys[0] == -float("inf") and np.isnan(keys[-1]) and [np.signbit(k) for k in keys[1:3]] == [True, False]
