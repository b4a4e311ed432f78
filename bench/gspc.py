#!/usr/bin/env python3
"""Grouped convolutions: cycles against MACs, group by group, packed, on the vector engine, by cost.

  gspc.py DATA [--bin DIR] [--only NAME...]

Compiles ResNet-34 with all 3x3 convolutions in 1, 2, 4, 8, 16 and N (depthwise) groups, halves
(--precision f16), for least cycles, executes what is chosen by cost, and writes docs/GSPC.md.
"""
import sys
from math import ceil

from networks import Bench, markdown, read_json

NETWORKS = ["resnet34_g%s" % g for g in ("1", "2", "4", "8", "16", "N")]
WAYS = ["array", "packed", "vector", "best"]
# (dataflow, rows, columns, lanes, bytes a cycle)
TARGETS = {"edge32": ("os", 32, 32, 32, 16), "edge32-ws": ("ws", 32, 32, 32, 16),
           "tpu256": ("ws", 256, 256, 256, 300 / 7)}
HEAD = """# Grouped convolutions

`bench/gspc.py` wrote this page: ResNet-34 whose 3x3 convolutions have 1 to N groups (N: depthwise; no
pointwise convolution behind them), f16, batch 1, `--optimize latency`. [SCHEDULER.md](SCHEDULER.md), *How a
contraction is multiplied*, has the three ways: group by group on the array, groups packed side by side with
block-diagonal weights, vector engine.

* *Expected*: MACs of one group over the network's. *Share*: the measured speed-up over one group as a part
  of it. Published shares of CPUs, another network of the kind (Gibson, table 5.3): 64 to 106 %.
* *array*, *packed*, *vector*: cycles of the network with `--multiply` so; *chosen*: by cost, each layer.
* *Array busy*: nominal MACs of the array over cycles times PEs.
* *Layers*: how many of the grouped convolutions are multiplied group by group, packed, on the vector engine.
* *Possible*: sum over the grouped layers of max(what the engines need at best, what the bus needs). The
  engines: the least of the three ways, no tiles, nothing waits, the addition that is fused behind it
  included. The bus: every byte that does not stay on chip once, without zeros. *Above*: cycles of the grouped
  layers over that. *Worst layer*: the largest ratio of one layer. The first loads and the last stores
  of a layer overlap with nothing: they are what short layers have above it.
* Predicted and counted cycles and bytes of all groups of what is chosen are equal (executed with
  `--check`); *error*: largest difference from ONNX Runtime's f32 outputs over the largest output.

"""


def array_cycles(target, pixels, channels, depth):
    flow, rows, cols = TARGETS[target][:3]
    if flow == "os":
        return ceil(pixels / rows) * ceil(channels / cols) * (depth + rows + cols - 2)
    return ceil(depth / rows) * ceil(channels / cols) * (pixels + 2 * rows + cols - 2)


def unpacked(group):
    """Groups, channels and depth of one group, pixels of a convolution, whatever its form."""
    d = dict(group["nest"]["dimensions"])
    p = group["nest"].get("packed_groups", 1)
    pixels = d["N"] * d["E"] * d["F"]
    return d["G"] * p, d["M"] // p, d["C"] // p * d["R"] * d["S"], pixels


def possible(group, target):
    """max(engines at best, bus) of a grouped convolution."""
    groups, channels, depth, pixels = unpacked(group)
    lanes, rate = TARGETS[target][3:]
    ways = [groups * channels * pixels * depth / lanes]
    for p in range(1, groups + 1):
        if groups % p == 0:
            ways.append(groups // p * array_cycles(target, pixels, p * channels, p * depth))
    fused = any(n.endswith("/Add") for n in group["onnx_nodes"])
    behind = ceil(groups * channels * pixels / lanes) if fused else 0
    return max(min(ways) + behind, group["compulsory_bytes"] / rate)


def grouped(schedule):
    """The 3x3 convolutions of the blocks; not the first one, whose kernel is larger."""
    return [g for g in schedule["groups"]
            if g["op"] == "Conv" and g["nest"]["dimensions"]["R"] == 3]


def way_of(group):
    if group["nest"]["anchor"] == "vector":
        return 2
    return 1 if "packed_groups" in group["nest"] else 0


def differing(schedule, stats):
    keys = ("cycles", "dram_bytes", "dram_bus_bytes", "macs_array", "macs_issued")
    return sum(plan["predicted"].get(k) != count.get(k)
               for plan, count in zip(schedule["groups"], stats["groups"]) for k in keys)


def error(bench, network):
    outputs = bench.tools.read_npz(bench.file("outputs.npz"))
    expected = network._reference()
    name = next(iter(expected))
    largest = max(abs(float(v)) for v in expected[name].reshape(-1))
    found, right = outputs[name].reshape(-1), expected[name].reshape(-1)
    return max(abs(float(a) - float(b)) for a, b in zip(found, right)) / largest


def measure(bench, network, target):
    cycles, schedule = {}, None
    for way in WAYS:
        path = bench.file("gspc.json")
        bench.product.compile(network.path, bench.file("gspc.bin"), target, None, None, None, path,
                              extra=["--quiet", "--precision", "f16", "--optimize", "latency",
                                     "--multiply", way])
        schedule = read_json(path)
        cycles[way] = schedule["totals"]["cycles"]
    stats = bench.file("gspc_stats.json")
    step, _ = bench.run(network, bench.file("gspc.bin"), stats=stats, extra=["--check"])
    if step.status != "ok":
        sys.exit("%s on %s: %s" % (network.name, target, step))
    if differing(schedule, read_json(stats)):
        sys.exit("%s on %s: predicted and counted differ" % (network.name, target))
    return cycles, schedule, error(bench, network)


def main():
    bench = Bench(__doc__.split("\n")[0])
    text, failures = HEAD, []
    for target, (_, rows, cols, _, _) in TARGETS.items():
        table, first, last = [], None, None
        for network in bench.networks(NETWORKS):
            cycles, schedule, wrong = measure(bench, network, target)
            groups = grouped(schedule)
            macs = sum(g["predicted"]["macs_array"] + g["predicted"]["macs_vector"]
                       for g in schedule["groups"])
            first = first or (macs, cycles["best"])
            expected, measured = first[0] / macs, first[1] / cycles["best"]
            ratios = [g["predicted"]["cycles"] / possible(g, target) for g in groups]
            total = sum(g["predicted"]["cycles"] for g in groups)
            limit = sum(possible(g, target) for g in groups)
            busy = schedule["totals"]["macs_array"] / (cycles["best"] * rows * cols)
            counts = [sum(way_of(g) == w for g in groups) for w in range(3)]
            table.append([network.name, macs] + [cycles[w] for w in WAYS] +
                         ["%.2f" % expected, "%.2f" % measured,
                          "%.0f %%" % (100 * measured / expected), "%.1f %%" % (100 * busy),
                          "%d, %d, %d" % tuple(counts), "%.1f %%" % (100 * total / limit - 100),
                          "%.0f %%" % (100 * max(ratios) - 100),
                          "%d of %d" % (sum(r <= 1.1 for r in ratios), len(ratios)),
                          "%.1e" % wrong])
            print(table[-1], flush=True)
            if cycles["best"] > min(cycles.values()) or (last and cycles["best"] > last):
                failures.append("%s on %s: slower than another way or than fewer groups" %
                                (network.name, target))
            last = cycles["best"]
        text += "## %s\n\n%s\n\n" % (target, markdown(
            ["network", "MACs", "array", "packed", "vector", "chosen", "expected", "measured",
             "share", "array busy", "layers", "above", "worst layer", "within 10 %", "error"],
            table))
    text += "Slower than another way, or than with fewer groups: %s.\n" % (
        "; ".join(failures) or "nowhere")
    bench.write("GSPC.md", text)


if __name__ == "__main__":
    main()
