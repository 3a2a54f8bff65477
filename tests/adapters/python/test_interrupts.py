"""Signals in the middle of calls that take long: they end, and leave nothing half."""

import functools
import itertools
import os
import signal

import numpy as np
import pytest

import stridedb as sd
from stridedb import _core

ROWS = 400_000


class Ended(Exception):
    pass


def end(signum, frame):
    raise Ended


def ends(call, *arguments, before=lambda: None):
    """Whether a signal ends a call of the compiled module. Where the call was faster, it is made again."""
    handler = signal.signal(signal.SIGALRM, end)
    try:
        for attempt in range(60):
            before()
            # No Python runs between the call's end and this, so that what is in it tells whether it returned.
            returned = []
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.064 / 2 ** (attempt % 7))
                    returned.extend(itertools.starmap(functools.partial(call, *arguments), [()]))
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Ended:
                if not returned:
                    return True
        return False
    finally:
        signal.signal(signal.SIGALRM, handler)


@pytest.fixture
def runs(path):
    """A table of three runs, and what it has."""
    with sd.open(path, durability="none", background=False) as db:
        table = db.table("t", key=sd.i64, values=sd.i64)
        rows = {}
        for run in range(3):
            keys = np.arange(run, 3 * ROWS, run + 2)
            table.put(keys, keys * run)
            rows.update(zip(keys.tolist(), (keys * run).tolist()))
        yield db, table, rows


def count_runs(db):
    return next(s["runs"] for s in db.statistics() if s["name"] == "t")


def files_of(path):
    """Without the log for people, which tells of merges that were ended, too."""
    return sorted(set(os.listdir(path)) - {"LOG"})


def test_a_compaction(runs, path):
    db, table, rows = runs

    def make_a_run():
        if count_runs(db) == 1:
            table.put(np.arange(ROWS), np.arange(ROWS) * 0)
            rows.update((key, 0) for key in range(ROWS))
        made.append((count_runs(db), files_of(path)))

    made = []
    assert ends(db.compact, before=make_a_run)
    # A signal may come when all is done.
    assert (count_runs(db), files_of(path)) == made[-1] or count_runs(db) == 1
    keys = np.fromiter(rows, np.int64, len(rows))
    values = np.fromiter(rows.values(), np.int64, len(rows))
    assert np.array_equal(table.get(keys)["value"].numpy(), values)
    db.verify()
    db.compact()
    assert count_runs(db) == 1 and len(table) == len(rows)
    assert np.array_equal(table.get(keys)["value"].numpy(), values)


def test_reads(runs):
    db, table, rows = runs
    there = np.fromiter(rows, np.int64, len(rows))
    keys = np.arange(-100_000, 4 * ROWS)
    words = db.table("words", key=sd.i64, values=sd.str_)
    many = np.arange(3 << 20)
    words.put(many[:ROWS], ["word"] * ROWS)
    found = words.get(many)
    assert ends(db.verify)
    assert ends(db.calibrate)
    assert ends(len, table)
    assert ends(_core._group, table, ["sum"], 0, None, None, None)
    assert ends(table.lower_bound, keys)
    assert ends(table.counts, keys, keys[::-1].copy())
    assert ends(table.contains, np.tile(keys, 4))
    assert ends(words.get, many)
    assert ends(found["value"].to_list)
    assert ends(table.get, many.tolist())
    assert ends(_core._plan, table, keys, True, 0, "count")
    # Whatever they had begun, later ones are whole.
    assert len(table) == len(rows)
    assert table.group("sum").to_dict() == {"count": [len(rows)], "sum": [sum(rows.values())]}
    assert np.array_equal(table.contains(keys), np.isin(keys, there))
    found = words.get(many)
    assert found.found.sum() == ROWS and found["value"][ROWS - 1] == "word" and found["value"][ROWS] is None
    bounds = table.lower_bound(keys)
    there.sort()
    at = np.searchsorted(there, keys)
    assert np.array_equal(bounds.found, at < len(there))
    assert np.array_equal(bounds["key"].numpy(fill=0)[bounds.found], there[at[bounds.found]])
    db.verify()


def test_sets(path):
    vectors = np.arange(5 << 20, dtype=np.uint32)
    seen = sd.VectorSet(1)
    assert ends(seen.find_or_put, vectors, before=seen.clear)
    # What came before is there, and no more than that.
    there = len(seen)
    assert there in (0, 4 << 20)
    ids, new = seen.find_or_put(vectors)
    assert np.array_equal(new, vectors >= there) and np.array_equal(ids, vectors)
    assert ends(seen.find, vectors)
    assert np.array_equal(seen.find(vectors), vectors) and np.array_equal(seen.get(ids)[:, 0], vectors)
    with pytest.raises(sd.NotFound, match=f"row {len(ids)}: its id was never given"):
        seen.get(np.append(ids, np.uint64(len(seen))))
    with sd.open(path, durability="none") as db:
        db.dedup("d", words=1).find_or_put(vectors[: 1 << 20])
        assert ends(_core._dedup, db, "d", 1, None, 0, False)
        assert len(db.dedup("d", words=1)) == 1 << 20
