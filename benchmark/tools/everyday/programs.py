"""The programs that are compared, each as a whole process, and how long one takes."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

TIME_LIMIT = 240  # seconds that one process may take

# A user's Python program with DuckDB: the database, then statements.
DUCKDB_PROGRAM = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()"


class Failed(Exception):
    """A program that ended with an error."""


def processor_time():
    """Seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Programs:
    def __init__(self, stride):
        self.stride = os.path.abspath(stride)
        self.sqlite = shutil.which("sqlite3")
        self.duckdb = self._duckdb_version()
        self.has_parquet = False
        self.versions = {"stride": self._first_line([self.stride, "--version"]).split(" ")[-1]}
        if self.duckdb:
            self.versions["duckdb"] = self.duckdb
        if self.sqlite:
            self.versions["sqlite"] = self._first_line([self.sqlite, "--version"]).split(" ")[0]

    @staticmethod
    def _first_line(command):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[0]

    @staticmethod
    def _duckdb_version():
        code = "import duckdb; print(duckdb.__version__)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    def find_parquet(self, work):
        """Whether this stride was built with Arrow: one without says so with exit code 8."""
        path = os.path.join(work, "nothing.parquet")
        with open(path, "wb") as file:
            file.write(b"PAR1PAR1")
        done = subprocess.run([self.stride, "load", os.path.join(work, "none.db"), "t", path],
                              capture_output=True)
        self.has_parquet = done.returncode != 8

    def command(self, step):
        """The command line and the standard input of a step: (program, arguments...)."""
        program, rest = step[0], step[1:]
        if program == "stride":
            return [self.stride, *rest], None
        if program == "duckdb":
            return [sys.executable, "-c", DUCKDB_PROGRAM, *rest], None
        if program == "sqlite":
            return [self.sqlite, "-bail", rest[0]], rest[1]
        return list(step), None

    def run(self, step, work, output=None):
        """Runs a step in the folder work, with its standard output in a file; returns seconds,
        and of them those that processors were busy."""
        command, given = self.command(step)
        with open(output or os.devnull, "wb") as out, \
                open(os.path.join(work, "errors.txt"), "w+b") as errors:
            busy, start = processor_time(), time.perf_counter()
            process = subprocess.Popen(
                command, cwd=work, stdout=out, stderr=errors, env={**os.environ, "LC_ALL": "C"},
                stdin=subprocess.PIPE if given is not None else subprocess.DEVNULL)
            # A wait with a limit of its own would look only every 50 ms.
            limit = threading.Timer(TIME_LIMIT, process.kill)
            limit.start()
            try:
                process.communicate(given.encode() if given is not None else None)
            except BaseException:
                process.kill()
                process.wait()
                raise
            finally:
                limit.cancel()
            seconds, busy = time.perf_counter() - start, processor_time() - busy
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
        if seconds >= TIME_LIMIT:
            raise Failed(f"{shown(step)}: took more than {TIME_LIMIT} s")
        if process.returncode != 0:
            raise Failed(f"{shown(step)}: {outcome(process.returncode)}: {said}")
        return seconds, busy


def shown(step):
    """A step as one would type it, in short."""
    text = " ".join(step)
    return text if len(text) <= 200 else text[:197] + "..."


def outcome(code):
    """What a process's return code means."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    for name in (path, path + ".wal", path + "-journal"):
        if os.path.exists(name):
            os.remove(name)
