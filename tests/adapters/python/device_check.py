"""Lookups of keys in a GPU's memory with torch, cupy and jax, beside the host's answers.

    python device_check.py [ROWS]     prints what it has checked, and rates beside torch.searchsorted

Not one of the tests that pytest collects: it needs a device, and a build of the package for it.
"""

import sys
import tempfile
import time

import numpy as np

import stridedb as sd


def libraries():
    found = {}
    try:
        import torch

        found["torch"] = (lambda a: torch.from_numpy(np.ascontiguousarray(a)).cuda(), lambda a: a.cpu().numpy())
    except ImportError:
        print("no torch")
    try:
        import cupy

        found["cupy"] = (cupy.asarray, cupy.asnumpy)
    except ImportError:
        print("no cupy")
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        found["jax"] = (jax.numpy.asarray, np.asarray)
    except ImportError:
        print("no jax")
    return found


def check(db, name, put, back):
    rng = np.random.default_rng(1)
    ids = rng.choice(1 << 40, 50_000, replace=False).astype("i8") - (1 << 39)
    vectors = rng.random((len(ids), 16)).astype("f4")
    emb = db.table(f"emb-{name}", key=sd.i64, values=sd.vector(sd.f32, 16))
    emb.put(ids, vectors)
    asked = np.concatenate([ids[::3], ids[:100] + 1])
    values, found = emb.get(put(asked))
    expected = emb.get(asked)
    assert type(values).__module__.split(".")[0].startswith(name[:3]), type(values)
    assert np.array_equal(back(found), expected.found)
    assert np.array_equal(back(values), np.where(expected.found[:, None], expected["value"].numpy(fill=0), 0))
    assert np.array_equal(back(emb.contains(put(asked))), expected.found)
    # Several key columns, rows whose cells lie at odd places, a delete, and an update.
    t = db.table(f"t-{name}", key=[("a", sd.i16), ("b", sd.u32)],
                 values={"x": sd.f64, "flag": sd.bool_, "n": sd.i32, "h": sd.u8})
    a = rng.integers(-99, 99, 20_000).astype("i2")
    b = rng.choice(1 << 31, 20_000, replace=False).astype("u4")
    t.put({"a": a, "b": b, "x": rng.random(len(a)), "flag": a > 0, "n": a.astype("i4") * 7, "h": (b % 256).astype("u1")})
    t.delete([a[:50], b[:50]])
    t[int(a[60]), int(b[60])] = {"x": 0.25, "flag": True, "n": -1, "h": 1}
    values, found = t.get([put(a), put(b)])
    expected = t.get([a, b])
    assert np.array_equal(back(found), expected.found) and not back(found)[:50].any()
    for column in ("x", "flag", "n", "h"):
        assert np.array_equal(back(values[column]), expected[column].numpy(fill=0)), column
    some, _ = t.get([put(a), put(b)], columns=["n"])
    assert list(some) == ["n"]
    empty, none = emb.get(put(asked[:0]))
    assert len(empty) == 0 and len(none) == 0
    for bad in (put(asked.astype("i4")), put(asked.reshape(-1, 1)), put(asked.astype("f8"))):
        try:
            emb.get(bad)
        except sd.InvalidType:
            continue
        raise AssertionError("a wrong type was taken")
    check_sets(name, put, back, rng)
    check_prefixes(db, name, put, back, rng)
    check_plan(db, name, put, back, rng)
    print(f"{name}: checked")


def check_sets(name, put, back, rng):
    for words in (1, 4):
        on_device, on_host = sd.VectorSet(words, backend="cuda"), sd.VectorSet(words)
        for _ in range(3):
            vectors = rng.integers(0, 9, (30_001, words)).astype("i4")
            ids, new = on_device.find_or_put(put(vectors))
            expected_ids, expected_new = on_host.find_or_put(vectors)
            assert back(new).sum() == expected_new.sum()
            assert np.array_equal(on_device.get(back(ids).astype("u8")).view("i4"), vectors)
            assert len(set(zip(back(ids).tolist(), expected_ids.tolist()))) == len(set(expected_ids.tolist()))
        missing = put(np.full((3, words), 99, "i4"))
        assert back(on_device.find(missing)).tolist() == [-1] * 3
        assert np.array_equal(back(on_device.find(put(vectors))), back(ids))
        assert len(on_device) == len(on_host)


def as_bytes(addresses):
    """Rows of four bytes, the highest first."""
    return addresses.astype(">u4").view("u1").reshape(-1, 4)


def check_prefixes(db, name, put, back, rng):
    routes = db.prefixes(f"routes-{name}", bits=32, values={"asn": sd.u32, "metric": sd.f64, "up": sd.bool_})
    wide = db.prefixes(f"wide-{name}", bits=128, values=sd.u16)
    addresses = rng.integers(0, 1 << 20, 50_001).astype("u4") << 12 | 77
    longer = np.concatenate([as_bytes(addresses), rng.integers(0, 9, (len(addresses), 12)).astype("u1")], axis=1)
    for change in range(3):
        # Of few first bits, so that prefixes lie in each other; later ones lie over earlier ones.
        lengths = rng.integers(8, 30, 20_000 if change == 0 else 300)
        bits = rng.integers(0, 1 << 20, len(lengths)).astype("u4") << 12
        bits &= (0xFFFFFFFF << (32 - lengths)).astype("u4")
        keys = [bytes(b) + bytes([n]) for b, n in zip(as_bytes(bits), lengths)]
        asn = rng.integers(0, 1 << 32, len(keys)).astype("u4")
        routes.put(keys, {"asn": asn, "metric": rng.random(len(keys)), "up": asn % 2 == 0})
        wide.put([key[:4] + bytes(12) + key[4:] for key in keys], (asn % 65536).astype("u2"))
        if change:
            routes.delete(keys[:100])
        expected = routes.match(addresses)
        assert 0 < expected.found.sum() < len(addresses)
        for given in (put(addresses), put(as_bytes(addresses))):
            found, there = routes.match(given)
            assert list(found) == ["asn", "metric", "up", "length"]
            assert type(found["asn"]).__module__.split(".")[0].startswith(name[:3])
            assert np.array_equal(back(there), expected.found)
            for column in found:
                assert np.array_equal(back(found[column]), expected[column].numpy(fill=0)), column
        found, there = wide.match(put(longer))
        expected = wide.match([bytes(row) for row in longer])
        assert np.array_equal(back(there), expected.found)
        assert np.array_equal(back(found["value"]), expected["value"].numpy(fill=0))
        assert np.array_equal(back(found["length"]), expected["length"].numpy(fill=0))
    found, there = routes.match(put(addresses), columns=["up"])
    assert list(found) == ["up", "length"]
    found, there = routes.match(put(addresses[:0]))
    assert len(found["asn"]) == len(found["length"]) == len(there) == 0
    for table, bad in (
        (routes, put(addresses.astype("i8"))), (routes, put(longer)), (routes, put(addresses.reshape(-1, 1))),
        (wide, put(addresses)), (db.prefixes(f"texts-{name}", text=True, values=sd.u8), put(as_bytes(addresses))),
    ):
        try:
            table.match(bad)
        except (sd.InvalidType, sd.InvalidArgument):
            continue
        raise AssertionError("wrong addresses were taken")


def check_plan(db, name, put, back, rng):
    mapping = db.table(f"mapping-{name}", key=sd.u32, values=sd.u32)
    links = np.arange(70_000, dtype="u4")
    zones = rng.integers(0, 400, len(links)).astype("u4")
    mapping.put(links, zones)
    plan = db.plan(mapping, links)
    if not plan.backend.startswith("cuda"):
        print("plans are on", plan.backend)
        return
    for dtype in ("i4", "i8", "f4", "f8"):
        weights = rng.integers(0, 100, len(links)).astype(dtype)
        expected = np.bincount(zones, weights, plan.targets)
        assert np.array_equal(back(plan.map(put(weights))), expected), dtype
        again = plan.map(put(weights), into=plan.map(put(weights), reproducible=True))
        assert np.array_equal(back(again), 2 * expected), dtype


def on_other_stream(db):
    import torch

    emb = db["emb-torch"]
    keys = torch.arange(1000, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(50):
            values, found = emb.get(keys + 0)
            total = values.sum() + found.sum()
    stream.synchronize()
    print("another stream: checked,", float(total))


def rates(db, rows):
    import torch

    rng = np.random.default_rng(2)
    ids = np.unique(rng.integers(0, 1 << 62, rows + rows // 50))[:rows].astype("u8")
    emb = db.table("large", key=sd.u64, values=sd.vector(sd.f32, 4))
    for first in range(0, len(ids), 10_000_000):
        part = ids[first : first + 10_000_000]
        emb.put(part, rng.random((len(part), 4), dtype="f4"))
    db.compact()
    keys = torch.from_numpy(rng.choice(ids, 4_000_000).view("i8")).cuda().view(torch.uint64)
    sorted_keys = torch.from_numpy(ids.view("i8")).cuda()
    signed = keys.view(torch.int64)

    def timed(call):
        call()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(10):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / 10

    both, there = timed(lambda: emb.get(keys)), timed(lambda: emb.contains(keys))
    search = timed(lambda: torch.searchsorted(sorted_keys, signed))
    values, found = emb.get(keys)
    assert bool(found.all())
    for what, seconds in (("get", both), ("contains", there), ("torch.searchsorted", search)):
        print(f"{what} of 4M keys of {rows / 1e6:.0f}M: {seconds * 1e3:.3f} ms, {4e6 / seconds / 1e9:.2f} G/s")
    print(f"get is {search / both:.1f} times, contains {search / there:.1f} times torch.searchsorted on keys alone")
    routes = db.prefixes("many-routes", bits=32, values={"asn": sd.u32})
    lengths = rng.integers(12, 25, 1_000_000)
    bits = rng.integers(0, 1 << 32, len(lengths)).astype("u4") & (0xFFFFFFFF << (32 - lengths)).astype("u4")
    prefixes = [bytes(b) + bytes([n]) for b, n in zip(as_bytes(bits), lengths)]
    routes.put(prefixes, {"asn": bits})
    addresses = rng.integers(0, 1 << 32, 4_000_000).astype("u4")
    on_device = torch.from_numpy(addresses).cuda()
    begin = time.perf_counter()
    routes.match(addresses)
    host = time.perf_counter() - begin
    seconds = timed(lambda: routes.match(on_device))
    print(f"match of 4M addresses: {seconds * 1e3:.3f} ms, {4e6 / seconds / 1e9:.2f} G/s; from the host {host * 1e3:.0f} ms")
    small = keys[:1]
    print(f"get of one key: {timed(lambda: emb.get(small)) * 1e6:.0f} us")


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        with sd.open(folder + "/db", backend="cuda", device_values=True, durability="none") as db:
            print(db.backend)
            for name, (put, back) in libraries().items():
                check(db, name, put, back)
            on_other_stream(db)
            rates(db, rows)


if __name__ == "__main__":
    main()
