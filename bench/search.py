#!/usr/bin/env python3
"""The compiler's mapping search on whole networks and on the 90 layers of well-known networks.

  search.py LAYERS.txt MODEL.onnx... [--bin DIR] [--target NAME] [--out FILE]

Compiles each network with the exact search, with the quick one, with fewer block sizes and with
random samples, in each objective, and maps the layer list with everything in the cost. Writes
docs/SEARCH.md. Times are of the whole process, the least of three runs.
"""
import argparse
import csv
import io
import json
import os
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OBJECTIVES = ["latency", "traffic", "energy", "edp", "balanced"]
WAYS = [("exact", []), ("quick", ["--search", "quick"]), ("even sizes", ["--space", "even"]),
        ("strided sizes", ["--space", "strided"]), ("random:5000", ["--search", "random:5000"])]
HEAD = """# The mapping search on networks

`bench/search.py` wrote this page: `dlac` on `%s`, each group's mapping searched in different ways
([SCHEDULER.md](SCHEDULER.md)); what stays on chip is decided anew each time. *Proven*: groups whose mapping
is proven best among all integer block sizes (for *even* and *strided*: among the sizes of that space).
*Above*: how much more all groups together have of what is minimised than the sum of their lower bounds.
Seconds are of the whole process, file and code generation included. Uneven mapping (operands cut at different
loops) is not in these spaces, because programs have one depth for all operands: it is
`dlac map --space uneven` ([MAPPING.md](MAPPING.md), what it would save in [MAPPING_TABLES.md](MAPPING_TABLES.md)).

"""


def compile_one(bin_dir, model, target, objective, options, path):
    command = [os.path.join(bin_dir, "dlac"), model, "-o", path + ".bin", "--schedule",
               path + ".json", "--target", target, "--optimize", objective, "-q"] + options
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        subprocess.run(command, check=True)
        seconds.append(time.perf_counter() - begin)
    with open(path + ".json", encoding="utf-8") as file:
        return json.load(file), min(seconds)


def row(way, schedule, seconds):
    groups = schedule["groups"]
    searched = [g["search"] for g in groups if "bound" in g["search"]]
    proven = sum(s["proven"] and s["all_sizes"] for s in searched)
    value = sum(s["value"] for s in searched)
    bound = sum(s["bound"] for s in searched)
    energy = sum(g["predicted"]["energy_pj"] for g in groups)
    totals = schedule["totals"]
    return "| %s | %d | %d | %.1f | %s | %s | %.2f |" % (
        way, totals["cycles"], totals["dram_bus_bytes"], energy / 1e6,
        "%d of %d" % (proven, len(groups)) if searched else "",
        "%.2f%%" % (100 * (value / bound - 1)) if bound else "", seconds)


def layer_lines(bin_dir, layers, target):
    lines = ["## 90 layers, everything in the cost\n",
             "`dlac map --search compiler --type i8 --target %s`, one process: search, proof included.\n"
             % target,
             "| objective | proven | ms in all | most for a layer |", "| --- | --- | --- | --- |"]
    for objective in OBJECTIVES:
        out = subprocess.run([os.path.join(bin_dir, "dlac"), "map", layers, "--type", "i8",
                              "--target", target, "--search", "compiler", "--optimize", objective],
                             check=True, capture_output=True, text=True).stdout
        rows = list(csv.DictReader(io.StringIO(out)))
        times = [float(r["ms"]) for r in rows]
        lines.append("| %s | %d of %d | %.0f | %.0f |" % (
            objective, sum(r["proven"] == "yes" for r in rows), len(rows), sum(times), max(times)))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layers")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--target", default="edge32")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "SEARCH.md"))
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models:
            name = os.path.splitext(os.path.basename(model))[0]
            for objective in OBJECTIVES:
                lines += ["## %s, %s\n" % (name, objective),
                          "| search | cycles | bus bytes | energy (uJ) | proven | above | seconds |",
                          "| --- | --- | --- | --- | --- | --- | --- |"]
                for way, arguments in WAYS:
                    schedule, seconds = compile_one(options.bin, model, options.target, objective,
                                                    arguments, os.path.join(folder, "out"))
                    lines.append(row(way, schedule, seconds))
                lines.append("")
    lines += layer_lines(options.bin, options.layers, options.target)
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(HEAD % options.target + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
