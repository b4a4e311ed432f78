#!/usr/bin/env python3
"""One scratchpad or several of the same bytes: any number, and unified against partitioned.

  memories.py DATA [--bin DIR] [--work DIR] [--only NAME...]

First, 2 MiB of `onsram` and 192 KiB of `edge32` cut in several ways, every class in every part, f16,
least traffic: whoever has the finer cut has a schedule for the coarser one, so costs may only grow.
Then `edge32` (a third of the bytes each for inputs, weights and outputs) against `edge32-unified`,
f32, least traffic and least latency, with and without residency. Everything is executed; the script
ends if a count differs from its prediction. Writes the parts of docs/SCRATCHPADS.md between its marks; exit
code 1 if an order is violated.
"""
import json
import sys

from networks import Bench, markdown

NETWORKS = ["squeezenet1_1", "mobilenet_v2", "googlenet"]
CUTS = {"onsram": [("1 x 2 MiB", [2048]), ("2 x 1 MiB", [1024] * 2), ("4 x 512 KiB", [512] * 4),
                   ("1.5 + 0.5 MiB", [1536, 512])],
        "edge32": [("1 x 192 KiB", [192]), ("2 x 96 KiB", [96] * 2), ("3 x 64 KiB", [64] * 3),
                   ("128 + 64 KiB", [128, 64])]}
COARSER = {1: 0, 2: 1, 3: 0}  # of each cut: one whose parts are unions of its parts
COARSER_OF_THREE = {1: 0, 2: 3, 3: 0}  # 3 x 64 are part of 128 + 64, not of 2 x 96
CLASSES = ["input", "weight", "partial", "output", "vector"]
THIRDS = [22, 43, 64, 128, 341]  # KiB of each memory of edge32


class Tables:
    def __init__(self):
        self.bench = Bench(__doc__.split("\n")[0])
        self.violations = 0

    def target(self, base, name, parts):
        """A target file: `base` with these scratchpads (KiB), each for every class."""
        path = self.bench.file("%s_%s.json" % (base, "_".join(str(p) for p in parts)))
        align = 64 if base == "onsram" else 16
        with open(path, "w") as f:
            json.dump({"inherit": base, "comment": "%s in %s" % (base, name), "memories": [
                {"name": "m%d" % i, "bytes": size * 1024, "holds": CLASSES, "align_bytes": align}
                for i, size in enumerate(parts)]}, f)
        return path

    def cuts(self):
        rows = []
        for network in self.bench.networks(NETWORKS):
            for base, cuts in CUTS.items():
                for policy in ["onsram", "best"]:
                    cells = [self.bench.measure(
                        network, self.target(base, name, parts), None,
                        ["--precision", "f16", "--optimize", "traffic", "--prefetch", "off",
                         "--residency", policy])
                        for name, parts in cuts]
                    rows.append([network.name, base, policy] +
                                ["%s (%s)" % (format(c["bus_bytes"], ","), format(c["cycles"], ","))
                                 for c in cells] + [self.order(base, policy, cells)])
                    print(rows[-1], flush=True)
        for base in CUTS:
            yield markdown(["network", "target", "policy"] + [name for name, _ in CUTS[base]] +
                           ["order"], [row for row in rows if row[1] == base])

    def order(self, base, policy, cells):
        if policy != "best":
            return ""
        coarser = COARSER if base == "onsram" else COARSER_OF_THREE
        holds = all(cells[b]["bus_bytes"] <= cells[a]["bus_bytes"] for a, b in coarser.items())
        self.violations += not holds
        return "holds" if holds else "VIOLATED"

    def unified(self):
        rows = []
        for network in self.bench.networks(NETWORKS + ["resnet18"]):
            for third in THIRDS:
                row = [network.name, "%d KiB" % (3 * third)]
                for objective in ["traffic", "latency"]:
                    for policy in ["none", "best"]:
                        options = ["--optimize", objective, "--prefetch", "off", "--residency", policy]
                        apart = self.bench.measure(
                            network, "edge32", {m: "%dK" % third for m in ("input", "weight", "output")},
                            options)
                        one = self.bench.measure(network, "edge32-unified",
                                                 {"pool": "%dK" % (3 * third)}, options)
                        key = "bus_bytes" if objective == "traffic" else "cycles"
                        row += [apart[key], one[key],
                                "%+.1f %%" % (100 * (one[key] / apart[key] - 1))]
                rows.append(row)
                print(row, flush=True)
        heads = ["network", "total"]
        for what in ["bytes", "cycles"]:
            for policy in ["none", "best"]:
                heads += ["%s, %s: parts" % (what, policy), "one", "change"]
        return markdown(heads, rows)


def main():
    tables = Tables()
    tables.bench.write_part("SCRATCHPADS.md", "cuts", "\n\n".join(tables.cuts()))
    tables.bench.write_part("SCRATCHPADS.md", "unified", tables.unified())
    return 1 if tables.violations else 0


if __name__ == "__main__":
    sys.exit(main())
