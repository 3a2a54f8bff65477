"""A model of lookups over N nodes, made of times that are measured one after the other on this machine.

Each node has a worker and a shard's actor. A worker has a block of keys: it sorts them by shard, sends them and puts
the answers in their place; an actor answers as many keys, a piece from each worker, in its shard of rows / N. Both are
timed alone on the machine. Between nodes go the keys and answers that are not the node's own, both ways at once at the
rate that --network says. Nothing overlaps in the model, and Ray's own costs of a call are measured with one actor, by
run. `of N times one node` is of all of this; `shards and network` leaves out what a worker does beside asking.
"""

import time

import numpy as np
import pyarrow as pa

import stridedb.ray as sr
from stridedb import _shards

NODES = [1, 2, 4, 8, 16]


def modelled_scaling(arguments, path, data) -> dict:
    points, share = {}, min(len(data.asked), data.block)
    for nodes in NODES:
        entry = sr.write(data.blocks(data.users), path, f"model-{nodes}", key="id", shards=nodes, mode="replace")
        times = sorted(one_node(path, f"model-{nodes}", entry, data.asked[:share]) for _ in range(arguments.repeat))
        work, asks, sent = times[len(times) // 2]
        network = sent * (nodes - 1) / nodes / (arguments.network * 1e9)
        points[nodes] = {
            "ns a key, worker and shard": work / share * 1e9, "of it the shard": asks / share * 1e9,
            "network": network / share * 1e9, "M keys/s": share * nodes / (work + network) / 1e6,
        }
    one = points[1]
    for p in points.values():
        p["of N times one node"] = one["ns a key, worker and shard"] / (p["ns a key, worker and shard"] + p["network"])
        p["shards and network"] = one["of it the shard"] / (p["of it the shard"] + p["network"])
    if arguments.plot:
        plot(arguments.plot, points, arguments.network)
    return points


def one_node(path, table, entry, asked):
    """Seconds of a worker and of an actor for a block, one after the other; of the actor alone; bytes sent one way.

    The keys of this worker stand for those that a shard gets from all workers: they are as many, and spread alike.
    """
    shards = [_shards.open_shard(path, table, entry, i, threads=2) for i in range(len(entry["shards"]))]
    pieces = []

    def ask(parts):
        answers = [_shards.answer_of(shards[i], keys, None) for i, keys in parts]
        pieces.extend((i, keys, answer) for (i, keys), (answer, _) in zip(parts, answers))
        return answers

    partition, keys = _shards.partition_of(entry), pa.table({entry["key"][0][0]: asked})
    whole = lambda: _shards.ask_shards(partition, keys, ask, threads=2)  # noqa: E731
    whole()  # pages that are read for the first time
    pieces.clear()
    work = seconds_of(whole)
    sent = sum(max(keys.nbytes, answer.nbytes) for _, keys, answer in pieces)  # the two directions go at once
    given = [(i, keys) for i, keys, _ in pieces]
    return work, seconds_of(lambda: [_shards.answer_of(shards[i], keys, None) for i, keys in given]), sent


def seconds_of(call) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def plot(file, points, network) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    nodes = np.array(NODES)
    rates = np.array([points[n]["M keys/s"] for n in NODES])
    shards = np.array([points[n]["shards and network"] for n in NODES])
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(nodes, rates, "o-", label="model")
    axes.plot(nodes, rates[0] * nodes * shards, "s-", label="model of shards and network alone")
    axes.plot(nodes, rates[0] * nodes, "--", label="N times one node")
    axes.plot(nodes, 0.8 * rates[0] * nodes, ":", label="0.8 N (goal)")
    axes.set_xlabel("nodes")
    axes.set_ylabel("million keys a second")
    axes.set_title(f"Lookups over N nodes: a MODEL, {network:g} GB/s network")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.legend()
    figure.tight_layout()
    figure.savefig(file)
