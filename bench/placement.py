#!/usr/bin/env python3
"""Heights that the placers reach: hard instances, scratchpads after residency, arenas of values.

  placement.py DATA [--bin DIR] [--work DIR] [--only NAME...]

Every instance becomes a problem for `dlac plan` whose tensors must all stay; the offsets that come
back are checked here, pair by pair. Three tables:

* DATA/planner/NAME.CAPACITY.csv (id,lower,upper,size; alive at lower <= t < upper), the exact placer
  at the capacity given;
* what is in each scratchpad of a compiled network (f16): resident values, rings of cascades, tiles;
* the values between the groups of a network (f16), which all lie in one arena.

Colouring and greedy rules: the height that they reach; hill climbing (500 orders): the lowest of six
capacities, halving the interval, at which it succeeds; exact: at the largest load of one moment
(LB), and where that is not found, the same halving. Writes parts of docs/PLACEMENT.md.
"""
import csv
import glob
import json
import os
import subprocess
import sys
import time

from networks import Bench, markdown, read_json
from onsram import NETWORKS

NODES = "10000000"  # of the exact search, for the hard instances
ARENA_NODES = "200000"
METHODS = ["color", "best-fit", "hill-climb", "exact"]
# Placers are judged on a scratchpad that is full and on one that is not.
SCRATCHPADS = [("onsram", "1M"), ("edge32-unified", None)]


def read(path):
    with open(path) as file:
        return [(int(r["lower"]), int(r["upper"]), int(r["size"])) for r in csv.DictReader(file)]


def load(buffers):
    """The largest load of one moment: no placement is lower."""
    return max(sum(s for a, b, s in buffers if a <= t < b) for t, _, _ in buffers)


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


def check(buffers, at):
    """Height of the buffers at the offsets `at`; ends the script where two that live together meet."""
    for i, (lower, upper, size) in enumerate(buffers):
        for j in range(i):
            a, b, s = buffers[j]
            if a < upper and lower < b and at[i] < at[j] + s and at[j] < at[i] + size:
                sys.exit("buffers %d and %d overlap" % (i, j))
    return max(at[i] + b[2] for i, b in enumerate(buffers))


class Placers:
    def __init__(self, bench):
        self.bench = bench

    def place(self, buffers, capacity, method, nodes):
        """Height (None: not placed within the capacity), seconds and nodes of the search."""
        question, answer = self.bench.file("problem.json"), self.bench.file("plan.json")
        with open(question, "w") as file:
            json.dump(problem(buffers, capacity), file)
        start = time.time()
        result = subprocess.run(
            [self.bench.product.dlac, "plan", question, "-o", answer, "--place", method,
             "--place-nodes", nodes], capture_output=True, text=True)
        seconds = time.time() - start
        if result.returncode not in (0, 5):
            sys.exit(result.stderr)
        if result.returncode == 5:
            return None, seconds, 0
        out = read_json(answer)
        at = {int(s["tensor"]): s["address"] for s in out["stays"]}
        if len(at) != len(buffers):
            sys.exit("%d of %d buffers have an address" % (len(at), len(buffers)))
        return check(buffers, at), seconds, out["placement_nodes"]

    def lowest(self, buffers, low, high, method, nodes):
        """Height after halving the interval of capacities six times; `high` is reached."""
        for _ in range(6):
            if low >= high:
                break
            middle = (low + high) // 2
            reached = self.place(buffers, middle, method, nodes)[0]
            low, high = (low, reached) if reached else (middle + 1, high)
        return high

    def heights(self, buffers, bound):
        """Of the three quick methods."""
        found = [self.place(buffers, 1 << 40, method, NODES)[0] for method in METHODS[:3]]
        found[2] = self.lowest(buffers, bound, found[2], "hill-climb", NODES)
        return found


def cell(height, bound):
    return "%s (%.2f)" % (format(height, ","), height / bound)


def hard_instances(bench, placers):
    rows, total = [], 0
    for path in sorted(glob.glob(os.path.join(bench.options.data, "planner", "*.csv"))):
        name, capacity = os.path.basename(path).split(".")[:2]
        buffers = read(path)
        bound = load(buffers)
        quick = placers.heights(buffers, bound)
        height, seconds, nodes = placers.place(buffers, int(capacity), "exact", NODES)
        total += seconds
        rows.append([name, len(buffers), bound] + [cell(h, bound) for h in quick] +
                    [format(height, ",") if height else "not found", nodes, "%.2f" % seconds])
        print(*rows[-1], flush=True)
    return (markdown(["", "buffers", "LB"] + METHODS + ["nodes", "seconds"], rows) +
            "\n\nAll exact runs together: %.2f s." % total)


def contents(schedule, memory):
    """Buffers (first group, end group, bytes) of a scratchpad, and where the schedule put them.
    A value that takes another one's place is one buffer with it."""
    groups = schedule["groups"]
    span = {g["name"]: (i, i + 1) for i, g in enumerate(groups)}
    for cascade in schedule["cascades"]:
        members = [span[name] for name in cascade["groups"]]
        whole = (min(m[0] for m in members), max(m[1] for m in members))
        span.update({name: whole for name in cascade["groups"]})
    places, named = [], {}  # (first, end, bytes), address
    for value in sorted(schedule["values"], key=lambda v: v["first_group"]):
        if value["memory"] != memory:
            continue
        old = named.get(value.get("takes_place_of"))
        new = (value["first_group"], value["end_group"], value["bytes"])
        if old is None:
            named[value["name"]] = len(places)
            places.append((new, value["address"]))
            continue
        named[value["name"]] = old
        had, address = places[old]
        places[old] = ((min(had[0], new[0]), max(had[1], new[1]), max(had[2], new[2])), address)
    for cascade in schedule["cascades"]:
        places += [((*span[cascade["groups"][0]], ring["bytes"]), ring["address"])
                   for ring in cascade["rings"] if ring["memory"] == memory]
    for i, group in enumerate(groups):
        # What a group of a cascade keeps from stripe to stripe lies there until the cascade ends.
        kept = {o["value"] for o in group["mapping"]["operands"] if o["buffers"] == "kept"}
        for buffer in group["buffers"]:
            if buffer["memory"] == memory:
                alive = span[group["name"]] if buffer["operand"] in kept else (i, i + 1)
                places.append(((*alive, buffer["tile_bytes"] * buffer["tiles"]), buffer["address"]))
    return [p for p in places if p[0][2] > 0]


def row(placers, name, buffers):
    """Heights of one instance as `dlac` has it."""
    bound = load(buffers)
    quick = placers.heights(buffers, bound)
    height, seconds, nodes = placers.place(buffers, bound, "exact", ARENA_NODES)
    if height is None:
        height = placers.lowest(buffers, bound, min(quick), "exact", ARENA_NODES)
    return [name, len(buffers), bound] + [cell(h, bound) for h in quick + [height]] + [
        nodes, "%.2f" % seconds]


def compiled(bench, network, target, mem, extra):
    plan = bench.file("placed.json")
    step = bench.compile(network, bench.file("placed.bin"), target, mem, plan,
                         ["--precision", "f16", *extra])
    if step.status != "ok":
        sys.exit("%s on %s: %s" % (network.name, target, " ".join(step.reasons)))
    return read_json(plan)


def scratchpads(bench, placers):
    rows = []
    for network in bench.networks(NETWORKS):
        for target, size in SCRATCHPADS:
            schedule = compiled(bench, network, target, {"pool": size} if size else None, [])
            places = contents(schedule, "pool")
            buffers = [b for b, _ in places]
            height = check(buffers, [address for _, address in places])
            rows.append(row(placers, "%s, %s%s" % (network.name, target, " " + size if size else ""),
                            buffers))
            if height > schedule["memories"][0]["bytes"]:
                sys.exit("%s: %d bytes are used" % (network.name, height))
            print(*rows[-1], flush=True)
    return markdown(["network, target", "buffers", "LB"] + METHODS + ["nodes", "seconds"], rows)


def arenas(bench, placers):
    rows = []
    for network in bench.networks(NETWORKS):
        schedule = compiled(bench, network, "edge32", None,
                            ["--residency", "none", "--cascades", "off"])
        buffers = [(r["first_group"], r["end_group"], r["bytes"]) for r in schedule["dram"]["regions"]
                   if r["kind"] == "temporary"]
        rows.append(row(placers, network.name, buffers))
        print(*rows[-1], flush=True)
    return markdown(["network", "values", "LB"] + METHODS + ["nodes", "seconds"], rows)


def main():
    bench = Bench(__doc__.split("\n")[0])
    placers = Placers(bench)
    if not bench.options.only:
        bench.write_part("PLACEMENT.md", "hard instances", hard_instances(bench, placers))
    bench.write_part("PLACEMENT.md", "scratchpads", scratchpads(bench, placers))
    bench.write_part("PLACEMENT.md", "arenas", arenas(bench, placers))


if __name__ == "__main__":
    main()
