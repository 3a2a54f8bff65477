#!/usr/bin/env python3
"""Trains what the planner knows of search times, and writes gpu/plan/planner_weights.inc.

    benchmark/tools/train_planner.py build/bin/stride-bench            # measures, then trains
    benchmark/tools/train_planner.py --measured runs.jsonl             # trains on what was measured

Measures random trees over the training families (never those that are held out: words, URLs, IPv6,
31-mers, clustered integers, Zipf gaps, timestamps) with `stride-bench planner --training`, on the
host and on a CUDA device where there is one. For each of four cases (host or device, numbers or
other keys) it then fits the cost of each kind of work, by least squares of the relative error with
no negative cost, and trains a perceptron on the logarithm of what is left. Needs NumPy and PyTorch;
no GPU is needed to train.
"""
import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

WORKS = ["search", "memory", "dense_visits", "bitmap_visits", "levels_together", "lines_apart",
         "leaf_reads", "reads_together", "leaf_steps", "compare_words", "words_together", "offsets",
         "query_words", "uneven", "memory_beside"]
# Measured on the machine at hand; the rest scales with its speed.
MEMORY, BESIDE = WORKS.index("memory"), WORKS.index("memory_beside")
INPUTS, HIDDEN, VERSION = 23, 12, 4
NEEDED_LOSS = 0.8  # of what is left without it
CASES = [(False, True), (False, False), (True, True), (True, False)]  # device, numbers

# Data sets, keys and seeds: as many kinds of keys as there are, at several sizes.
RUNS = [
    ("u32,u64,fixed:10,fixed:16,sequential,dates,ipv4,hex,trie:1,trie:2,trie:3,mixture:1,mixture:2,"
     "paths:1", "1m", 1),
    ("u64,digits,verses,dates,fixed:12,fixed:24,trie:4,trie:5,trie:6,trie:7,mixture:3,mixture:4,"
     "mixture:5,mixture:6,paths:2,paths:3", "200k", 2),
    ("u32,u64,fixed:16,digits,ipv4,hex,trie:8,trie:9,trie:10,mixture:7,mixture:8,mixture:9,"
     "paths:4,paths:5", "30k", 3),
    ("u64,u32,mixture:10,mixture:11,trie:11", "4m", 4),
    ("u64,fixed:16", "16m", 5),
    ("u64", "30m,100m", 6),
]


def measure(bench, backend, path, trees):
    for data, keys, seed in RUNS:
        command = [bench, "planner", "--backend", backend, "--data", data, "--n", keys, "--seed",
                   str(seed), "--trees", str(trees), "--training", str(path)]
        if backend == "host":
            command += ["--queries", "1m"]
        print(" ".join(command), flush=True)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def scaled_work(rows, reference):
    """Work of each tree, what is not memory in units of the reference machine."""
    work = np.array([row["work"] for row in rows])
    scale = np.array([row["reference"] / reference for row in rows])
    work = work * scale[:, None]
    for i in (MEMORY, BESIDE):
        work[:, i] = [row["work"][i] for row in rows]
    return work


def fit_costs(rows, reference):
    """Nonnegative least squares of the relative error, by coordinate descent; Huber weights.

    A tree that takes twice as long as the best one of its keys counts a quarter.
    """
    work = scaled_work(rows, reference)
    time = np.array([row["nanoseconds"] for row in rows])
    a = work / time[:, None]
    b = np.ones(len(rows))
    x = np.zeros(len(WORKS))
    best = {}
    for row in rows:
        key = (row["data"], row["seed"])
        best[key] = min(best.get(key, math.inf), row["nanoseconds"])
    worth = (np.array([best[row["data"], row["seed"]] for row in rows]) / time) ** 2
    weight = worth
    for _ in range(8):
        aw = a * weight[:, None]
        gram, right = aw.T @ a + 1e-9 * np.eye(len(WORKS)), aw.T @ b
        for _ in range(4000):
            for i in range(len(WORKS)):
                if gram[i, i] > 0:
                    x[i] = max(0.0, x[i] + (right[i] - gram[i] @ x) / gram[i, i])
        error = np.abs(a @ x - b)
        weight = worth / np.maximum(1, error / 0.1)
    return x


def log2_share(x, whole):
    return math.log2(max(x, 1e-3)) / whole


def inputs_of(row, work, costs):
    """As learned_inputs() of gpu/plan/planner_weights.cc."""
    parts = work * costs
    whole = max(parts.sum(), 1e-9)
    keys = max(row["keys"], 1)
    x = list(parts / whole)
    x += [log2_share(keys, 16), log2_share(row["key_bytes"] / keys, 4),
          log2_share(row["leaf_keys"], 4), log2_share(row["image_bytes"] / keys, 4),
          row["visits"] / 4, row["root"] / 16,
          log2_share(row["work"][WORKS.index("leaf_reads")], 2),
          log2_share(row["work"][MEMORY] / whole, 4)]
    assert len(x) == INPUTS
    return x


class Perceptron(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, HIDDEN),
            torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def train(x, y, groups, steps, seed):
    """Keeps the weights that are best on a fifth of the data sets."""
    torch.manual_seed(seed)
    names = sorted(set(groups))
    held = set(names[seed % 5::5])
    test = torch.tensor([g in held for g in groups])
    model = Perceptron()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=3e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    loss_of = torch.nn.HuberLoss(delta=0.1)
    best, kept = float("inf"), None
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model(x[~test]), y[~test])
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            with torch.no_grad():
                score = loss_of(model(x[test]), y[test]).item()
            if score < best:
                best, kept = score, {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(kept)
    with torch.no_grad():
        none = loss_of(torch.zeros_like(y[test]), y[test]).item()
    print(f"    perceptron: loss on data sets not trained on {best:.2e}, without it {none:.2e}")
    if best >= NEEDED_LOSS * none:  # of little help, and of less to other keys: no correction
        for parameter in model.parameters():
            parameter.data.zero_()
    return model


def numbers(values):
    return ", ".join(f"{v:.6g}" for v in values)


def layer_text(layer):
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    rows = ["{" + numbers(list(w) + [b]) + "}" for w, b in zip(weight, bias)]
    return "{" + ",\n ".join(rows) + "}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", nargs="?", help="stride-bench, to measure with")
    parser.add_argument("--measured", nargs="*", default=[], help="files of former measurements")
    parser.add_argument("--trees", type=int, default=40, help="for each data set")
    parser.add_argument("--backends", default="host,cuda")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--out", default="gpu/plan/planner_weights.inc")
    parser.add_argument("--only-measure", default="", help="write measurements there and stop")
    arguments = parser.parse_args()
    files = [Path(name) for name in arguments.measured]
    if arguments.bench:
        path = Path(arguments.only_measure or "planner_training.jsonl")
        path.unlink(missing_ok=True)
        for backend in arguments.backends.split(","):
            try:
                measure(arguments.bench, backend, path, arguments.trees)
            except subprocess.CalledProcessError as error:
                if backend != "cuda":
                    raise
                print(f"no measurements with {backend}: {error}", file=sys.stderr)
        if arguments.only_measure:
            return
        files.append(path)
    rows = [json.loads(line) for file in files for line in open(file)]
    if not rows:
        parser.error("nothing was measured: name stride-bench, or --measured")
    text = [f"// Made by benchmark/tools/train_planner.py; version {VERSION}. Host numbers, host bytes, "
            "device numbers,\n// device bytes.\n"]
    for device, is_numbers in CASES:
        case = [r for r in rows if r["device"] == device and r["numbers"] == is_numbers]
        print(f"{'device' if device else 'host'}, {'numbers' if is_numbers else 'bytes'}: "
              f"{len(case)} trees")
        if not case:
            sys.exit("no measurements of this case: measure on a machine with a CUDA device")
        reference = float(np.median([r["reference"] for r in case]))
        costs = fit_costs(case, reference)
        work = scaled_work(case, reference)
        predicted = np.maximum(work @ costs, 1e-9)
        ratio = np.array([r["nanoseconds"] for r in case]) / predicted
        print("    " + ", ".join(f"{w} {c:.4g}" for w, c in zip(WORKS, costs)))
        print(f"    within 20 %: {np.mean(np.abs(np.log(ratio)) < 0.2):.3f}")
        x = torch.tensor([inputs_of(r, w, costs) for r, w in zip(case, work)],
                         dtype=torch.float32)
        y = torch.tensor(np.log(ratio).clip(-1, 1), dtype=torch.float32)
        model = train(x, y, [(r["data"], r["seed"]) for r in case], arguments.steps, 1)
        with torch.no_grad():
            left = (y - model(x)).numpy()
        print(f"    corrected: {np.mean(np.abs(left) < 0.2):.3f}")
        first, second, last = (model.layers[i] for i in (0, 2, 4))
        final = numbers(list(last.weight.detach().numpy()[0]) + [last.bias.item()])
        text.append(
            "{" + f"{reference:.6g}, "
            "{" + ", ".join(f"{c:.6g}" for c in costs) + "},\n"
            + layer_text(first) + ",\n" + layer_text(second) + ",\n{" + final + "}},\n")
    Path(arguments.out).write_text("".join(text))
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
