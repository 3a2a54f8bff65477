"""The jobs: for each program what it runs, how its answer is read, and what the answer has to be."""
import collections
import csv
import dataclasses
import datetime
import ipaddress
import re
from typing import Callable

PLACES_SQL = "create table t(id {number} primary key, name {text}, lat double, lon double);"
# The number of an IPv4 address.
IP_SQL = """create temp macro ip(a) as split_part(a, '.', 1)::bigint * 16777216
 + split_part(a, '.', 2)::bigint * 65536 + split_part(a, '.', 3)::bigint * 256
 + split_part(a, '.', 4)::bigint;"""
WHOLE = re.compile(r"-?\d+\.0")
ITEM_KINDS = ["book", "map", "print", "poster", "globe", "atlas", "card"]
ITEM_PRIME = 2000003  # more than there are items, so that no two have the same number


@dataclasses.dataclass
class Way:
    """How one program does a job."""
    step: tuple                # what is measured
    fresh: tuple = ()          # what is removed before each run
    prepare: tuple = ()        # once before, unmeasured; they print into prepared.PROGRAM.out
    answer: tuple = ()         # after the first run; of the last step's output. None: the step's own
    form: str = "tsv"          # of the answer: tsv, csv (of DuckDB), counts (of uniq -c), none
    ordered: bool = False      # the answer's order counts


@dataclasses.dataclass
class Job:
    name: str
    what: str
    files: tuple
    ways: dict                 # by program: stride, duckdb, sqlite (or sort, awk)
    expected: Callable         # of Data: the rows of the right answer
    rows: Callable             # of Data: how many rows there are to work on
    needs: str = ""            # "parquet": only where stride reads it


def read_csv(file, columns):
    """DuckDB's reader for lines of plain fields with tabs between."""
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    return f"read_csv('{file}', delim='\\t', quote='', escape='', header=false, columns={{{types}}})"


def to_csv(select):
    return f"copy ({select}) to 'duckdb.out' (format csv, header)"


# How a table of each program is made of a file.
LOADS = {
    ("stride", "zips"): lambda db: ("stride", "load", db, "t", "zips.csv", "--header", "--key",
                                    "id", "--key-type", "u64"),
    ("duckdb", "zips"): lambda db: ("duckdb", db, PLACES_SQL.format(number="ubigint", text="varchar")
                                    + "copy t from 'zips.csv' (header)"),
    ("sqlite", "zips"): lambda db: ("sqlite", db, PLACES_SQL.format(number="integer", text="text")
                                    + "\n.mode csv\n.import --skip 1 zips.csv t\n"),
    ("stride", "routes"): lambda db: ("stride", "load", db, "t", "routes.tsv", "--key-type",
                                      "prefix"),
    ("duckdb", "routes"): lambda db: (
        "duckdb", db, IP_SQL + "create table t as select prefix, ip(split_part(prefix, '/', 1)) "
        "as net, split_part(prefix, '/', 2)::bigint as len, value from "
        + read_csv("routes.tsv", {"prefix": "varchar", "value": "varchar"})),
    ("sqlite", "routes"): lambda db: ("sqlite", db, "create table t(prefix text primary key, value "
                                      "text);\n.mode tabs\n.import routes.tsv t\n"),
}


def base(program, table):
    """A database that jobs only read, and the step that makes it."""
    db = f"base-{table}.{program}"
    return db, LOADS[program, table](db)


def loading(table, columns):
    """The ways of a job that makes a table; what has to be in it is read back."""
    ways = {}
    for program in ("stride", "duckdb", "sqlite"):
        db = f"new.{program}"
        answer = {"stride": ("stride", "scan", db, "t"),
                  "duckdb": ("duckdb", db, to_csv(f"select {columns} from t")),
                  "sqlite": ("sqlite", db, f".mode tabs\nselect {columns} from t;\n")}[program]
        ways[program] = Way(LOADS[program, table](db), fresh=(db,), answer=(answer,),
                            form="csv" if program == "duckdb" else "tsv")
    return ways


def asking(table, stride, duckdb, sqlite=None, ordered=False):
    """The ways of a job that reads a base table and prints rows."""
    ways = {}
    for program, ask in (("stride", stride), ("duckdb", duckdb), ("sqlite", sqlite)):
        if ask is None:
            continue
        db, made = base(program, table)
        if program == "stride":
            step = ("stride", ask[0], db, "t", *ask[1:])
        elif program == "duckdb":
            step = ("duckdb", db, ask.replace("{out}", "'duckdb.out' (format csv, header)"))
        else:
            step = ("sqlite", db, ask)
        ways[program] = Way(step, prepare=(made,), form="csv" if program == "duckdb" else "tsv",
                            ordered=ordered and program == "stride")
    return ways


def counting(file):
    """The ways of a job that counts equal lines into a table."""
    return {
        "stride": Way(("stride", "load", "new.stride", "t", file, "--count"), fresh=("new.stride",),
                      answer=(("stride", "scan", "new.stride", "t"),)),
        "duckdb": Way(("duckdb", "new.duckdb", "create table t as select w, count(*) as n from "
                       + read_csv(file, {"w": "varchar"}) + " group by w"),
                      fresh=("new.duckdb",),
                      answer=(("duckdb", "new.duckdb", to_csv("select w, n from t")),), form="csv"),
        "sort": Way(("sh", "-c", f"sort {file} | uniq -c"), form="counts"),
    }


def number(text):
    """A number as stride writes it: 40, and not 40.0."""
    return text[:-2] if text.endswith(".0") and WHOLE.fullmatch(text) else text


def lines(data, name):
    with open(data.path(name), encoding="utf-8", newline="") as file:
        return file.read().splitlines()


def fields(data, name):
    return [tuple(line.split("\t")) for line in lines(data, name)]


def place(row):
    return (str(row[0]), row[1], number(str(row[2])), number(str(row[3])))


def places(data):
    return [place(row) for row in data.zips()]


def places_by_id(data):
    return {row[0]: row for row in places(data)}


def few_ids(data):
    rows = data.zips()
    return [rows[len(rows) * i // 4][0] for i in (1, 2, 3)]


def id_range(data):
    rows = data.zips()
    first = len(rows) // 2
    return rows[first][0], rows[min(first + 279, len(rows) - 1)][0]


def found_places(data):
    known = places_by_id(data)
    return [known[key] for key in lines(data, "keys.txt") if key in known]


def joined_orders(data):
    known, none = places_by_id(data), ("", "", "", "")
    return [(*order, *known.get(order[1], none)[1:]) for order in fields(data, "orders.tsv")]


def matched(name):
    def longest(data):
        tables = collections.defaultdict(dict)  # by length: from the network to its row
        for prefix, value in fields(data, "routes.tsv"):
            address, length = prefix.split("/")
            net = int(ipaddress.IPv4Address(address)) >> (32 - int(length))
            tables[int(length)][net] = (prefix, value)
        lengths = sorted(tables, reverse=True)
        rows = []
        for address in lines(data, name):
            a, b, c, d = address.split(".")
            n = int(a) << 24 | int(b) << 16 | int(c) << 8 | int(d)
            row = next((tables[k][n >> (32 - k)] for k in lengths if n >> (32 - k) in tables[k]),
                       ("", ""))
            rows.append((address, *row))
        return rows
    return longest


def match_sql(name):
    return IP_SQL + f"""copy (with q as (select a, ip(a) as n from
 {read_csv(name, {"a": "varchar"})}), l as (select a, n, unnest(range(33)) as len from q)
 select q.a, m.prefix, m.value from q left join (select l.a, max_by(t.prefix, t.len) as prefix,
 max_by(t.value, t.len) as value from l join t on t.len = l.len
 and t.net = (l.n >> (32 - l.len)) << (32 - l.len) group by l.a) m using (a)) to {{out}}"""


def counts(name):
    return lambda data: [(word, str(n)) for word, n in
                         collections.Counter(lines(data, name)).items()]


def sums(data):
    total = collections.Counter()
    for _, key, quantity in fields(data, "orders.tsv"):
        total[key] += int(quantity)
    return [(key, str(n)) for key, n in total.items()]


def items(data):
    day = datetime.date(2020, 1, 1)
    days = [str(day + datetime.timedelta(i)) for i in range(1000)]
    return [(str(i * 1000003 % ITEM_PRIME), f"item {i}", number(str(i % 9973 / 4)), days[i % 1000],
             ITEM_KINDS[i % 7]) for i in range(data.count(2000000))]


def items_sql(count):
    kinds = ", ".join(f"'{kind}'" for kind in ITEM_KINDS)
    return f"""copy (select (i * 1000003 % {ITEM_PRIME})::bigint as id, 'item ' || i as name,
 (i % 9973) / 4.0::double as price, date '2020-01-01' + (i % 1000)::integer as day,
 [{kinds}][i % 7 + 1] as kind from range({count}) r(i)) to 'items.parquet' (format parquet)"""


def all_jobs(data):
    ids = ", ".join(map(str, few_ids(data)))
    low, high = id_range(data)
    orders = {"o": "bigint", "id": "ubigint", "n": "bigint"}
    routes_stride, routes_made = base("stride", "routes")
    routes_duckdb, routes_made_duckdb = base("duckdb", "routes")
    routes_sqlite, routes_made_sqlite = base("sqlite", "routes")
    dumps = {
        "stride": Way(("stride", "dump", routes_stride), prepare=(routes_made,),
                      fresh=("new.stride",),
                      answer=(("stride", "restore", "new.stride", "dump.stride.out"),
                              ("stride", "scan", "new.stride", "t"))),
        "duckdb": Way(("duckdb", routes_duckdb, "export database 'exported' (format parquet)"),
                      prepare=(routes_made_duckdb,), fresh=("exported", "new.duckdb"),
                      answer=(("duckdb", "new.duckdb", "import database 'exported'; "
                               + to_csv("select prefix, value from t")),), form="csv"),
        "sqlite": Way(("sqlite", routes_sqlite, ".dump\n"), prepare=(routes_made_sqlite,),
                      fresh=("new.sqlite",),
                      answer=(("sh", "-c", "sqlite3 new.sqlite < dump.sqlite.out"),
                              ("sqlite", "new.sqlite", ".mode tabs\nselect * from t;\n"))),
    }
    restores = {
        "stride": Way(("stride", "restore", "new.stride", "routes.dump"), fresh=("new.stride",),
                      prepare=(routes_made, ("sh", "-c", "mv prepared.stride.out routes.dump")),
                      answer=(("stride", "scan", "new.stride", "t"),)),
        "duckdb": Way(("duckdb", "new.duckdb", "import database 'exported'"), fresh=("new.duckdb",),
                      prepare=(routes_made_duckdb,),
                      answer=(("duckdb", "new.duckdb", to_csv("select prefix, value from t")),),
                      form="csv"),
        "sqlite": Way(("sqlite", "new.sqlite", ".read routes.sql\n"), fresh=("new.sqlite",),
                      prepare=(routes_made_sqlite, ("sh", "-c", "mv prepared.sqlite.out routes.sql")),
                      answer=(("sqlite", "new.sqlite", ".mode tabs\nselect * from t;\n"),)),
    }
    for program in restores:  # what is restored is what the measured dump makes
        way = restores[program]
        way.prepare = (way.prepare[0], dumps[program].step, *way.prepare[1:])
    rows_of = lambda name: lambda data: len(lines(data, name))
    return [
        Job("start", "nothing: what each program's start takes", (), {
            "stride": Way(("stride", "version"), form="none"),
            "duckdb": Way(("duckdb", ":memory:", "select 1"), form="none"),
            "sqlite": Way(("sqlite", ":memory:", "select 1;"), form="none"),
            }, lambda data: [], lambda data: 0),
        Job("csv", "a CSV file with a header into a table with a numeric key", ("zips.csv",),
            loading("zips", "id, name, lat, lon"), places, lambda data: len(data.zips())),
        Job("jsonl", "the same rows as JSON lines", ("zips.jsonl",), {
            "stride": Way(("stride", "load", "new.stride", "t", "zips.jsonl", "--key", "id",
                           "--key-type", "u64"), fresh=("new.stride",),
                          answer=(("stride", "scan", "new.stride", "t"),)),
            "duckdb": Way(("duckdb", "new.duckdb", "create table t as select * from "
                           "read_json('zips.jsonl')"), fresh=("new.duckdb",),
                          answer=(("duckdb", "new.duckdb",
                                   to_csv("select id, name, lat, lon from t")),), form="csv"),
            }, places, lambda data: len(data.zips())),
        Job("routes", "a TSV file of IPv4 prefixes into a table", ("routes.tsv",),
            loading("routes", "prefix, value"), lambda data: fields(data, "routes.tsv"),
            rows_of("routes.tsv")),
        Job("get-3", "three keys of a table", ("zips.csv",), asking(
            "zips", ("get", *map(str, few_ids(data))),
            f"copy (select * from t where id in ({ids})) to {{out}}",
            f".mode tabs\nselect * from t where id in ({ids});\n", ordered=True),
            lambda data: [place(r) for r in data.zips() if r[0] in few_ids(data)], lambda data: 3),
        Job("get-file", "the keys of a file", ("zips.csv", "keys.txt"), asking(
            "zips", ("get", "--keys", "keys.txt"),
            "copy (select t.* from " + read_csv("keys.txt", {"k": "ubigint"})
            + " q join t on t.id = q.k) to {out}",
            "create temp table q(k integer);\n.mode tabs\n.import keys.txt q\n"
            "select t.* from q join t on t.id = q.k;\n", ordered=True),
            found_places, rows_of("keys.txt")),
        Job("scan", "a range of keys, in order", ("zips.csv",), asking(
            "zips", ("scan", "--from", str(low), "--to", str(high)),
            f"copy (select * from t where id >= {low} and id < {high} order by id) to {{out}}",
            f".mode tabs\nselect * from t where id >= {low} and id < {high} order by id;\n",
            ordered=True),
            lambda data: [place(r) for r in data.zips() if low <= r[0] < high],
            lambda data: sum(low <= r[0] < high for r in data.zips())),
        Job("join", "orders, each with its place", ("zips.csv", "orders.tsv"), asking(
            "zips", ("join", "orders.tsv", "--key", "2"),
            "copy (select o.*, t.name, t.lat, t.lon from " + read_csv("orders.tsv", orders)
            + " o left join t on t.id = o.id) to {out}",
            "create temp table o(o integer, id integer, n integer);\n.mode tabs\n"
            ".import orders.tsv o\nselect o.*, t.name, t.lat, t.lon from o left join t "
            "on t.id = o.id;\n", ordered=True),
            joined_orders, rows_of("orders.tsv")),
        Job("match-few", "the longest prefix of a few addresses", ("routes.tsv", "addresses.txt"),
            asking("routes", ("match", "--keys", "few_addresses.txt"),
                   match_sql("few_addresses.txt"), ordered=True),
            matched("few_addresses.txt"), rows_of("few_addresses.txt")),
        Job("match", "the longest prefix of many addresses", ("routes.tsv", "addresses.txt"),
            asking("routes", ("match", "--keys", "addresses.txt"), match_sql("addresses.txt"),
                   ordered=True),
            matched("addresses.txt"), rows_of("addresses.txt")),
        Job("dedup", "different lines of a file, in their order", ("urls.txt",), {
            "stride": Way(("stride", "dedup", "urls.txt"), ordered=True),
            "duckdb": Way(("duckdb", ":memory:", "create table l as select * from "
                           + read_csv("urls.txt", {"l": "varchar"}) + "; "
                           + to_csv("select l from l group by l order by min(rowid)")), form="csv",
                          ordered=True),
            "awk": Way(("awk", "!seen[$0]++", "urls.txt"), ordered=True),
            }, lambda data: [(line,) for line in dict.fromkeys(lines(data, "urls.txt"))],
            rows_of("urls.txt")),
        Job("words", "how often each word of four books comes", ("words.txt",),
            counting("words.txt"), counts("words.txt"), rows_of("words.txt")),
        Job("sums", "quantities of orders, by place", ("orders.tsv",), {
            "stride": Way(("stride", "load", "new.stride", "t", "orders.tsv", "--key", "2",
                           "--value", "3", "--key-type", "u64", "--accumulate"),
                          fresh=("new.stride",), answer=(("stride", "scan", "new.stride", "t"),)),
            "duckdb": Way(("duckdb", "new.duckdb", "create table t as select id, sum(n) as n from "
                           + read_csv("orders.tsv", orders) + " group by id"),
                          fresh=("new.duckdb",),
                          answer=(("duckdb", "new.duckdb", to_csv("select id, n from t")),),
                          form="csv"),
            "sqlite": Way(("sqlite", "new.sqlite", "create temp table o(o integer, id integer, "
                           "n integer);\n.mode tabs\n.import orders.tsv o\ncreate table t as "
                           "select id, sum(n) as n from o group by id;\n"), fresh=("new.sqlite",),
                          answer=(("sqlite", "new.sqlite", ".mode tabs\nselect * from t;\n"),)),
            }, sums, rows_of("orders.tsv")),
        Job("mers", "how often each 11 bases of a genome come", ("mers.txt",),
            counting("mers.txt"), counts("mers.txt"), rows_of("mers.txt")),
        Job("dump", "the table of prefixes into a file", ("routes.tsv",), dumps,
            lambda data: fields(data, "routes.tsv"), rows_of("routes.tsv")),
        Job("restore", "and back into a table", ("routes.tsv",), restores,
            lambda data: fields(data, "routes.tsv"), rows_of("routes.tsv")),
        Job("parquet", "a Parquet file of five columns into a table with a numeric key", (), {
            "stride": Way(("stride", "load", "new.stride", "t", "items.parquet", "--key", "id",
                           "--key-type", "i64"), fresh=("new.stride",),
                          prepare=(("duckdb", ":memory:", items_sql(data.count(2000000))),),
                          answer=(("stride", "scan", "new.stride", "t"),)),
            "duckdb": Way(("duckdb", "new.duckdb", "create table t as select * from "
                           "'items.parquet'; create unique index i on t(id)"),
                          fresh=("new.duckdb",),
                          answer=(("duckdb", "new.duckdb", to_csv("select * from t")),),
                          form="csv"),
            }, items, lambda data: data.count(2000000), needs="parquet"),
    ]


def answer_rows(path, form):
    """The rows of a program's output."""
    if form == "none":
        return []
    if form == "csv":
        with open(path, encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            next(rows, None)
            return [tuple(map(number, row)) for row in rows]
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read().split("\n")
    if text and text[-1] == "":
        text.pop()
    if form == "counts":
        return [(line[line.index(" ") + 1:], line[:line.index(" ")])
                for line in map(str.lstrip, text)]
    return [tuple(map(number, line.split("\t"))) for line in text]


def difference(rows, expected, ordered):
    """What is wrong with an answer, or nothing."""
    if rows == expected:
        return None
    if not ordered and len(rows) == len(expected):
        if sum(map(hash, rows)) == sum(map(hash, expected)):
            return None
    extra = collections.Counter(rows) - collections.Counter(expected)
    lacking = collections.Counter(expected) - collections.Counter(rows)
    if not extra and not lacking:
        i = next(i for i, row in enumerate(rows) if row != expected[i])
        return f"another order: row {i + 1} is {rows[i]}, and has to be {expected[i]}"
    show = lambda counter: ", ".join(map(str, list(counter)[:3])) or "none"
    return (f"{len(rows)} rows, and {len(expected)} have to be: {sum(extra.values())} are wrong "
            f"({show(extra)}), {sum(lacking.values())} are missing ({show(lacking)})")
