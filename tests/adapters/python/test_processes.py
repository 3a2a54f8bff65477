"""Other processes: forked ones, spawned ones, the interpreter's end, and Ctrl-C."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import stridedb as sd


def test_a_forked_child_is_told(python, path):
    out = python(
        """
        import os, sys
        import numpy as np, stridedb as sd
        db = sd.open(sys.argv[1])
        table = db.table("t", key=sd.i64, values=sd.i64)
        table.put([1, 2], [3, 4])
        at, scan, transaction, dedup = db.snapshot()["t"], table.scan(), db.transaction(), db.dedup("d", 1)
        transaction.put(table, [5], [6])
        rows = table.get([1, 2])
        calls = [lambda: table[1], lambda: table.get([1]), lambda: table.put([9], [9]), lambda: at[1],
                 lambda: at.get([1]), lambda: table.scan(), transaction.commit, lambda: db["t"],
                 lambda: db.table("x", key=sd.i64), db.compact, db.sync, db.verify,
                 lambda: dedup.find_or_put(np.arange(1, dtype="u4")), lambda: table.delete_range(), db.close]
        child = os.fork()
        if child == 0:
            told = 0
            for i, call in enumerate(calls):
                try:
                    call()
                except sd.Closed as error:
                    told += "forked" in str(error) or "fork" in error.remedy or i > 0
            print(told, rows["value"].to_list(), flush=True)
            with sd.open(sys.argv[1], "r") as again:
                print(again["t"][1], flush=True)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert table[1] == 3 and 9 not in table
        transaction.commit()
        print(len(calls), len(table))
        """,
        path,
    ).stdout.split("\n")
    assert out[0].split(" ", 1)[1] == "[3, 4]" and out[1] == "3" and out[2].split() == [out[0].split()[0], "3"]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_tables_for_other_processes(python, path, method):
    with sd.open(path) as db:
        db.table("t", key=sd.i64, values=sd.i64).put(np.arange(10), np.arange(10))
        for bad in (db, db["t"]):
            with pytest.raises(sd.InvalidArgument, match="open for writing"):
                pickle.dumps(bad)
    python(
        f"""
        import multiprocessing, os, pickle, sys
        import numpy as np, stridedb as sd

        def work(table):
            return os.getpid(), int(table.get(np.arange(10))["value"].numpy().sum()), table[3]

        if __name__ == "__main__":
            db = sd.open(sys.argv[1], "r")
            table = pickle.loads(pickle.dumps(db["t"]))  # so that this process has one of its own
            assert table.get([3])["value"].to_list() == [3]
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                for pid, total, one in pool.map(work, [db["t"]] * 6):
                    assert pid != os.getpid() and (total, one) == (45, 3)
            again = pickle.loads(pickle.dumps(db))
            assert again.read_only and again["t"][3] == 3
        """,
        path,
    )


def test_pickles(path):
    with sd.open(path) as db:
        db.table("t", key=sd.i64, values=sd.i64)[1] = 2
    with sd.open(path, "r", threads=2) as db:
        again = pickle.loads(pickle.dumps(db))
        assert again.options == db.options and again["t"][1] == 2
        db.options["threads"] = "nonsense"
        assert db.options["threads"] == 2
    for column in (sd.i64, sd.vector(sd.f32, 3), sd.optional(sd.str_), sd.timestamp_ns):
        assert pickle.loads(pickle.dumps(column)) == column and hash(column) == hash(pickle.loads(pickle.dumps(column)))
    error = pickle.loads(pickle.dumps(sd.KeyNotFound("message", "file", 5, "remedy")))
    assert (
        type(error), error.message, error.file, error.offset, error.remedy
    ) == (sd.KeyNotFound, "message", "file", 5, "remedy")


def test_a_table_that_is_unpickled_is_as_its_database_is_by_now(path):
    def sent():
        with sd.open(path, "r", threads=1) as db:
            return pickle.loads(pickle.dumps(db["t"]))

    with sd.open(path) as db:
        db.table("t", key=sd.i64, values=sd.i64)[1] = 100
    first = sent()
    assert first[1] == 100 and first._options["threads"] == 1 and first._options["read_only"]
    with sd.open(path) as db:
        db["t"][1] = 200
    assert sent()[1] == 200
    with sd.open(path) as db:
        db["t"][1] = 250
        assert sent()[1] == 250
    shutil.rmtree(path)
    with sd.open(path) as db:
        db.table("t", key=sd.i64, values=sd.str_)[1] = "another database"
    last = sent()
    assert last[1] == "another database" and isinstance(first[1], int)
    shutil.rmtree(path)
    with pytest.raises(sd.NotFound):
        pickle.loads(pickle.dumps(last))


def test_pickles_of_a_relative_path(path, monkeypatch):
    with sd.open(path) as db:
        db.table("t", key=sd.i64, values=sd.i64)[1] = 2
    monkeypatch.chdir(os.path.dirname(path))
    with sd.open("db", "r") as db:
        pickled = pickle.dumps(db["t"]), pickle.dumps(db)
    monkeypatch.chdir("/")
    assert pickle.loads(pickled[0])[1] == 2
    with pickle.loads(pickled[1]) as again:
        assert again["t"][1] == 2


ENDS = {
    "open handles": "pass",
    "an exception": "sys.exit(0)",
    "in a cycle": "cycle = [db, table, scan, transaction]; cycle.append(cycle); del db",
    "in a module": "import json; json.kept = (db, table, scan, transaction, rows, batch, array)",
    "closed": "db.close()",
    "a daemon thread that reads": "in_a_thread(lambda: table.get(np.arange(20000)))",
    "a daemon thread that writes": "in_a_thread(lambda: table.put(np.arange(20000), np.arange(20000)))",
    "a daemon thread that scans": "in_a_thread(lambda: [len(rows) for rows in table.scan()])",
    "a daemon thread that commits": "in_a_thread(lambda: table.put(*[np.arange(300000)] * 2, progress=lambda s: None))",
    "an exit handler": "atexit.register(lambda: table.get([1]) and scan)",
    "an exception in flight": "transaction.__enter__(); transaction.delete_range(table)",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_interpreters_end(python, path, end):
    python(
        f"""
        import atexit, sys, threading, time
        import numpy as np, stridedb as sd

        def forever(call):
            try:
                while True:
                    call()
            except sd.StrideError:
                pass

        def in_a_thread(call):
            threading.Thread(target=forever, args=(call,), daemon=True).start()
            time.sleep(0.2)

        db = sd.open(sys.argv[1], durability="none")
        table = db.table("t", key=sd.i64, values=sd.i64)
        table.put(np.arange(20000), np.arange(20000))
        scan, transaction, rows = table.scan(batch_rows=10), db.transaction(), table.get([1, 2])
        batch, array = next(scan), rows["value"].numpy()
        transaction.put(table, [-1], [-1])
        snapshot, dedup, plan = db.snapshot(), db.dedup("d", 1), sd.RowSet()
        dedup.find_or_put(np.arange(9, dtype="u4"))
        {end}
        """,
        path,
    )
    with sd.open(path) as db:
        assert -1 not in db["t"] and len(db["t"]) >= 20000 and len(db.dedup("d", 1)) == 9


def interrupted(tmp_path, path, work):
    """The output of a process to which Ctrl-C comes in the middle of its work."""
    code = f"""
import sys, time
import numpy as np, stridedb as sd
db = sd.open(sys.argv[1])
table = db.table("t", key=sd.i64, values=sd.i64)
print("ready", flush=True)
try:
    {work}
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", len(table), flush=True)
    table[-1] = 1
    db.close()
"""
    file = tmp_path / "interrupted.py"
    file.write_text(code)
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(sd.__file__))}
    process = subprocess.Popen(
        [sys.executable, str(file), path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    out, error = process.communicate(timeout=60)
    assert process.returncode == 0 and error == ""
    return out.split(), time.monotonic() - begun


def test_ctrl_c_in_a_commit(tmp_path, path):
    work = "keys = np.arange(20_000_000); table.put(keys[::-1], keys)"
    out, seconds = interrupted(tmp_path, path, work)
    assert out in (["interrupted", "0"], ["interrupted", "20000000"], ["finished"]) and seconds < 20
    if out[0] == "interrupted":
        with sd.open(path) as db:
            assert len(db["t"]) == int(out[1]) + 1


@pytest.mark.parametrize(
    "work",
    [
        "table.put(np.arange(100_000), np.arange(100_000))\n    while True: sum(len(rows) for rows in table.scan())",
        "table.put(np.arange(100_000), np.arange(100_000))\n    while True: table.get(np.arange(100_000))",
        "table.put(np.arange(10), np.arange(10), progress=lambda share: time.sleep(1))\n    time.sleep(5)",
        "db.load(({'key': [i], 'value': [i]} for i in iter(int, 1)), table='t')",
    ],
    ids=["scan", "get", "progress", "load"],
)
def test_ctrl_c_elsewhere(tmp_path, path, work):
    out, seconds = interrupted(tmp_path, path, work)
    assert out[0] == "interrupted" and seconds < 10
    with sd.open(path) as db:
        assert db["t"][-1] == 1


def test_a_second_process(python, path):
    with sd.open(path) as db:
        db.table("t", key=sd.i64, values=sd.i64)[1] = 2
        python(
            """
            import sys, stridedb as sd
            try:
                sd.open(sys.argv[1])
            except sd.Locked as error:
                assert "LOCK" in str(error) and error.remedy, error
                with sd.open(sys.argv[1], "r") as db:
                    assert db["t"][1] == 2
            else:
                raise AssertionError("two processes write")
            """,
            path,
        )
