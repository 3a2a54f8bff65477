"""Longest prefixes of IPv4 addresses among real routes, beside pytricia and py-radix."""

from __future__ import annotations

import ipaddress
from typing import Any, List

import numpy as np

import stridedb as sd

from data import route_ranges, routes
from puts import module
from timing import Comparison, Contender, compare


def _peers(prefixes: List[str], numbers: np.ndarray, addresses: np.ndarray, texts: List[str], wanted) -> Any:
    """Contenders that take integers, and those that take strings."""
    of_integers, of_strings = [], []

    def check(answer: Any, i: int) -> None:
        if not np.array_equal(np.array(answer, np.uint32), wanted):
            raise SystemExit("wrong answer: a route")

    if pytricia := module("pytricia"):
        tree = pytricia.PyTricia(32)
        for prefix, number in zip(prefixes, numbers.tolist()):
            tree[prefix] = number
        objects = [ipaddress.IPv4Address(a) for a in addresses.tolist()]
        integers = addresses.tolist()
        given = integers
        try:
            if tree.get(integers[0]) != int(wanted[0]):
                given = objects
        except (TypeError, ValueError):
            given = objects
        of_integers.append(Contender("pytricia get, integers", lambda i: [tree.get(a) for a in given], check, goal=100))
        of_strings.append(Contender("pytricia get, strings", lambda i: [tree.get(a) for a in texts], check, goal=20))
    if radix := module("radix"):
        other = radix.Radix()
        for prefix, number in zip(prefixes, numbers.tolist()):
            other.add(prefix).data["asn"] = number
        packed = [int(a).to_bytes(4, "big") for a in addresses.tolist()]

        def of_packed(i: int) -> Any:
            return [other.search_best(packed=a).data["asn"] for a in packed]

        def of_texts(i: int) -> Any:
            return [other.search_best(a).data["asn"] for a in texts]

        of_integers.append(Contender("py-radix search_best, packed", of_packed, check, goal=100))
        of_strings.append(Contender("py-radix search_best, strings", of_texts, check, goal=20))
    return of_integers, of_strings


def compare_matches(db: Any, batch: int, repeat: int) -> List[Comparison]:
    prefixes, numbers = routes()
    table = db.prefixes("routes", bits=32, values={"asn": sd.u32})
    table.put(prefixes, {"asn": numbers})
    first, size = route_ranges(prefixes)
    rng = np.random.default_rng(1)
    places = rng.integers(0, len(prefixes), batch)
    addresses = (first[places] + rng.integers(0, size[places])).astype(np.uint32)
    texts = [f"{a >> 24}.{a >> 16 & 255}.{a >> 8 & 255}.{a & 255}" for a in addresses.tolist()]
    wanted = numbers[places]  # no prefix covers another

    def check(answer: Any, i: int) -> None:
        if not np.array_equal(answer["asn"].numpy(), wanted):
            raise SystemExit("wrong answer: a route")

    of_integers, of_strings = _peers(prefixes, numbers, addresses, texts, wanted)
    stride = Contender("StrideDB", lambda i: table.match(addresses), check, calls=5)
    comparisons = compare(f"match of {batch:,} integers", batch, stride, of_integers, repeat)
    stride = Contender("StrideDB", lambda i: table.match(texts), check, calls=2)
    comparisons += compare(f"match of a list of {batch:,} strings", batch, stride, of_strings, repeat)
    if polars := module("polars"):
        column = polars.Series("ip", texts)
        stride = Contender("StrideDB", lambda i: table.match(column), check, calls=2)
        comparisons += compare(f"match of an Arrow column of {batch:,} strings", batch, stride, of_strings, repeat)
    return comparisons
