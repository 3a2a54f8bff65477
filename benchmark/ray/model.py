"""A model of lookups over N nodes, made of times that are measured one after the other on this machine.

Each node has a worker and a shard's actor. A worker has queries / N keys: it sorts them by shard, sends them and puts
the answers in their place; an actor answers queries / N keys in its shard of rows / N. Each of these is timed alone on
the machine. Between nodes go the keys and answers that are not the node's own, both ways at once at the rate that
--network says. Nothing overlaps in the model, and Ray's own costs of a call are measured with one actor, by run.
"""

import time

import numpy as np
import pyarrow as pa

import stridedb.ray as sr
from stridedb import _shards

NODES = [1, 2, 4, 8, 16]


def modelled_scaling(arguments, path, data) -> dict:
    points = {}
    for nodes in NODES:
        entry = sr.write(data.blocks(data.users), path, f"model-{nodes}", key="id", shards=nodes, mode="replace")
        share = len(data.asked) // nodes
        seconds = sorted(one_node(path, f"model-{nodes}", entry, data.asked[:share]) for _ in range(arguments.repeat))
        work, sent = seconds[len(seconds) // 2]
        network = sent * (nodes - 1) / nodes / (arguments.network * 1e9)
        points[nodes] = {"work s": work, "network s": network, "M keys/s": share * nodes / (work + network) / 1e6}
    for nodes in NODES:
        points[nodes]["of N times one node"] = points[nodes]["M keys/s"] / points[1]["M keys/s"] / nodes
    if arguments.plot:
        plot(arguments.plot, points, arguments.network)
    return points


def one_node(path, table, entry, asked):
    """Seconds of a worker and of an actor for their share, one after the other, and the bytes sent one way.

    The keys of this worker stand for those that a shard gets from all workers: they are as many, and spread alike.
    """
    shards = [_shards.open_shard(path, table, entry, i, threads=2) for i in range(len(entry["shards"]))]
    sent = [0]

    def ask(parts):
        answers = [_shards.answer_of(shards[i], keys, None) for i, keys in parts]
        # The two directions go at once.
        sent[0] += sum(max(keys.nbytes, answer.nbytes) for (_, keys), (answer, _) in zip(parts, answers))
        return answers

    partition, keys = _shards.partition_of(entry), pa.table({entry["key"][0][0]: asked})
    _shards.ask_shards(partition, keys, ask)  # pages that are read for the first time
    sent[0], begun = 0, time.perf_counter()
    _shards.ask_shards(partition, keys, ask)
    return time.perf_counter() - begun, sent[0]


def plot(file, points, network) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    nodes = np.array(NODES)
    rates = np.array([points[n]["M keys/s"] for n in NODES])
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(nodes, rates, "o-", label="model")
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
