"""Longest prefix matches beside a search through all networks."""

import ipaddress

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import stridedb as sd
from random_tables import new_name


def networks(bits):
    kind = ipaddress.IPv4Network if bits == 32 else ipaddress.IPv6Network

    def network(number, length):
        return kind((number >> (bits - length) << (bits - length), length))

    # Few of the bits differ, so that prefixes lie in each other.
    numbers = st.integers(0, 15).map(lambda n: n << (bits - 4)) | st.integers(0, 2**bits - 1)
    return st.builds(network, numbers, st.integers(0, bits))


def addresses(bits):
    kind = ipaddress.IPv4Address if bits == 32 else ipaddress.IPv6Address
    return (st.integers(0, 15).map(lambda n: n << (bits - 4)) | st.integers(0, 2**bits - 1)).map(kind)


@pytest.mark.parametrize("bits", [32, 128])
@given(data=st.data())
def test_longest_prefixes(shared, bits, data):
    there = data.draw(st.lists(networks(bits), max_size=20, unique=True))
    asked = data.draw(st.lists(addresses(bits), max_size=20))
    table = shared.prefixes(new_name(), bits=bits, values={"n": sd.i32})
    form = data.draw(st.sampled_from([str, lambda n: n]))
    table.put({"prefix": [form(n) for n in there], "n": range(len(there))})

    def covering(address):
        return sorted((n for n in there if address in n), key=lambda n: n.prefixlen)

    expected = [(covering(a) or [None])[-1] for a in asked]
    numbers = [None if n is None else there.index(n) for n in expected]
    lengths = [0 if n is None else n.prefixlen for n in expected]
    texts = [str(a) for a in asked]
    packed = [a.packed for a in asked]
    given_forms = [
        asked, texts, packed, [int(a) for a in asked], tuple(texts), iter(asked), np.array(texts, dtype=object),
        pa.array(texts, pa.string()), pl.Series(texts, dtype=pl.String), pa.array(packed, pa.binary()),
        pa.array(packed, pa.binary(bits // 8)), pa.array(texts, pa.string_view()),
        np.frombuffer(b"".join(packed), "u1").reshape(len(packed), bits // 8), np.array(texts, dtype="U40"),
    ]
    if bits == 32:
        ints = np.array([int(a) for a in asked], "u8")
        given_forms += [ints, ints.astype("u4"), ints.astype(">i8"), ints[::-1][::-1], pa.array(ints), list(ints)]
    for form in given_forms:
        matched = table.match(form)
        assert matched["n"].to_list() == numbers and matched["length"].to_list() == lengths
        assert matched.found.tolist() == [n is not None for n in expected]
    for address, network, number in zip(asked, expected, numbers):
        for one in (address, str(address), int(address), address.packed):
            entry = table.match(one)
            if network is not None:
                assert entry == {"n": number, "prefix": entry["prefix"], "length": network.prefixlen}
                assert ipaddress.ip_network(entry["prefix"]) == network
            else:
                assert entry is None
        assert [ipaddress.ip_network(e["prefix"]) for e in table.match_all(address)] == covering(address)


@pytest.mark.parametrize("bits", [32, 128])
@given(data=st.data())
def test_prefixes_as_keys(shared, bits, data):
    there = data.draw(st.lists(networks(bits), min_size=1, max_size=15, unique=True))
    table = shared.prefixes(new_name(), bits=bits, values=sd.str_)
    table.put(there, [str(n) for n in there])
    # Texts of IPv6 may be written in several ways.
    assert {ipaddress.ip_network(k): v for k, v in table.items()} == {n: str(n) for n in there}
    assert table.get(there)["value"].to_list() == [str(n) for n in there]
    assert table.contains([str(n) for n in there]).all() and len(table) == len(there)
    one = data.draw(st.sampled_from(there))
    assert table[one] == table.get(one) == table[str(one)] == str(one) and one in table
    inside = {n for n in there if n.subnet_of(one)}
    assert {ipaddress.ip_network(p) for rows in table.scan(prefix=one) for p in rows["prefix"].to_list()} == inside
    table.delete([one])
    assert one not in table and table.get(one, "gone") == "gone"
    assert table.put_if_absent(there, [str(n) for n in there]).tolist() == [n == one for n in there]


@given(st.lists(st.binary(max_size=4), max_size=12), st.lists(st.binary(max_size=6), max_size=12))
def test_prefixes_of_strings(shared, there, asked):
    table = shared.prefixes(new_name(), text=True, values=sd.bytes_)
    table.put(there, there)
    expected = [max((p for p in there if a.startswith(p)), key=len, default=None) for a in asked]
    for form in (asked, pa.array(asked, pa.binary())):
        assert table.match(form)["value"].to_list() == expected
    for address, prefix in zip(asked, expected):
        entry = table.match(address)
        assert (entry and entry["value"]) == prefix


def test_a_network_is_one_prefix_and_no_column_of_addresses(db):
    table = db.prefixes("p", bits=128, values=sd.u32)
    table.put(["2001:db8::/32"], [1])
    network = ipaddress.ip_network("2001:db8::/32")
    for call in (table.match, table.match_all):
        with pytest.raises(sd.InvalidType, match="IPv6Network") as caught:
            call(network)
        assert "scan(prefix=)" in caught.value.remedy
    for call in (table.contains, table.lower_bound, db.table("t", key=sd.str_).get):
        with pytest.raises(sd.InvalidType, match="one IPv6Network is given in place of a column"):
            call(network)
    assert table.get(network) == 1 and network in table


def test_a_series_of_objects(db):
    table = db.prefixes("p", bits=32, values=sd.u32)
    networks = pd.Series([ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("10.1.0.0/16")])
    table.put(networks, [1, 2])
    assert table.get(networks)["value"].to_list() == [1, 2]
    addresses = pd.Series([ipaddress.ip_address("10.1.2.3"), ipaddress.ip_address("10.2.2.3")])
    assert table.match(addresses)["value"].to_list() == [2, 1]


def test_addresses_that_are_none(db):
    table = db.prefixes("p", bits=32, values={"v": sd.i64})
    table.put({"prefix": ["10.0.0.0/8"], "v": [1]})
    for bad in (
        [b"\x0a\0\0", b"\0\x0a\0\0\1"], ["10.0.0"], ["10.0.0.256"], ["::1"], [2**32], [-1], ["\udc80"], [None], [1.5],
        [b""],
        [ipaddress.ip_address("::1")], np.array([-1]), np.array([2**32]), np.ma.array([1, 2], mask=[0, 1]),
        np.array([1.5]),
        pa.array([None, 1]), pa.array(["10.0.0.1", None]), np.zeros((2, 3), "u1"), np.zeros((2, 2, 2), "u4"), [True],
        None, 1.5,
        np.array(["x"], dtype=object), [10**5000], {"a": 1}, object(), [["10.0.0.1"]], pa.table({"a": [1], "b": [2]}),
        pa.array([b"abc"]), np.array([b"abc"]), [np.uint64(2**40)], np.uint64(2**40), "x", b"xx", -1, 2**40, True,
    ):
        with pytest.raises(sd.InvalidArgument):
            table.match(bad)
    for bad in ("10.0.0.1/8", "10.0.0.0/33", "x", b"x", None, 5, 1.5, "::/0", "\udc80", ipaddress.ip_network("::/0")):
        with pytest.raises(sd.InvalidArgument):
            table.put([bad], {"v": [1]})
        with pytest.raises((sd.InvalidArgument, sd.KeyNotFound)):
            table[bad]
        with pytest.raises(sd.InvalidArgument):
            list(table.scan(prefix=bad)) if bad is not None else table[None]
    for bad in ([["10.0.0.0/8"]], pa.array([None, "10.0.0.0/8"]), 5, object(), "10.0.0.0/33"):
        with pytest.raises(sd.InvalidArgument):
            table.contains(bad)
    assert table.match(np.uint32(0x0A000001))["v"] == 1 and len(table) == 1
    with pytest.raises(sd.InvalidArgument, match="no table of prefixes"):
        db.table("t", key=sd.i64, values=sd.i64).match([1])
    with pytest.raises(sd.InvalidArgument, match="beside a prefix"):
        table.scan(start="10.0.0.0/8", prefix="10.0.0.0/8")
