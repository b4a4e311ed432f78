#!/usr/bin/env python3
"""Residency policies on target `onsram`: cycles and bytes, executed, beside their lower bounds.

  onsram.py DATA [--bin DIR] [--work DIR] [--only NAME...] [--sizes 1M,2M,4M,8M] [--fuse on,off]

Compiles the networks in f16 for latency with every policy, runs each program in timed mode and ends
if a count differs from its prediction. Every row tells whether none >= one-step >= best >= bound,
none >= onsram >= best and best >= infinite hold; exit code 1 if one does not. Writes the part of
docs/ONSRAM.md between its marks. What this build has measured is kept in the work folder.
"""
import math
import sys

from networks import Bench

NETWORKS = ["resnet18", "resnet50", "vgg16", "alexnet", "googlenet", "mobilenet_v2",
            "squeezenet1_1", "densenet121", "efficientnet_b0", "unet128", "yolov8n_320",
            "bert_base_128"]
POLICIES = ["none", "one-step", "onsram", "best", "infinite"]
HEAD = ["network", "pool", "fused"] + POLICIES + ["bound", "gap", "none/best", "none/infinite",
        "share", "MB none", "MB best", "MB bound", "energy none/best", "order"]


def mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")


class Table:
    def __init__(self):
        self.bench = Bench(__doc__.split("\n")[0], [
            (("--sizes",), {"default": "1M,2M,4M,8M"}), (("--fuse",), {"default": "on,off"})])
        self.cells = {}  # by network, size, fuse: by policy

    def measure(self):
        sizes = self.bench.options.sizes.split(",")
        for network in self.bench.networks(NETWORKS):
            for size in sizes:
                for fuse in self.bench.options.fuse.split(","):
                    cell = {p: self.compile(network, size, fuse, p) for p in POLICIES[:-1]}
                    # Without limits the size matters only where the plan for it is the better one.
                    cell["infinite"] = self.compile(network, sizes[-1], fuse, "infinite")
                    if cell["infinite"]["cycles"] > cell["best"]["cycles"]:
                        cell["infinite"] = self.compile(network, size, fuse, "infinite")
                    self.cells[network.name, size, fuse] = cell
                    print(self.row(network.name, size, fuse), flush=True)

    def compile(self, network, size, fuse, policy):
        return self.bench.measure(network, "onsram", {"pool": size},
                                  ["--optimize", "latency", "--precision", "f16", "--prefetch", "off",
                                   "--order", "graph", "--search-budget", "40000", "--fuse", fuse,
                                   "--residency", policy])

    @staticmethod
    def holds(cell):
        none, one_step, onsram, best, infinite = (cell[p]["cycles"] for p in POLICIES)
        return none >= one_step >= best >= cell["best"]["bound"]["cycles"] and \
            none >= onsram >= best >= infinite

    def row(self, network, size, fuse):
        cell = self.cells[network, size, fuse]
        cycles = [cell[p]["cycles"] for p in POLICIES]
        none, best, infinite = cycles[0], cycles[3], cycles[4]
        bound = cell["best"]["bound"]
        share = (none - best) / (none - infinite) if none > infinite else 1
        row = [network, size, fuse] + ["%s" % format(c, ",") for c in cycles] + [
            format(bound["cycles"], ","), "%.1f %%" % (100 * (best / bound["cycles"] - 1)),
            "%.3f" % (none / best), "%.3f" % (none / infinite), "%.0f %%" % (100 * share)]
        row += ["%.2f" % (b / 1e6) for b in (cell["none"]["dram_bytes"], cell["best"]["dram_bytes"],
                                             bound["dram_bytes"])]
        row += ["%.2f" % (cell["none"]["energy_pj"] / cell["best"]["energy_pj"]),
                "holds" if self.holds(cell) else "VIOLATED"]
        return "| " + " | ".join(row) + " |"

    def summary(self):
        """Over all cells, and speed-ups by size and fusing."""
        lines = []
        gaps = [c["best"]["cycles"] / c["best"]["bound"]["cycles"] for c in self.cells.values()]
        lines.append("Gap of `best` to its bound over these %d cells: %.2f %% in the geometric "
                     "mean; the order holds in %d of them." % (
                         len(gaps), 100 * (mean(gaps) - 1),
                         sum(self.holds(c) for c in self.cells.values())))
        lines += ["", "| pool | fused | none/best, mean | least | most | none/infinite, most | "
                  "energy none/best, mean | most |", "| --- " * 8 + "|"]
        for fuse in self.bench.options.fuse.split(","):
            for size in self.bench.options.sizes.split(","):
                cells = [c for k, c in self.cells.items() if k[1:] == (size, fuse)]
                speed = [c["none"]["cycles"] / c["best"]["cycles"] for c in cells]
                perfect = [c["none"]["cycles"] / c["infinite"]["cycles"] for c in cells]
                energy = [c["none"]["energy_pj"] / c["best"]["energy_pj"] for c in cells]
                numbers = (mean(speed), min(speed), max(speed), max(perfect), mean(energy),
                           max(energy))
                lines.append("| %s | %s | " % (size, fuse) +
                             " | ".join("%.2f" % n for n in numbers) + " |")
        return lines

    def page(self):
        rows = [self.row(*key) for key in self.cells]
        return "\n".join(["| " + " | ".join(HEAD) + " |", "| --- " * len(HEAD) + "|"] + rows +
                         [""] + self.summary())


def main():
    table = Table()
    table.measure()
    table.bench.write_part("ONSRAM.md", "policies", table.page())
    return 0 if all(Table.holds(c) for c in table.cells.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
