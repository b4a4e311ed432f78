#!/usr/bin/env python3
"""Heights that the placers reach on hard instances, and time and nodes of the exact one.

usage: bench/placement.py DLAC PLANNER_DIR

PLANNER_DIR holds instances NAME.CAPACITY.csv (id,lower,upper,size; alive at lower <= t < upper).
Every instance becomes a problem for `dlac plan` whose tensors must all stay; the offsets that come
back are checked here, pair by pair. Colouring and greedy rules: the height that they reach; hill
climbing (500 orders): the lowest of six capacities, halving the interval, at which it succeeds.
"""
import csv
import glob
import json
import os
import subprocess
import sys
import tempfile
import time


def read(path):
    with open(path) as file:
        return [(int(r["lower"]), int(r["upper"]), int(r["size"])) for r in csv.DictReader(file)]


def problem(buffers, capacity):
    times = sorted({t for b in buffers for t in b[:2]})
    at = {t: i for i, t in enumerate(times)}
    return {
        "memories": [{"name": "m", "bytes": capacity}],
        "steps": [{"name": str(t)} for t in times],
        "tensors": [{"name": str(i), "bytes": size, "required": True, "producer": str(lower),
                     "uses": [{"step": str(times[at[upper] - 1])}] if at[upper] - 1 > at[lower] else []}
                    for i, (lower, upper, size) in enumerate(buffers)],
    }


def check(buffers, stays):
    at = {int(s["tensor"]): s["address"] for s in stays}
    assert len(at) == len(buffers)
    for i, (lower, upper, size) in enumerate(buffers):
        for j in range(i):
            a, b, s = buffers[j]
            if a < upper and lower < b:
                assert at[i] >= at[j] + s or at[j] >= at[i] + size, (i, j)
    return max(at[i] + b[2] for i, b in enumerate(buffers))


def plan(dlac, buffers, capacity, method):
    with tempfile.TemporaryDirectory() as folder:
        question = os.path.join(folder, "problem.json")
        answer = os.path.join(folder, "plan.json")
        with open(question, "w") as file:
            json.dump(problem(buffers, capacity), file)
        start = time.time()
        result = subprocess.run([dlac, "plan", question, "-o", answer, "--place", method,
                                 "--place-nodes", "10000000"], capture_output=True, text=True)
        seconds = time.time() - start
        if result.returncode not in (0, 5):
            raise SystemExit(result.stderr)
        if result.returncode == 5:
            return None, seconds, 0
        with open(answer) as file:
            out = json.load(file)
        return check(buffers, out["stays"]), seconds, out["placement_nodes"]


def main():
    dlac, folder = sys.argv[1:3]
    print("| | buffers | LB | color | best-fit | hill-climb | exact | nodes | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    total = 0
    for path in sorted(glob.glob(os.path.join(folder, "*.csv"))):
        name, capacity = os.path.basename(path).split(".")[:2]
        buffers = read(path)
        bound = max(sum(s for a, b, s in buffers if a <= t < b) for t, _, _ in buffers)
        cells = []
        for method in ("color", "best-fit", "hill-climb"):
            height = plan(dlac, buffers, 1 << 40, method)[0]
            if method == "hill-climb":
                # It climbs only while what is asked for is not reached: ask for less, six times.
                low, high = bound, height
                for _ in range(6):
                    middle = (low + high) // 2
                    reached = plan(dlac, buffers, middle, method)[0]
                    low, high = (low, reached) if reached else (middle + 1, high)
                height = high
            cells.append(f"{height:,} ({height / bound:.2f})")
        height, seconds, nodes = plan(dlac, buffers, int(capacity), "exact")
        total += seconds
        exact = f"{height:,}" if height else "not found"
        print(f"| {name} | {len(buffers)} | {bound:,} | {' | '.join(cells)} | {exact} | {nodes:,} | "
              f"{seconds:.2f} |", flush=True)
    print(f"\nAll exact runs together: {total:.2f} s.")


if __name__ == "__main__":
    main()
