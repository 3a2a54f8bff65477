#!/usr/bin/env python3
"""Runs stride-bench ycsb with both durabilities in both directories, and puts the tables into
docs/results/ycsb.md, between the marks there.

  benchmark/tools/ycsb_results.py MEMORY-DIRECTORY DISK-DIRECTORY [--program build/release/bin/stride-bench]
      [--workloads A,B,C,E,F] [--records 500k] [--seconds 5] [--threads 2] [--rewrite-records 100k]
      [--durability none,flush] [--stores all] [--repeat 1] [--page docs/results/ycsb.md]

Other text of the page stays as it is. A table whose runs are left out stays, too.
"""

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import tempfile


def run(options, workloads, records, durability, directory):
    """Rows of one run of stride-bench, and its command without the directory."""
    with tempfile.NamedTemporaryFile(suffix=".json") as rows:
        arguments = ["ycsb", "--workload", workloads, "--distribution", options.distribution,
                     "--records", records, "--seconds", options.seconds, "--threads",
                     options.threads, "--durability", durability, "--stores", options.stores,
                     "--repeat", str(options.repeat)]
        shown = "stride-bench " + shlex.join(arguments)
        print(shown, "--directory", directory, file=sys.stderr, flush=True)
        subprocess.run([options.program, *arguments, "--directory", directory, "--json", rows.name],
                       check=True, stdout=sys.stderr)
        return json.load(rows), shown


def medians(rows):
    """The row in the middle, of all repeats of a store and phase."""
    groups = {}
    for row in rows:
        groups.setdefault((row["engine"] + ":" + row["configuration"], row["phase"]), []).append(row)
    return {key: sorted(group, key=lambda r: r["records_per_second"])[(len(group) - 1) // 2]
            for key, group in groups.items()}


def number(value):
    """Three significant digits, with commas."""
    if value is None:
        return "-"
    if value >= 1000:
        digits = len(str(int(value)))
        return f"{round(value, 3 - digits):,.0f}"
    return f"{value:.3g}"


def ratio(over, under):
    return number(over / under) if over and under else "-"


def table(header, lines):
    rule = "|" + "---|" * len(header)
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in [header]] + [rule]
                     + ["| " + " | ".join(cells) + " |" for cells in lines])


def stores_of(rows):
    return list(dict.fromkeys(store for store, _ in rows))


def phases_of(rows):
    return list(dict.fromkeys(phase for _, phase in rows if not phase.endswith(("_load", "_reopen"))))


def per_second(row):
    return row["records_per_second"]


def per_cpu_second(row):
    return row["records"] / row["cpu_seconds"]


def rates(rows, title, rate_of, with_load):
    """Operations of each workload, of which the best is bold, and StrideDB's ratio to the best peer."""
    phases = phases_of(rows)
    names = [phase.split("_")[0] for phase in phases]
    if with_load:
        phases, names = [phases[0] + "_load", *phases], ["load", *names]
    rate = {key: rate_of(row) for key, row in rows.items() if key[1] in phases}
    lines = []
    for store in stores_of(rows):
        cells = [store]
        for phase in phases:
            best = max(value for (_, p), value in rate.items() if p == phase)
            text = number(rate[store, phase] / 1e3)
            cells.append(f"**{text}**" if rate[store, phase] == best else text)
        lines.append(cells)
    ratios = ["stride to the best peer"]
    for phase in phases:
        ours = [v for (s, p), v in rate.items() if p == phase and s.startswith("stride:")]
        peers = [v for (s, p), v in rate.items() if p == phase and not s.startswith("stride:")]
        ratios.append(number(max(ours) / max(peers)) + "x" if ours and peers else "-")
    return table([title, *names], lines + [ratios])


def latencies(rows):
    """p50 / p99 / p99.9 / the longest of each operation of each workload, in microseconds."""
    stores, lines = stores_of(rows), []
    for phase in phases_of(rows):
        for operation in ("read", "update", "insert", "scan", "rmw"):
            if operation + "_calls" not in rows[stores[0], phase]:
                continue
            lines.append([f"{phase.split('_')[0]}: {operation}"])
            for store in stores:
                lines[-1].append(" / ".join(number(rows[store, phase][f"{operation}_{name}_us"])
                                            for name in ("p50", "p99", "p999", "max")))
    return table(["us", *stores], lines)


def space(rows, phase):
    """Size, what was written, and how long closing and opening take, of one workload."""
    lines = []
    for store in stores_of(rows):
        row = rows[store, phase]
        lines.append([store, number(row["records_per_second"] / 1e3),
                      ratio(row["bytes_on_disk"], row["raw_bytes"]),
                      ratio(row["most_bytes_on_disk"], row["raw_bytes"]),
                      ratio(row["storage_bytes_written"], row["user_bytes_written"]),
                      ratio(row["call_bytes_written"], row["user_bytes_written"]),
                      number(row["close_seconds"] * 1e3), number(row["open_seconds"] * 1e3)])
    return table([phase.split("_")[0], "thousands a second", "size", "most", "to the disk",
                  "by calls", "close, ms", "open, ms"], lines)


def replace(page, name, text):
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if begin not in page or end not in page:
        raise SystemExit(f"the page has no marks {begin} and {end}")
    head, rest = page.split(begin, 1)
    return head + begin + "\n" + text + "\n" + end + rest.split(end, 1)[1]


def write(path, name, text):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(replace(page, name, text))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memory", help="a directory of a file system in memory, or - for none")
    parser.add_argument("disk", help="a directory of a disk, or - for none")
    parser.add_argument("--program", default="build/release/bin/stride-bench")
    parser.add_argument("--workloads", default="A,B,C,E,F")
    parser.add_argument("--distribution", default="uniform")
    parser.add_argument("--records", default="500k")
    parser.add_argument("--rewrite-records", default="100k", help="or - for none")
    parser.add_argument("--seconds", default="5")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--durability", default="none,flush")
    parser.add_argument("--stores", default="all")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--page", default="docs/results/ycsb.md")
    options = parser.parse_args()
    if "," in options.threads:
        raise SystemExit("--threads: a page has tables of one number of threads")
    machine = None
    for place, directory in (("memory", options.memory), ("disk", options.disk)):
        if directory == "-":
            continue
        os.makedirs(directory, exist_ok=True)
        for durability in options.durability.split(","):
            rows, command = run(options, options.workloads, options.records, durability, directory)
            machine = rows[0]["machine"]
            rows = medians(rows)
            text = f"`{command}`, {machine}, {datetime.date.today()}:\n\n"
            text += rates(rows, "thousands a second", per_second, True) + "\n\n"
            text += rates(rows, "thousands a second of processor time", per_cpu_second, False)
            write(options.page, f"{durability} {place}", text)
            write(options.page, f"{durability} {place} latencies", latencies(rows))
            if options.rewrite_records == "-":
                continue
            rows, command = run(options, "rewrite", options.rewrite_records, durability, directory)
            rows = medians(rows)
            text = f"`{command}`, {machine}, {datetime.date.today()}:\n\n"
            write(options.page, f"{durability} {place} rewrite",
                  text + space(rows, phases_of(rows)[0]))


if __name__ == "__main__":
    main()
