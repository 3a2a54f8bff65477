"""Numbers for vectors, and sets of rows, beside dicts."""

import threading

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, strategies as st

import stridedb as sd
from random_tables import new_name

vectors = st.integers(1, 4).flatmap(
    lambda words: st.lists(st.lists(st.integers(0, 3), min_size=words, max_size=words), min_size=1, max_size=30)
)


def check(made, batches, dense=True):
    """The set beside a dict of vectors and their ids."""
    ids = {}
    for batch in batches:
        got, new = made.find_or_put(batch)
        for i, vector in enumerate(map(tuple, batch.tolist())):
            assert new[i] == (vector not in ids)
            assert ids.setdefault(vector, len(ids) if dense else got[i]) == got[i]
        assert made.find(batch).tolist() == got.tolist() and len(made) == len(ids)
        assert (made.get(got) == batch).all()
    assert len(set(ids.values())) == len(ids)
    unknown = np.full((1, made.words), 77, batches[0].dtype)
    assert made.find(unknown).tolist() == [made.absent]
    return ids


def batches_of(data, batch, kinds=("u4", "i4", ">u4")):
    array = np.array(batch, dtype=data.draw(st.sampled_from(kinds)))
    forms = [
        array, array[::-1], np.asfortranarray(array), np.concatenate([array, array], 1)[:, : array.shape[1]], array[::2]
    ]
    return [data.draw(st.sampled_from(forms)) for _ in range(3)]


@given(vectors, st.data())
def test_dedup(shared, batch, data):
    name = new_name()
    made = shared.dedup(
        name, words=len(batch[0]), durability=data.draw(st.sampled_from(["sync", "flush", "none", None]))
    )
    ids = check(made, batches_of(data, batch))
    del made
    again = shared.dedup(name, words=len(batch[0]))
    assert len(again) == len(ids)
    assert again.find(np.array(list(ids), "u4")).tolist() == list(ids.values())


@pytest.mark.parametrize("form", ["dense", "slots", "compressed"])
@given(batch=vectors, data=st.data())
def test_vector_sets(form, batch, data):
    assume(form == "dense" or len(batch[0]) != 3)  # of which there is none
    made = sd.VectorSet(len(batch[0]), form=form, capacity=1000)
    check(made, batches_of(data, batch), dense=form == "dense")
    assert made.memory_bytes > 0 and made.id_limit >= len(made)
    made.clear()
    assert len(made) == 0 and made.find(np.zeros((1, made.words), "u4")).tolist() == [made.absent]


@given(st.lists(st.lists(st.text(max_size=3), max_size=20), max_size=3))
def test_row_sets(batches):
    made, seen = sd.RowSet(), set()
    for batch in batches:
        forms = [
            batch, pa.array(batch, pa.string()), pa.array(batch, pa.string_view()), pl.Series(batch, dtype=pl.String)
        ]
        expected = [text not in seen and text not in batch[:i] for i, text in enumerate(batch)]
        assert made.put(forms[len(seen) % 4], text=True).tolist() == expected
        seen.update(batch)
        assert len(made) == len(seen)
    made = sd.RowSet(threads=1)
    assert made.put([b"a", b"b", b"a"]).tolist() == [True, True, False]
    assert made.put(np.array([b"a", b"c"])).tolist() == [False, True]


def test_vectors_that_do_not_fit(db):
    made = db.dedup("d", 2)
    for bad in (
        np.zeros((3, 3), "u4"), np.zeros(3, "u4"), np.zeros((2, 2, 2), "u4"), np.float64(1), np.zeros((3, 2), "M8[s]"),
        np.ma.array(np.zeros((2, 2), "u4"), mask=[[0, 0], [1, 0]]), [[1, 2], [3]], "x", None, [["a", "b"]],
        np.zeros((3, 2), "c8"),
        np.zeros((0, 2), "O"), np.zeros(3, [("a", "u4"), ("b", "u4")]), np.zeros((3, 2), "f8"),
    ):
        with pytest.raises((sd.InvalidArgument, TypeError, ValueError)):
            made.find_or_put(bad)
        with pytest.raises((sd.InvalidArgument, TypeError, ValueError)):
            made.find(bad)
    assert len(made) == 0
    for bad in ([0], [-1], [1.5], ["x"], [None], None, np.zeros((2, 2), "u8"), [2**64], [2**64 - 1]):
        with pytest.raises((sd.StrideError, TypeError)):
            made.get(bad)
    assert len(made.find_or_put(np.zeros((0, 2), "u4"))[0]) == 0 and made.get([]).shape == (0, 2)
    with pytest.raises(sd.InvalidArgument, match="'bogus'"):
        db.dedup("e", 2, durability="bogus")
    for words in (0, 65, 2**31):
        with pytest.raises(sd.InvalidArgument):
            db.dedup("e", words)
        with pytest.raises(sd.StrideError):
            sd.VectorSet(words)
    for arguments in ({"form": "x"}, {"backend": "x"}):
        with pytest.raises(sd.InvalidArgument):
            sd.VectorSet(2, **arguments)
    with pytest.raises(sd.InvalidArgument, match="row 1 is null"):
        sd.RowSet().put(pa.array(["a", None]), text=True)
    with pytest.raises(sd.InvalidType):
        sd.RowSet().put(["a"])


def test_a_set_of_many_threads(db):
    made, rows = db.dedup("d", 2), sd.RowSet()
    batches = [np.random.default_rng(seed).integers(0, 500, (2000, 2), "u4") for seed in range(6)]
    new, failed = [], []

    def work(batch):
        try:
            for part in np.array_split(batch, 10):
                new.append(int(made.find_or_put(part)[1].sum()))
                assert (made.get(made.find(part)) == part).all() and len(made) and made.memory_bytes
                rows.put([row.tobytes() for row in part])
                assert len(rows)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(b,)) for b in batches]
    [t.start() for t in threads], [t.join() for t in threads]
    distinct = len(np.unique(np.concatenate(batches), axis=0))
    assert not failed and sum(new) == len(made) == len(rows) == distinct


def test_a_set_after_its_database_is_closed(db):
    made = db.dedup("d", 1)
    made.find_or_put(np.arange(3, dtype="u4"))
    db.close()
    with pytest.raises(sd.Closed):
        made.find_or_put(np.arange(9, dtype="u4"))
    with pytest.raises(sd.Closed):
        db.dedup("e", 1)
