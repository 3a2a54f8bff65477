"""Weights that are added up by target, beside NumPy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import stridedb as sd
from random_tables import new_name

maps = st.lists(st.integers(0, 5), min_size=1, max_size=20)


@given(maps, st.lists(st.integers(0, 25), max_size=40), st.sampled_from(["i4", "i8", "f4", "f8"]), st.data())
def test_sums_by_number(shared, targets, sources, dtype, data):
    table = shared.table(new_name(), key=sd.u32, values=sd.u32)
    table.put(np.arange(len(targets)), np.array(targets))
    weights = np.array(data.draw(st.lists(st.integers(-100, 100), min_size=len(sources), max_size=len(sources))), dtype)
    expected = np.zeros(6, dtype)
    mapped = np.array(sources, "i8")[np.array(sources, "i8") < len(targets)]
    np.add.at(expected, np.array(targets)[mapped], weights[np.array(sources, "i8") < len(targets)])
    plan = shared.plan(table, np.array(sources, "u4"), targets=6)
    assert (plan.sources, plan.targets, plan.unmapped) == (len(sources), 6, len(sources) - len(mapped))
    for form in (
        weights, weights.astype(weights.dtype.newbyteorder(">")), weights[::-1][::-1], np.repeat(weights, 2)[::2]
    ):
        assert plan.map(form, reproducible=data.draw(st.booleans())).tolist() == expected.tolist()
    into = np.ones(6, dtype)
    assert plan.map(weights, into) is into and into.tolist() == (expected + 1).tolist()
    assert shared.map_weights(table, np.array(sources, "u4"), weights, targets=6).tolist() == expected.tolist()


@given(st.lists(st.text("abc", min_size=1, max_size=2), min_size=1, max_size=20))
def test_sums_by_name(shared, names):
    table = shared.table(new_name(), key=sd.i64, values=sd.str_)
    table.put(range(len(names)), names)
    plan = shared.plan(table, names=True)
    weights = np.arange(len(names), dtype="i8")
    assert plan.target_names == sorted(set(names))
    expected = [sum(w for w, n in zip(weights.tolist(), names) if n == name) for name in sorted(set(names))]
    assert plan.map(weights).tolist() == expected


def test_arrays_that_do_not_fit(db):
    table = db.table("m", key=sd.u32, values=sd.u32)
    table.put(np.arange(4), np.array([0, 1, 2, 0]))
    plan = db.plan("m")
    ones = np.ones(4, "i8")
    read_only = np.zeros(3, "i8")
    read_only.flags.writeable = False
    unaligned = np.frombuffer(bytearray(25), "i8", offset=1, count=3)
    for into in (
        np.zeros(3, ">i8"), np.zeros(3, "i8")[::-1], np.zeros(6, "i8")[::2], read_only, unaligned, [0, 0, 0],
        np.zeros(2, "i8"),
        np.zeros((3, 1), "i8"), np.zeros(3, "f2"), np.zeros(3, "u8"), np.ma.zeros(3, "i8"), np.int64(3), "abc",
        np.zeros(3, "O"),
    ):
        with pytest.raises((sd.InvalidArgument, TypeError)):
            plan.map(ones, into)
    for weights in (
        np.ones(3, "i8"), np.ones(5, "i8"), np.ones(4, "u8"), np.ones((4, 1), "i8"),
        np.ma.array(ones, mask=[1, 0, 0, 0]),
        ["a"] * 4, None, 5, np.ones(4, "c16"), np.ones(4, "O"), np.ones(4, "M8[s]"),
    ):
        with pytest.raises((sd.InvalidArgument, TypeError)):
            plan.map(weights)
    assert plan.map([1, 2, 3, 4]).tolist() == [5, 2, 3] and plan.map(ones).tolist() == [2, 1, 1]
    # Weights that are the sums as well.
    same = np.array([1, 2, 3, 4], "i8")
    assert plan.map(same, same[:3]).tolist() == [6, 4, 6]
    for arguments in (
        {"unmapped": "x"}, {"sources": [9], "unmapped": "error"}, {"sources": [1.5]}, {"sources": [None]}
    ):
        with pytest.raises(sd.StrideError):
            db.plan("m", **arguments)
    with pytest.raises(sd.NotFound):
        db.plan("missing")
    db.close()
    assert plan.map(ones).tolist() == [2, 1, 1]
