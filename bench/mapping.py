#!/usr/bin/env python3
"""Proven optima of the 90 layers: equal to the reference tables or not, sums, and time."""
import json
import os
import sys
import tempfile

from layer_tables import LayerBench, total

RUNS = [  # title, options, table, column, what is compared
    ("bytes, S0, separate", ["--space", "s0"], "optimum_s0_separate.csv", "optimum_bytes"),
    ("bytes, S0, pooled", ["--space", "s0", "--target", "edge32-ideal-unified"],
     "optimum_s0_pooled.csv", "optimum_bytes"),
]
for memory, target in (("separate", "edge32-ideal"), ("pooled", "edge32-ideal-unified")):
    for buffers, column in (("single", "optimum_single_bytes"),
                            ("inputs-double", "optimum_inputs_double_bytes"),
                            ("double", "optimum_all_double_bytes")):
        RUNS.append((f"bytes, S1, {memory}, {buffers}",
                     ["--space", "s1", "--target", target, "--buffers", buffers],
                     f"optimum_s1_{memory}.csv", column))


def row(title, rows, column, expected, expected_column):
    equal = sum(int(r[column]) == int(expected[n][expected_column]) for n, r in rows.items())
    slowest = max(rows, key=lambda n: float(rows[n]["ms"]))
    proven = sum(r["proven"] == "yes" for r in rows.values())
    return (f"| {title} | {equal} | {proven} | {total(rows, column, 'resnet18'):,.0f} | "
            f"{total(rows, column, 'bert_layer'):,.0f} | {total(rows, 'ms', 'resnet18'):.3f} | "
            f"{sum(float(r['ms']) for r in rows.values()):.2f} | "
            f"{float(rows[slowest]['ms']):.3f} ({slowest}) |")


def compiler_gap(bench):
    """What the compiler's own search leaves on the same layers and machine."""
    lines = ["", "## The compiler's search", "",
             "Groups of models are mapped by the search of [SCHEDULER.md](SCHEDULER.md), which has everything "
             "in its", "cost, every integer size, and any choice of buffers; it does not roll. On these layers "
             "and this ideal", "machine, against the proven optimum of S1 (which rolls, with the inputs "
             "double where cycles count):", "",
             "| objective | sum of the 90 layers | optimum of S1 | layers equal or better | mean gap | worst gap "
             "| proven in its space | ms all 90 |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for objective, cell, exact in (
            ("latency", "cycles", bench.map("--optimize", "latency", repeat=1)),
            ("balanced", "bytes", bench.map("--optimize", "balanced", repeat=1)),
            ("traffic", "bytes", bench.map("--optimize", "traffic", "--buffers", "single", repeat=1))):
        found = bench.map("--optimize", objective, "--search", "compiler", repeat=1)
        gaps = {n: int(r[cell]) / int(exact[n][cell]) - 1 for n, r in found.items()}
        worst = max(gaps, key=gaps.get)
        lines.append(f"| {objective} ({cell}) | {total(found, cell):,.0f} | {total(exact, cell):,.0f} | "
                     f"{sum(g <= 0 for g in gaps.values())} | {100 * sum(gaps.values()) / len(gaps):.1f} % | "
                     f"{100 * gaps[worst]:.0f} % ({worst}) | {proven_of(found)} of {len(found)} | "
                     f"{sum(float(r['ms']) for r in found.values()):,.0f} |")
    for objective, cell in (("energy", "energy_pj"), ("edp", "energy_pj")):
        found = bench.map("--optimize", objective, repeat=1)
        lines.append(f"| {objective} (pJ) | {total(found, cell):,.0f} | | | | | {proven_of(found)} of "
                     f"{len(found)} | {sum(float(r['ms']) for r in found.values()):,.0f} |")
    return lines


def proven_of(rows):
    return sum(r["proven"] == "yes" for r in rows.values())


SEARCH_BUDGET = "20000000"  # so that a search that ends early does not look like a worse space
ALL_CLASSES = ["input", "weight", "partial", "output", "vector"]


def with_batch(path, to, batch):
    """The layer list with N times `batch`."""
    with open(path) as file, open(to, "w") as out:
        for line in file:
            fields = line.split()
            if fields and not line.startswith("#"):
                fields[3] = str(int(fields[3]) * batch)
                line = " ".join(fields) + "\n"
            out.write(line)


class Ladder:
    """Spaces that contain one another: rows of a table, and the layers where a larger one is worse."""

    def __init__(self, cell):
        self.cell, self.lines, self.found, self.worse, self.open = cell, [], {}, [], []

    def add(self, title, rows, smaller=(), batch=1):
        """`smaller`: titles of spaces that this one contains. A layer must not cost more than in these."""
        self.found[title] = {n: int(r[self.cell]) / batch for n, r in rows.items()}
        for other in smaller:
            self.worse += [f"{title}: {name} has {cost:,.0f} {self.cell}, {other} {self.found[other][name]:,.0f}"
                           for name, cost in self.found[title].items() if cost > self.found[other][name]]
        self.open += [f"{name} ({title}) by at most {100 * (int(r['bytes']) / int(r['bound_bytes']) - 1):.2f} %"
                      for name, r in rows.items() if r["bound_bytes"] and r["proven"] != "yes"]
        fewer = sum(cost < self.found[smaller[0]][name]
                    for name, cost in self.found[title].items()) if smaller else ""
        sums = [f"{total(rows, self.cell, only) / batch:,.0f}" for only in ("resnet18", "bert_layer", None)]
        self.lines.append(f"| {title} | " + " | ".join(sums) + f" | {proven_of(rows)} of {len(rows)} | "
                          f"{smaller[0] if smaller else ''} | {fewer} |")

    def table(self):
        return [f"| space ({self.cell}) | ResNet-18 | BERT layer | all 90 | proven | contains | layers with fewer |",
                "| --- | --- | --- | --- | --- | --- | --- |"] + self.lines


def byte_ladder(bench, batched):
    ladder = Ladder("bytes")

    def run(space, target="edge32-ideal", layers=None):
        return bench.map("--optimize", "traffic", "--buffers", "single", "--space", space, "--target", target,
                         repeat=1, layers=layers)

    pool = "edge32-ideal-unified"
    ladder.add("S0", run("s0"))
    ladder.add("S1", run("s1"), ["S0"])
    ladder.add("all integer M, C", run("all"), ["S1"])
    ladder.add("uneven", run("uneven"), ["all integer M, C"])
    ladder.add("all, batch 4", run("all", layers=batched), ["all integer M, C"], 4)
    ladder.add("uneven, batch 4", run("uneven", layers=batched), ["all, batch 4", "uneven"], 4)
    ladder.add("all, pooled", run("all", pool), ["all integer M, C"])
    ladder.add("uneven, pooled", run("uneven", pool), ["all, pooled", "uneven"])
    ladder.add("uneven, pooled, batch 4", run("uneven", pool, batched),
               ["uneven, pooled", "uneven, batch 4"], 4)
    return ladder


def cycle_ladder(bench, s1, everything):
    ladder = Ladder("cycles")
    ladder.add("S0Folds", bench.map("--optimize", "latency", "--space", "s0-folds", repeat=1))
    ladder.add("S1", s1, ["S0Folds"])
    ladder.add("all integer M, C", everything, ["S1"])
    return ladder


def scratchpad_ladder(bench, objective, cell, mixed, batched):
    """The compiler's search, where operands may lie in any scratchpad. One pool does not contain the others: in
    one scratchpad the drained output shares the buffer of the accumulators."""
    ladder = Ladder(cell)
    for title, target, smaller in (("one a class", "edge32-ideal", []), ("mixtures", mixed, ["one a class"]),
                                   ("pooled", "edge32-ideal-unified", [])):
        for batch, layers in ((1, bench.layers), (4, batched)):
            suffix = ", batch 4" if batch == 4 else ""
            rows = bench.map("--search", "compiler", "--search-budget", SEARCH_BUDGET, "--target", target,
                             "--optimize", objective, repeat=1, layers=layers)
            ladder.add(title + suffix, rows, [s + suffix for s in smaller] + ([title] if suffix else []), batch)
    return ladder


def larger_spaces(bench, s1, everything):
    """What freedom of blocks, depths, batch and scratchpads adds, and what is wrong with it."""
    lines = ["", "## What larger spaces add", "",
             "Each space against those that it contains: `bench/mapping.py` fails if a layer costs more. *Layers",
             "with fewer*: than in the space that it *contains*. *Batch 4*: N times 4, per image. First the exact",
             "searches of this page, bytes with single buffers, then cycles (uneven mapping is of bytes alone;",
             "pooled: 192 KiB in one):", ""]
    with tempfile.TemporaryDirectory() as work:
        mixed = os.path.join(work, "mixed.json")
        with open(mixed, "w") as file:
            json.dump({"inherit": "edge32-ideal", "memories": [
                {"name": n, "bytes": 65536, "holds": ALL_CLASSES} for n in ("a", "b", "c")]}, file)
        batched = os.path.join(work, "layers.txt")
        with_batch(bench.layers, batched, 4)
        ladders = [byte_ladder(bench, batched), cycle_ladder(bench, s1, everything),
                   scratchpad_ladder(bench, "traffic", "bytes", mixed, batched),
                   scratchpad_ladder(bench, "latency", "cycles", mixed, batched)]
    lines += ladders[0].table() + [""] + ladders[1].table()
    if ladders[0].open:
        lines += ["", "Uneven mappings that are not proven, above their lower bound: " +
                  ", ".join(ladders[0].open) + "."]
    lines += ["", "The compiler's search, with any choice of buffers and without rolling; *mixtures*: three "
              "scratchpads of", "64 KiB that hold every class each; *pooled* does not contain them, because in one "
              "scratchpad the", "drained output always shares the accumulators' buffer. The budget is "
              f"{int(SEARCH_BUDGET):,} points a layer.", ""]
    lines += ladders[2].table() + [""] + ladders[3].table()
    return lines, [worse for ladder in ladders for worse in ladder.worse]


def main():
    bench = LayerBench(__doc__, "MAPPING_TABLES.md")
    lines = ["# Proven optima of 90 layers", "",
             "Written by `bench/mapping.py DATA`. Spaces and rules: [MAPPING.md](MAPPING.md). Machine:",
             f"{bench.machine()}; times are medians of {bench.args.repeat} runs, proof included.", "",
             "| search | equal to the reference, of 90 | proven | ResNet-18 | BERT layer | "
             "ms ResNet-18 (21 layers) | ms all 90 | ms slowest layer |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for title, options, table, column in RUNS:
        rows = bench.map("--optimize", "traffic", *options)
        lines.append(row(title, rows, "bytes", bench.expected(table), column))
    for space, table in (("s0-folds", "optimum_latency_separate.csv"),
                         ("s1", "optimum_latency_s1_separate.csv")):
        reference = bench.expected(table)
        for objective, cell, column in (("latency", "cycles", "least_cycles"),
                                        ("balanced", "bytes", "least_bytes_within_5pct")):
            rows = bench.map("--optimize", objective, "--space", space)
            what = "least cycles" if cell == "cycles" else "least bytes within 5 % of them"
            lines.append(row(f"{what}, {space}", rows, cell, reference, column))
            if objective == "latency" and space == "s1":
                s1 = rows
    lines += ["", "The two rows of a space come from the same search, which finds both; each time is of both.",
              "", "## Every integer size", "",
              "Least cycles with every integer size of every dimension (`--space all`), where S1 is not the "
              "optimum:", "", "| layer | S1 | all | gain |", "| --- | --- | --- | --- |"]
    everything = bench.map("--optimize", "latency", "--space", "all", repeat=1)
    for name, r in everything.items():
        before, after = int(s1[name]["cycles"]), int(r["cycles"])
        if after != before:
            lines.append(f"| {name} | {before:,} | {after:,} | {100 * (1 - after / before):.2f} % |")
    lines += ["", f"All 90 layers take {sum(float(r['ms']) for r in everything.values()) / 1000:.0f} s. For "
              "bytes, all integer sizes of M, C, N and G add nothing (rules 3 to 5)."]
    lines += compiler_gap(bench)
    ladders, worse = larger_spaces(bench, s1, everything)
    bench.write(lines + ladders)
    for line in worse:
        print("worse in a larger space:", line)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
