"""The files that the jobs read: real data of this repository, and rows made from fixed seeds."""
import csv
import ipaddress
import json
import os
import random
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
REAL = os.path.join(HERE, "..", "..", "data")

STREETS = ["Springs", "Falls", "Grove", "Ridge", "Harbor", "Mills", "Corner", "Junction"]


class Data:
    """Files in a folder. scale: the share of the full number of rows that generated data has."""

    def __init__(self, folder, scale):
        self.folder, self.scale = folder, scale
        self.zip_rows = None
        self.made = set()

    def path(self, name):
        return os.path.join(self.folder, name)

    def need(self, *names):
        """Makes the files that are not there yet."""
        for name in names:
            if name not in self.made:
                getattr(self, "make_" + name.replace(".", "_"))()
                self.made.add(name)

    def count(self, full):
        return max(20, int(full * self.scale))

    def unpacked(self, name):
        """Lines of a packed file of benchmark/data."""
        packed = os.path.join(REAL, name + ".zst")
        done = subprocess.run(["zstd", "-dc", packed], stdout=subprocess.PIPE, check=True)
        return done.stdout.decode().splitlines()

    def share(self, rows):
        """As many of the rows as the scale says, from all over."""
        return rows if self.scale >= 1 else rows[::max(1, int(1 / self.scale))]

    def write(self, name, lines):
        with open(self.path(name), "w", encoding="utf-8", newline="") as file:
            for first in range(0, len(lines), 100000):
                file.write("\n".join(lines[first:first + 100000]) + "\n")

    # Places: a number of five digits, a name (some with commas, quotes, letters with marks, some
    # empty), latitude and longitude. No two have the same number.
    def zips(self):
        if self.zip_rows is None:
            r = random.Random(42)
            words = [w for w in self.unpacked("words_en_scowl_insane.txt") if w.isalpha()]
            rows = []
            for number in sorted(r.sample(range(501, 99951), self.count(42000))):
                name = r.choice(words).capitalize() + " " + r.choice(STREETS)
                kind = r.random()
                if kind < 0.02:
                    name = f"{name}, {r.choice(STREETS)}"
                elif kind < 0.03:
                    name = f'{name} "{r.choice(STREETS)}"'
                elif kind < 0.04:
                    name = "Ca\u00f1on de " + name
                elif kind < 0.05:
                    name = ""
                rows.append((number, name, round(r.uniform(17, 71), 4),
                             round(r.uniform(-176, -65), 4)))
            self.zip_rows = rows
        return self.zip_rows

    def make_zips_csv(self):
        with open(self.path("zips.csv"), "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["id", "name", "lat", "lon"])
            writer.writerows((f"{row[0]:05}", *row[1:]) for row in self.zips())

    def make_zips_jsonl(self):
        names = ("id", "name", "lat", "lon")
        self.write("zips.jsonl", [json.dumps(dict(zip(names, row))) for row in self.zips()])

    def make_keys_txt(self):
        r = random.Random(43)
        known = [row[0] for row in self.zips()]
        self.write("keys.txt", [str(r.choice(known) if r.random() < 0.9 else r.randrange(99999))
                                for _ in range(self.count(200000))])

    # Orders: a number, the number of a place (some are of no place), a quantity.
    def make_orders_tsv(self):
        r = random.Random(44)
        known = [row[0] for row in self.zips()]
        self.write("orders.tsv",
                   [f"{i}\t{r.choice(known) if r.random() < 0.95 else r.randrange(99999)}"
                    f"\t{r.randrange(-5, 100)}" for i in range(1, self.count(1000000) + 1)])

    # Announced prefixes, the first half of each one that is shorter than /24, and each country's
    # prefix that is not among these: a longer prefix may lie in a shorter one.
    def make_routes_tsv(self):
        rows = {}
        for line in self.share(self.unpacked("prefixes_ipv4_asn.tsv")):
            prefix, system = line.split("\t")
            rows[prefix] = system
            address, length = prefix.split("/")
            if int(length) < 24:
                rows.setdefault(f"{address}/{int(length) + 1}", str(int(system) + 1000000))
        for line in self.share(self.unpacked("prefixes_ipv4_country.tsv")):
            prefix, country = line.split("\t")
            rows.setdefault(prefix, country)
        lines = [f"{prefix}\t{value}" for prefix, value in rows.items()]
        random.Random(45).shuffle(lines)
        self.write("routes.tsv", lines)

    def make_addresses_txt(self):
        r = random.Random(46)
        numbers = r.sample(range(1 << 24, 224 << 24), self.count(1000000))
        self.write("addresses.txt", [str(ipaddress.IPv4Address(n)) for n in numbers])
        self.write("few_addresses.txt",
                   [str(ipaddress.IPv4Address(n)) for n in numbers[:self.count(2000)]])

    # Requested addresses of web pages, the popular ones often: as of a log.
    def make_urls_txt(self):
        r = random.Random(47)
        urls = self.share(self.unpacked("urls_web_specs.txt"))
        r.shuffle(urls)
        lines = list(urls)
        while len(lines) < 20 * len(urls):
            lines.append(urls[int(len(urls) * r.random() ** 3)])
        r.shuffle(lines)
        self.write("urls.txt", lines)

    def make_words_txt(self):
        word = re.compile(r"[a-z]+(?:'[a-z]+)*")
        words = []
        for name in ("kjv_bible", "austen_mansfieldpark", "austen_prideprejudice",
                     "austen_sensesensibility"):
            for line in self.share(self.unpacked(f"text_{name}.txt")):
                words += word.findall(line.lower())
        self.write("words.txt", words)

    def make_mers_txt(self):
        lines = self.unpacked("genome_ecoli_536.fa")[1:]
        bases = "".join(lines)[:self.count(3300000) + 10]
        self.write("mers.txt", [bases[i:i + 11] for i in range(len(bases) - 10)])


def usable():
    """What is missing for making the data, or nothing."""
    if not shutil.which("zstd"):
        return "the program zstd, which unpacks benchmark/data"
    if not os.path.isdir(REAL):
        return "the folder benchmark/data"
    return None
