#!/usr/bin/env python3
"""Grouped convolutions: cycles against MACs, group by group, packed, on the vector engine, by cost.

  gspc.py DATA [--bin DIR] [--only NAME...]

Compiles ResNet-34 with all 3x3 convolutions in 1, 2, 4, 8, 16 and N (depthwise) groups, halves
(--precision f16), for least cycles, executes what is chosen by cost, and writes docs/GSPC.md.
"""
import json
import subprocess
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
pointwise convolution behind them), f16, batch 1, `--optimize latency --prefetch off`. [SCHEDULER.md](SCHEDULER.md), *How a
contraction is multiplied*, has the three ways: group by group on the array, groups packed side by side with
block-diagonal weights, vector engine.

* *Expected*: MACs of one group over the network's. *Share*: the measured speed-up over one group as a part
  of it. Published shares of CPUs, another network of the kind (Gibson, table 5.3): 64 to 106 %.
* *array*, *packed*, *vector*: cycles of the network with `--multiply` so; *chosen*: by cost, each layer.
* *Array busy*: nominal MACs of the array over cycles times PEs.
* *Layers*: how many of the grouped convolutions are multiplied group by group, packed, on the vector engine.
* *Grouped layers alone* (`--residency none`): their cycles together; *possible*: the sum of what each way
  needs at least, the best of all ways: max(engines, bus), the layer in one tile that no memory limits, nothing
  waiting, the addition fused behind it included, every byte once, zeros of the packing included; *strictly*:
  max(the engines' least, the bus' least), which no single way need reach. *Within 10 %*: layers so near.
  *Proven*: layers whose mapping is proven best for its form (the other forms are searched until their bounds
  rule them out): there what is above the possible is the machine's, which has not room for the layer and
  does not hide the first load and the last store.
* *What a single layer cannot avoid*: the same layers on machines that lack what the possible lacks, each
  with the lower bound of a search of its own (reached where proven; for the form of multiplying that it
  chose). *Roomy*: no latency, start-ups, bursts or alignment, and scratchpads of 1 GiB. There the first load
  and the last store still overlap with nothing; smaller tiles expose less of them, but each cut costs what
  the array takes to fill and drain (a cut of depth on the output-stationary array rows + columns - 2 cycles
  a fold; of pixels on the weight-stationary one 2 rows + columns - 2) and folds that round up. *Room*: the
  same with the target's scratchpads: cuts that do not fit otherwise, their folds, their halos and what is
  loaded again. *Chosen*: the target, with latency, start-ups and bursts. So *exposed and cuts* = roomy -
  possible, *room* = room - roomy, *latency ...* = chosen - room add up to what is above the possible.
  Layers within 10 % of *+ latency, start-ups, bursts* are so of the search's own bound on the target: where
  one is not, its mapping could be better. *Roomy and room proven*: both searches reached their bound.
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
    """The least of max(engines, bus) over all ways, and max(least of engines, least of bus)."""
    groups, channels, depth, pixels = unpacked(group)
    lanes, rate = TARGETS[target][3:]
    ways = [(groups * channels * pixels * depth / lanes, 0)]
    for p in range(1, groups + 1):
        if groups % p == 0:
            ways.append((groups // p * array_cycles(target, pixels, p * channels, p * depth),
                         2 * (p - 1) * groups * channels * depth))
    fused = any(n.endswith("/Add") for n in group["onnx_nodes"])
    behind = ceil(groups * channels * pixels / lanes) if fused else 0
    least = group["compulsory_bytes"]
    return (min(max(engines + behind, (least + zeros) / rate) for engines, zeros in ways),
            max(min(engines for engines, _ in ways) + behind, least / rate))


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
    outputs = bench.tools.read_npz(bench.outputs())
    expected = network._reference()
    name = next(iter(expected))
    largest = max(abs(float(v)) for v in expected[name].reshape(-1))
    found, right = outputs[name].reshape(-1), expected[name].reshape(-1)
    return max(abs(float(a) - float(b)) for a, b in zip(found, right)) / largest


def compile_so(bench, network, target, *options):
    bench.product.compile(network.path, bench.file("gspc.bin"), target, None, None, None,
                          bench.file("gspc.json"),
                          extra=["--quiet", "--precision", "f16", "--optimize", "latency",
                                 "--prefetch", "off"] +
                          list(options))


def alone_row(name, groups, target):
    """The grouped layers with nothing resident."""
    limits = [possible(g, target) for g in groups]
    cycles = [g["predicted"]["cycles"] for g in groups]
    near = [sum(c <= 1.1 * limit[k] for c, limit in zip(cycles, limits)) for k in (0, 1)]
    total, worst = sum(limit[0] for limit in limits), max(
        c / limit[0] for c, limit in zip(cycles, limits))
    return [name, sum(cycles), round(total), "%.1f %%" % (100 * sum(cycles) / total - 100),
            "%.0f %%" % (100 * worst - 100), "%d of %d" % (near[0], len(groups)),
            "%d of %d" % (near[1], len(groups)),
            "%d of %d" % (sum(g["search"]["proven"] for g in groups), len(groups))]


def machine_without(bench, target, room):
    """The target without latency, start-ups, bursts and alignment; `room`: scratchpads of 1 GiB."""
    text = subprocess.run([bench.product.dlac, "--print-target", target], check=True,
                          capture_output=True, text=True).stdout
    machine = json.loads(text)
    machine["dram"].update(latency_cycles=0, burst_bytes=1)
    machine["dma"]["startup_cycles"] = machine["vector"]["startup_cycles"] = 0
    for memory in machine["memories"]:
        memory["align_bytes"] = 1
        if room:
            memory["bytes"] = 2 ** 30
    path = bench.file("gspc_%s.json" % ("roomy" if room else "room"))
    with open(path, "w") as file:
        json.dump(machine, file)
    return path


def ladder_of(bench, network, target, alone):
    """Of each grouped layer: possible, bound on the roomy machine, bound with the target's room, chosen. A
    bound is the least of that machine where it is proven, else what the search could rule out."""
    steps = []
    for room in (True, False):
        compile_so(bench, network, machine_without(bench, target, room), "--residency", "none")
        steps.append(grouped(read_json(bench.file("gspc.json"))))
    layers = []
    for roomy, tight, group in zip(*steps, grouped(alone)):
        if not roomy["name"] == tight["name"] == group["name"]:
            sys.exit("%s on %s: other groups on another machine" % (network.name, target))
        rungs = [possible(group, target)[0]]
        for machine in (roomy, tight):  # what holds without a limit holds with it
            rungs.append(max(rungs[-1], machine["search"]["bound"]))
        rungs.append(group["predicted"]["cycles"])
        if max(rungs) > rungs[-1] + 1 or roomy["search"]["bound"] > tight["predicted"]["cycles"] + 1:
            sys.exit("%s on %s, %s: %s do not rise" % (network.name, target, group["name"], rungs))
        proven = all(g["search"][k] for g in (roomy, tight) for k in ("proven", "all_sizes"))
        layers.append((network.name, group, rungs, proven))
    return layers


def near_row(name, layers):
    """How many layers are within 10 % of each rung, and of the proven bound."""
    count = len(layers)
    near = [sum(rungs[3] <= 1.1 * rungs[k] for _, _, rungs, _ in layers) for k in range(3)]
    bound = sum(rungs[3] <= 1.1 * group["search"]["bound"] for _, group, rungs, _ in layers)
    return [name] + ["%d of %d" % (n, count) for n in near + [bound]] + [
        "%d of %d" % (sum(proven for _, _, _, proven in layers), count)]


def worst_rows(layers, most=5):
    """The layers furthest above the possible, each shape once, and what each term accounts for."""
    rows, seen = [], set()
    for name, group, rungs, _ in sorted(layers, key=lambda l: -l[2][3] / l[2][0]):
        groups, channels, depth, pixels = unpacked(group)
        d = group["nest"]["dimensions"]
        shape = "%d x (%d -> %d), %d x %d" % (groups, depth // 9, channels, d["E"], d["F"])
        if (name, shape) in seen or len(rows) == most:
            continue
        seen.add((name, shape))
        parts = [b - a for a, b in zip(rungs, rungs[1:])]
        rows.append([name, shape, round(rungs[0]), rungs[3]] + [
            "%.1f %%" % (100 * part / rungs[0]) for part in parts + [rungs[3] - rungs[0]]])
    return rows


def measure(bench, network, target):
    cycles, schedule = {}, None
    for way in WAYS:
        compile_so(bench, network, target, "--multiply", way)
        schedule = read_json(bench.file("gspc.json"))
        cycles[way] = schedule["totals"]["cycles"]
    compile_so(bench, network, target, "--residency", "none")
    alone = read_json(bench.file("gspc.json"))
    ladder = ladder_of(bench, network, target, alone)
    compile_so(bench, network, target)
    stats = bench.file("gspc_stats.json")
    step, _ = bench.run(network, bench.file("gspc.bin"), stats=stats, extra=["--check"])
    if step.status != "ok":
        sys.exit("%s on %s: %s" % (network.name, target, step))
    if differing(schedule, read_json(stats)):
        sys.exit("%s on %s: predicted and counted differ" % (network.name, target))
    return cycles, schedule, alone, ladder, error(bench, network)


def main():
    bench = Bench(__doc__.split("\n")[0])
    text, failures = HEAD, []
    for target, (_, rows, cols, _, _) in TARGETS.items():
        table, layers, near, ladders, first, last = [], [], [], [], None, None
        for network in bench.networks(NETWORKS):
            cycles, schedule, alone, ladder, wrong = measure(bench, network, target)
            groups = grouped(schedule)
            macs = sum(g["predicted"]["macs_array"] + g["predicted"]["macs_vector"]
                       for g in schedule["groups"])
            first = first or (macs, cycles["best"])
            expected, measured = first[0] / macs, first[1] / cycles["best"]
            busy = schedule["totals"]["macs_array"] / (cycles["best"] * rows * cols)
            counts = [sum(way_of(g) == w for g in groups) for w in range(3)]
            table.append([network.name, macs] + [cycles[w] for w in WAYS] +
                         ["%.2f" % expected, "%.2f" % measured,
                          "%.0f %%" % (100 * measured / expected), "%.1f %%" % (100 * busy),
                          "%d, %d, %d" % tuple(counts), "%.1e" % wrong])
            layers.append(alone_row(network.name, grouped(alone), target))
            near.append(near_row(network.name, ladder))
            ladders += ladder
            print(table[-1], layers[-1], flush=True)
            least = min(cycles.values())
            if cycles["best"] > least:
                failures.append("%s on %s, by %.3f %%" % (network.name, target,
                                                          100 * cycles["best"] / least - 100))
            if last and cycles["best"] > last:
                failures.append("%s on %s, slower than with fewer groups" % (network.name, target))
            last = cycles["best"]
        text += "## %s\n\n%s\n\n" % (target, markdown(
            ["network", "MACs", "array", "packed", "vector", "chosen", "expected", "measured",
             "share", "array busy", "layers", "error"], table))
        text += "Grouped layers alone:\n\n%s\n\n" % markdown(
            ["network", "cycles", "possible", "above", "worst layer", "within 10 %",
             "within 10 % strictly", "proven"], layers)
        text += "What a single layer cannot avoid, layers within 10 %% of:\n\n%s\n\n" % markdown(
            ["network", "possible", "+ exposed and cuts", "+ room", "+ latency, start-ups, bursts",
             "roomy and room proven"], near + [near_row("all", ladders)])
        text += "The layers furthest above the possible:\n\n%s\n\n" % markdown(
            ["network", "groups x (channels), pixels", "possible", "chosen", "exposed and cuts", "room",
             "latency, start-ups, bursts", "above"], worst_rows(ladders))
    text += "Slower than another way for the whole network, or than with fewer groups: %s.\n" % (
        "; ".join(failures) or "nowhere")
    bench.write("GSPC.md", text)


if __name__ == "__main__":
    main()
