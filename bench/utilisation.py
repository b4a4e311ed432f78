#!/usr/bin/env python3
"""Utilisation with single and double buffers, the best of each operand, and groups that overlap.

  utilisation.py DATA [--bin DIR] [--work DIR] [--only NAME...]

Every network on `edge32` (f32) and `onsram` (f16), least latency, without cascades, compiled four
times: `--buffers single`, `double`, `best`, and `best` with `--prefetch on`. Cycles and what the engines
did and waited for are counted by executing the programs; the script ends if a count differs from its
prediction. The small networks also run with values, `--check` and `--jitter` and are compared with ONNX
Runtime. Writes docs/UTILISATION.md; exit code 1 unless best <= min(single, double) and with overlap <=
without, in every row, and all outputs match.
"""
import math
import sys

from networks import FILES, Bench, markdown

NETWORKS = FILES + ["squeezenet1_1", "mobilenet_v2", "resnet18", "alexnet", "unet128", "googlenet",
                    "resnet50"]
TARGETS = {"edge32": "f32", "onsram": "f16"}
CONFIGS = {"single": ["--buffers", "single", "--prefetch", "off"],
           "double": ["--buffers", "double", "--prefetch", "off"],
           "best": ["--buffers", "best", "--prefetch", "off"],
           "overlap": ["--buffers", "best", "--prefetch", "on"]}
HEAD = """# Utilisation

What buffers and the overlap of groups are worth: least latency (`--optimize latency`), residency `best`,
without cascades (they have buffers of their own), batch 1; `edge32` in f32, `onsram` in f16
(`--precision f16`). *single*, *double*: one buffer, two buffers for every operand with more than one tile
(`--buffers`); *best*: chosen for each operand; *overlap*: *best*, and first tiles are loaded and last
results stored under the neighbouring groups (`--prefetch on`; docs/SCHEDULER.md). All cycles are counted by
executing the programs and equal their predictions. *utilisation* is the share of the array's peak rate
(MACs issued over cycles times rate), idle groups of the vector engine included.

The second table of each target says what the array does, in per cent of the cycles: it *computes*, waits
for *loads* (of input and weights together, which travel as one transfer, and their latency), for *stores*
that free a buffer, for the *vector* engine behind it, or has *nothing* to do: the group has no work for it,
or waits for its last results to leave. The last columns: the array or the vector engine computes.

Search and residency are decided for groups between barriers; where they fill the scratchpads, as on
`edge32` with its 3 x 64 KiB, little room is left for overlap.

`bench/utilisation.py DATA` writes this page.
"""


def options_of(target, config):
    precision = [] if TARGETS[target] == "f32" else ["--precision", TARGETS[target]]
    return ["--optimize", "latency", "--cascades", "off", *precision, *CONFIGS[config]]


def percent(part, whole):
    return "%.1f %%" % (100 * part / whole)


def waits(cell):
    """What the array does, as shares of the cycles that add up to 100 %: it computes, waits for loads,
    for stores, for the vector engine behind it, or has nothing to do in this group (any more)."""
    array = cell["engines"]["array"]
    parts = [array["busy_cycles"]] + [array["stall_cycles"][cause]
                                      for cause in ("load", "store", "compute", "barrier")]
    assert sum(parts) == cell["cycles"]
    return " / ".join("%.1f" % (100 * part / cell["cycles"]) for part in parts)


def busy(cell):
    """Share of the cycles in which the array or the vector engine computes."""
    return percent(cell["engines"]["array"]["busy_cycles"] +
                   cell["engines"]["vector"]["busy_cycles"], cell["cycles"])


class Page:
    def __init__(self):
        self.bench = Bench(__doc__.split("\n")[0])
        self.faults = []
        self.cells = {}  # by target: a list of cells by configuration

    def row(self, network, target):
        cells = {config: self.bench.measure(network, target, None, options_of(target, config))
                 for config in CONFIGS}
        cycles = {config: cell["cycles"] for config, cell in cells.items()}
        if cycles["best"] > min(cycles["single"], cycles["double"]):
            self.faults.append("%s on %s: the best buffers are slower" % (network.name, target))
        if cycles["overlap"] > cycles["best"]:
            self.faults.append("%s on %s: overlap is slower" % (network.name, target))
        self.cells.setdefault(target, []).append(cells)
        row = [network.name] + [cycles[config] for config in CONFIGS]
        row += [percent(cells[config]["utilisation"], 1) for config in CONFIGS]
        row.append("-%.2f %%" % (100 * (1 - cycles["overlap"] / cycles["best"])))
        waiting = [network.name] + [waits(cells[config]) for config in CONFIGS]
        return row, waiting + [busy(cells["best"]), busy(cells["overlap"])]

    def check(self, network, target):
        """Values in f32, with every read checked, engines delayed at random."""
        program = self.bench.file("checked.bin")
        options = ["--optimize", "latency", "--cascades", "off", *CONFIGS["overlap"]]
        step = self.bench.compile(network, program, target, extra=options)
        if step.status != "ok":
            sys.exit("%s on %s: %s" % (network.name, target, " ".join(step.reasons)))
        step, judged = self.bench.run(network, program, extra=["--check", "--jitter", "1"])
        if step.status != "ok" or not judged[0]:
            self.faults.append("%s on %s: %s" % (network.name, target,
                                                 judged[1] if judged else " ".join(step.reasons)))

    def summary(self, target):
        """Geometric means of cycles against double buffers."""
        means = []
        for config in CONFIGS:
            logs = [math.log(cells[config]["cycles"] / cells["double"]["cycles"])
                    for cells in self.cells[target]]
            means.append("%s %.4f" % (config, math.exp(sum(logs) / len(logs))))
        return "Cycles over those with double buffers, geometric mean of %d networks: %s." % (
            len(self.cells[target]), ", ".join(means))

    def run(self):
        rows = {target: [] for target in TARGETS}
        for network in self.bench.networks(NETWORKS):
            for target in TARGETS:
                rows[target].append(self.row(network, target))
                print(target, rows[target][-1], flush=True)
                if network.name in FILES:
                    self.check(network, target)
        text = HEAD
        for target in TARGETS:
            cycles, waiting = zip(*rows[target])
            text += "\n## %s\n\n%s\n\n" % (target, self.summary(target))
            text += markdown(["network"] + ["%s: cycles" % c for c in CONFIGS] +
                             ["%s: utilisation" % c for c in CONFIGS] + ["by overlap"], cycles)
            text += "\n\nThe array, per cent: computes / loads / stores / vector / nothing.\n\n"
            text += markdown(["network"] + list(CONFIGS) + ["best: busy", "overlap: busy"],
                             waiting) + "\n"
        text += "\nbest <= min(single, double) and overlap <= best: %s. " % (
            "in every row" if not self.faults else "not; " + "; ".join(self.faults))
        text += "The networks from files also ran on both targets in f32 with values, `--check` and `--jitter`: "
        text += "they match ONNX Runtime.\n" if not self.faults else "see there.\n"
        self.bench.write("UTILISATION.md", text)
        for fault in self.faults:
            print("FAULT:", fault)
        return 1 if self.faults else 0


if __name__ == "__main__":
    sys.exit(Page().run())
