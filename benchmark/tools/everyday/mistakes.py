"""Twenty-five mistakes that users make: what stride does, its exit code and what it says."""
import os
import resource
import signal
import subprocess
import time

from programs import outcome, remove, shown

TIME_LIMIT = 60
FILE_LIMIT = 4096  # bytes of a file, where a disk that is full is played

FILES = {
    "places.csv": "zip,city\n00501,Holtsville\n00544,Holtsville\n01001,Agawam\n",
    "numbers.tsv": "1\tone\n2\ttwo\n",
    "quote.csv": "a,b\n1,2\n3,\"4\n5,6\n7,8\n",
    "short.csv": "a,b\n1,2\n3\n",
    "ends.csv": "a,b\r\n1,2\r\n3,4\n",
    "array.json": "[\n {\"id\": 1, \"name\": \"x\"},\n {\"id\": 2, \"name\": \"y\"}\n",
    "bits.tsv": "10.1.2.3/8\tx\n",
    "sums.tsv": "a\t9223372036854775807\na\t1\n",
}


def mistakes():
    """(what the user did wrong, arguments, how it is run)"""
    load = ("load", "db", "new")
    return [
        ("a command misspelled", ("laod", "db", "new", "places.csv"), plain),
        ("an option misspelled", (*load, "places.csv", "--heade"), plain),
        ("a word for a count", ("scan", "db", "places", "--limit", "ten"), plain),
        ("a negative count", ("scan", "db", "places", "--limit", "-1"), plain),
        ("a key type that is none", (*load, "places.csv", "--header", "--key-type", "int"), plain),
        ("a column that is not there", (*load, "places.csv", "--header", "--key", "zipcode"),
         plain),
        ("a column's name with --no-header", (*load, "places.csv", "--key", "zip", "--no-header"),
         plain),
        ("text as a number", (*load, "places.csv", "--header", "--key", "city", "--key-type",
                              "u64"), plain),
        ("a type that the table does not have", ("load", "db", "places", "places.csv", "--header",
                                                 "--key-type", "bytes"), plain),
        ("a width for keys that are numbers", (*load, "numbers.tsv", "--key-type", "u64",
                                               "--key-width", "4"), plain),
        ("a file that is missing", (*load, "zipcodes.csv"), plain),
        ("a Parquet file that is missing", (*load, "places.parquet"), plain),
        ("a table that is missing", ("get", "db", "place", "501"), plain),
        ("a database that is missing", ("get", "dbb", "places", "501"), plain),
        ("a directory that is no database", ("load", "other", "new", "numbers.tsv"), plain),
        ("a quote that is not closed", (*load, "quote.csv", "--header"), plain),
        ("a row that is too short", (*load, "short.csv", "--header"), plain),
        ("line ends of two kinds", (*load, "ends.csv", "--header"), plain),
        ("a JSON array without its end", (*load, "array.json", "--key", "id"), plain),
        ("bits behind a prefix", (*load, "bits.tsv", "--key-type", "prefix"), plain),
        ("a sum that does not fit", (*load, "sums.tsv", "--accumulate"), plain),
        ("a database that another process has", ("load", "db", "new", "numbers.tsv"), while_locked),
        ("a disk that is full", (*load, "many.tsv"), with_small_files),
        ("Ctrl-C in a load", (*load, "-"), interrupted),
        ("more rows than memory", (*load, "many.tsv", "--max-memory", "10k"), plain),
    ]


def finished(process, given=None):
    try:
        out, error = process.communicate(given, TIME_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None, "", f"does not end: {TIME_LIMIT} s"
    return process.returncode, out, error


def started(command, work, **more):
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=work, stdin=pipe, stdout=pipe, stderr=pipe, text=True,
                            **more)


def plain(command, work):
    return finished(started(command, work))


def with_small_files(command, work):
    limits = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))
    return finished(started(command, work, preexec_fn=limits))


def begun(command, work):
    """A load of the standard input that has the database open, and waits for more rows."""
    process = started(command, work)
    process.stdin.write("1\tone\n")
    process.stdin.flush()
    until = time.monotonic() + TIME_LIMIT
    while not has_lock(process.pid) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    return process


def has_lock(pid):
    links = f"/proc/{pid}/fd"
    try:
        return any(os.readlink(f"{links}/{link}").endswith("/db/LOCK") for link in os.listdir(links))
    except OSError:
        return False  # a file that was closed meanwhile


def while_locked(command, work):
    first = begun([command[0], "load", "db", "waiting", "-"], work)
    result = plain(command, work)
    first.kill()
    finished(first)
    return result


def interrupted(command, work):
    process = begun(command, work)
    process.send_signal(signal.SIGINT)
    return finished(process)


def prepare(stride, work):
    for name in ("db", "dbb", "other"):
        remove(os.path.join(work, name))
    files = {**FILES, "many.tsv": "".join(f"{i}\trow {i}\n" for i in range(100000)),
             "other/letter.txt": "not a database\n"}
    os.makedirs(os.path.join(work, "other"))
    for name, text in files.items():
        with open(os.path.join(work, name), "w", encoding="utf-8", newline="") as file:
            file.write(text)
    subprocess.run([stride, "load", "db", "places", "places.csv", "--header", "--key-type", "u64"],
                   cwd=work, check=True, capture_output=True)


def replay(programs, work):
    """Prints what becomes of each mistake; 1 where one is accepted, or ends without a message."""
    bad = 0
    prepare(programs.stride, work)
    for i, (what, arguments, how) in enumerate(mistakes(), 1):
        remove(os.path.join(work, "dbb"))
        code, out, error = how([programs.stride, *arguments], work)
        print(f"{i}. {what}\n   $ {shown(('stride', *arguments))}")
        print(f"   {'no end' if code is None else outcome(code)}")
        for line in (error + out).splitlines()[:6]:
            print(f"   {line}")
        if code is None or code <= 0 or not error.strip():
            bad += 1
            print("   BAD: this has to end with an exit code that is not 0, and with a message")
        print()
    print(f"{len(mistakes())} mistakes, of which {bad} are accepted or end without a message")
    return 1 if bad else 0
