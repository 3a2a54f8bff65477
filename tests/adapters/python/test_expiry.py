"""Tables whose rows end."""

import datetime

import numpy as np
import pytest

import stridedb as sd

NOW = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
HOUR = datetime.timedelta(hours=1)
ENDS = sd.optional(sd.timestamp_us)


def test_rows_that_have_ended_are_not_found(db):
    table = db.table("t", key=sd.i64, values={"until": ENDS, "n": sd.i64}, expires="until")
    table.put([1, 2, 3], {"until": [NOW - HOUR, NOW + HOUR, None], "n": [10, 20, 30]})
    assert 1 not in table
    assert table[2]["n"] == 20
    assert table[3]["until"] is None
    assert len(table) == 2
    rows = table.get([1, 2, 3])
    assert rows.found.tolist() == [False, True, True]
    assert list(table) == [2, 3]
    assert table.put_if_absent([1, 2], {"until": [None, None], "n": [11, 21]}).tolist() == [True, False]
    assert table[1]["n"] == 11


def test_the_time_to_live_is_set(db):
    table = db.table("t", key=sd.str_, values={"until": ENDS, "n": sd.i64}, expires="until", ttl=HOUR)
    table.put(["a", "b"], {"until": [None, NOW + 5 * HOUR], "n": [1, 2]})
    left = table["a"]["until"] - NOW
    assert HOUR - datetime.timedelta(seconds=5) < left < HOUR + datetime.timedelta(minutes=10)
    assert table["b"]["until"] == NOW + 5 * HOUR
    again = db.table("t", key=sd.str_, values={"until": ENDS, "n": sd.i64}, expires="until", ttl=3600)
    assert again["b"]["n"] == 2
    with pytest.raises(sd.InvalidArgument, match="cannot be changed"):
        db.table("t", key=sd.str_, values={"until": ENDS, "n": sd.i64}, expires="until", ttl=1)
    for same in (np.int64(3600), np.timedelta64(3600, "s"), np.float32(3600)):
        db.table("t", key=sd.str_, values={"until": ENDS, "n": sd.i64}, expires="until", ttl=same)
    assert db.table("t")["b"]["n"] == 2


@pytest.mark.parametrize("count, unit", [(1, "W"), (7 * 24, "h"), (604_800, "s"), (604_800 * 10**9, "ns")])
def test_a_time_to_live_of_numpy_has_its_unit(db, count, unit):
    values = {"until": ENDS, "n": sd.i64}
    db.table("t", key=sd.i64, values=values, expires="until", ttl=np.timedelta64(count, unit))
    assert db.table("t", key=sd.i64, values=values, expires="until", ttl=7 * 24 * HOUR).name == "t"


def test_a_time_to_live_is_a_span_that_64_bits_have(db):
    values = {"until": ENDS, "n": sd.i64}
    refused = [np.timedelta64(999, "ns"), np.timedelta64(1, "M"), np.timedelta64("NaT"), np.timedelta64(5)]
    for ttl in refused + [86_400 * 10**9 - 1, datetime.timedelta.max]:
        with pytest.raises(sd.InvalidArgument, match="ttl is") as caught:
            db.table("t", values=values, expires="until", ttl=ttl)
        assert "below 9.2 * 10**12" in caught.value.remedy
    assert db.table("t", values=values, expires="until", ttl=9.2e12).name == "t"


def test_what_does_not_fit_is_refused(db):
    values = {"until": ENDS, "n": sd.i64}
    for ttl in (0, -1, datetime.timedelta(0), 1e-7, 9.3e13, 1e30, float("nan"), float("inf"), "1h", True):
        with pytest.raises(sd.InvalidArgument, match="ttl is"):
            db.table("t", values=values, expires="until", ttl=ttl)
    with pytest.raises(sd.InvalidArgument, match="'n' is of type i64"):
        db.table("t", values=values, expires="n")
    with pytest.raises(sd.InvalidArgument, match="no value column"):
        db.table("t", values=values, expires="nothing")
    with pytest.raises(sd.InvalidArgument, match="without an expiry_column"):
        db.table("t", values=values, ttl=1)
    db.table("t", values=values, expires="until")
    with pytest.raises(sd.InvalidArgument, match="'until' says when rows end"):
        db.table("t", values=values)
