"""Workers and drivers of Ray that are killed (kill -9) at a step that was planned for.

A plan is a directory of empty files named `STEP.before` and `STEP.after`, or `timer.MILLISECONDS`. Whichever process
comes first to such a step takes the file away, so each file kills once; `always.STEP` kills all. `setup` is the hook that Ray runs in each of
its workers; run as a program this is a driver that does one job:

    python ray_kills.py ADDRESS PATH JOB PLAN
"""

import functools
import json
import os
import resource
import signal
import sys
import threading
import time

STEPS = ["split", "enter", "open", "table", "bounds", "finished", "checksum", "build", "number", "answer"]
DRIVER_STEPS = ["manifest", "commit", "publish", "sweep"]


def take(name):
    """Whether this process is the one that a file of the plan is for."""
    try:
        os.unlink(os.path.join(os.environ["STRIDE_KILL_PLAN"], name))
    except FileNotFoundError:
        return False
    return True


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def step(owner, attribute, name):
    function = getattr(owner, attribute)

    @functools.wraps(function)
    def call(*arguments, **options):
        if take(name + ".before") or os.path.exists(os.path.join(os.environ["STRIDE_KILL_PLAN"], "always." + name)):
            die()
        result = function(*arguments, **options)
        if take(name + ".after"):
            die()
        return result

    setattr(owner, attribute, call)


def start_timers(owner, attribute):
    """Kills after so many milliseconds, wherever the process is then: within a commit, say."""
    function = getattr(owner, attribute)

    @functools.wraps(function)
    def call(*arguments, **options):
        for name in os.listdir(os.environ["STRIDE_KILL_PLAN"]):
            if name.startswith("timer.") and take(name):
                threading.Timer(int(name[6:]) / 1000, die).start()
        return function(*arguments, **options)

    setattr(owner, attribute, call)


def step_with_a_full_disk(owner, attribute):
    """Files of this process may have 64 KiB while the one function runs that takes `full`."""
    function = getattr(owner, attribute)

    @functools.wraps(function)
    def call(*arguments, **options):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        if take("full"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, before[1]))
        try:
            return function(*arguments, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    setattr(owner, attribute, call)


def setup():
    from stridedb import _shards

    step_with_a_full_disk(_shards, "build")

    step(_shards, "split", "split")
    step(_shards.Attempt, "__enter__", "enter")
    step(_shards.Attempt, "open", "open")
    step(_shards, "_make_table", "table")
    step(_shards, "_first_and_last", "bounds")
    step(_shards, "database_checksum", "checksum")
    step(_shards.Attempt, "finished", "finished")
    step(_shards, "build", "build")
    step(_shards, "number_vectors", "number")
    step(_shards, "answer_of", "answer")
    start_timers(_shards.Attempt, "open")


def setup_driver():
    from stridedb import _manifest

    step(_manifest, "read_manifest", "manifest")
    step(_manifest, "commit", "commit")
    step(_manifest, "_publish", "publish")
    step(_manifest, "sweep", "sweep")


def run(path, job):
    """Does a job, which is told as JSON: its name and number, table, mode, rows and so on."""
    import numpy as np
    import pyarrow as pa
    import ray

    import stridedb.ray as sr

    keys, values = (np.asarray(job[name], np.int64) for name in ("keys", "values"))
    blocks = [pa.table({"k": k, "v": v}) for k, v in zip(np.array_split(keys, 3), np.array_split(values, 3))]
    ds = ray.data.from_arrow(blocks)
    given = {"shards": job["shards"], "partition": job["partition"], "job": job["name"]}
    if job["kind"] == "counters":
        return sr.accumulate(ds, path, job["table"], "k", "v", **given)
    return sr.write(ds, path, job["table"], key="k", mode=job["mode"], **given)


if __name__ == "__main__":
    import ray

    address, path, job, plan = sys.argv[1:]
    os.environ["STRIDE_KILL_PLAN"] = plan
    ray.init(address, logging_level="ERROR", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    setup_driver()
    begun = time.time()
    entry = run(path, json.loads(job))
    print(json.dumps({"rows": entry["rows"], "seconds": time.time() - begun}))
