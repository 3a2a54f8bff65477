"""Sums and groups beside Python's own numbers."""

import collections
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import stridedb as sd
from random_tables import new_name

_keys = st.lists(st.tuples(st.integers(0, 5), st.integers(-(2**40), 2**40)), max_size=30)


@given(_keys, st.lists(_keys, max_size=3))
def test_add_integers(shared, first, more):
    table = shared.counters(new_name(), sd.i64, key=sd.i32)
    sums = collections.Counter()
    for rows in [first, *more]:
        table.add([k for k, _ in rows], [d for _, d in rows])
        for key, delta in rows:
            sums[key] += delta
    keys = [k for rows in [first, *more] for k, _ in rows]
    assert dict(table.items()) == {k: sums[k] for k in keys}
    table.add([k for k in set(keys)])
    table.add(3, 10)
    table.add(np.int32(3), np.int64(10))
    assert table[3] == sums[3] + 20 + (3 in keys)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-1e6, 1e6)), max_size=30))
def test_add_floats(shared, rows):
    table = shared.counters(new_name(), sd.f64, key=sd.u8)
    table.add(np.array([k for k, _ in rows], "u1"), np.array([d for _, d in rows], "f8"))
    for key, value in table.items():
        assert math.isclose(value, math.fsum(d for k, d in rows if k == key), rel_tol=1e-9, abs_tol=1e-6)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 9), st.integers(-(2**31), 2**31 - 1)), max_size=30),
    st.integers(0, 2)
)
def test_groups(shared, rows, by):
    type = sd.i32
    table = shared.counters(new_name(), type, key=[("a", sd.i16), ("b", sd.u8)])
    table.put({"a": [r[0] for r in rows], "b": [r[1] for r in rows], "value": [r[2] for r in rows]})
    groups = collections.defaultdict(list)
    for key, number in {(a, b): n for a, b, n in rows}.items():
        groups[key[:by]].append(number)
    result = table.group("sum", "min", "max", by=by)
    expected = [(*key, len(n), sum(n), min(n), max(n)) for key, n in sorted(groups.items())]
    assert list(zip(*[result[name].to_list() for name in result.columns])) == expected


def test_sums_that_do_not_fit(db):
    table = db.counters("c", sd.i32)
    table.add([b"a", b"b"], [2**31 - 1, 5])
    with pytest.raises(sd.InvalidArgument):
        table.add([b"b", b"a"], [1, 1])
    assert dict(table.items()) == {b"a": 2**31 - 1, b"b": 5}
    wrapping = db.counters("w", sd.i32, wrap=True)
    wrapping.add([b"a", b"a"], [2**31 - 1, 1])
    assert wrapping[b"a"] == -(2**31)
    for delta in (1.5, "x", None, 2**31, True):
        with pytest.raises((sd.InvalidArgument, TypeError)):
            table.add(b"a", delta)
    with pytest.raises(sd.InvalidArgument, match="3 keys"):
        table.add([b"a", b"b", b"c"], [1, 2])
    with pytest.raises(sd.InvalidType):
        db.counters("f", {})
    with pytest.raises(sd.InvalidType, match="counters of type string"):
        db.counters("f", sd.str_)
    with pytest.raises(sd.InvalidArgument, match="no table of counters"):
        db.table("t", key=sd.i64, values=sd.i64).add([1], [1])


def test_extremes_leave_nan_out(db):
    nan = float("nan")
    table = db.table("t", key=[("a", sd.i64), ("b", sd.i64)], values=sd.f64)
    table.put([(1, 1), (1, 2), (1, 3), (2, 1)], [nan, 1.0, 2.0, nan])
    groups = table.group("min", "max", by=1).to_dict()
    assert groups["min"][0] == 1.0 and groups["max"][0] == 2.0
    assert groups["min"][1] != groups["min"][1] and groups["max"][1] != groups["max"][1]
