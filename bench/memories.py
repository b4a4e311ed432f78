#!/usr/bin/env python3
"""One scratchpad or several of the same bytes: any number, and unified against partitioned.

  memories.py DATA [--bin DIR] [--work DIR] [--only NAME...]

First, 2 MiB of `onsram` and 192 KiB of `edge32` cut in several ways, every class in every part, f16,
least traffic: whoever has the finer cut has a schedule for the coarser one, so costs may only grow;
the coarser compilation is told of the finer one's (--start-from), the larger scratchpad named for its part.
Then `edge32` (a third of the bytes each for inputs, weights and outputs) against `edge32-unified`,
f32, least traffic and least latency, with and without residency. Everything is executed; the script
ends if a count differs from its prediction. Writes the parts of docs/SCRATCHPADS.md between its marks; exit
code 1 if an order is violated.
"""
import hashlib
import json
import os
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


def whole_of(parts, wholes):
    """In which scratchpad of the coarser cut each one of the finer cut lies, by name."""
    left, names = list(wholes), {}
    for i, size in enumerate(parts):
        whole = next(w for w, room in enumerate(left) if room >= size)
        left[whole] -= size
        names["m%d" % i] = "m%d" % whole
    return names


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

    def start(self, network, target, mem, options, whole_of):
        """Options that tell a compilation of the schedule for that target, with the names of
        scratchpads as `whole_of` has them; none if that does not fit."""
        return self.bench.remembered(["start", network.name, target, mem, options],
                                     lambda: self._start(network, target, mem, options, whole_of))

    def _start(self, network, target, mem, options, whole_of):
        path = self.bench.file("start_%s_%s.json" % (network.name, hashlib.sha256(json.dumps(
            [target, mem, options]).encode()).hexdigest()[:16]))
        program = self.bench.file("start%d.bin" % os.getpid())
        step = self.bench.compile(network, program, target, mem, path, options)
        if step.status != "ok":
            return []
        os.remove(program)
        with open(path) as f:
            schedule = json.load(f)
        for value in schedule["values"]:
            value["memory"] = whole_of[value["memory"]]
        for group in schedule["groups"]:
            for operand in group["mapping"]["operands"]:
                for key in ("memory", "from"):
                    if key in operand:
                        operand[key] = whole_of[operand[key]]
                if operand.get("from") == operand["memory"]:  # it is there already
                    operand["buffers"] = "resident"
                    del operand["from"]
        with open(path, "w") as f:
            json.dump({key: schedule[key] for key in ("slices", "groups", "values", "cascades")}, f)
        return ["--start-from", path]

    def cells(self, network, base, policy):
        """What each cut costs, the finest first; a coarser one starts from those that are parts of
        it where the policy is `best`."""
        cuts, coarser = CUTS[base], COARSER if base == "onsram" else COARSER_OF_THREE
        options = ["--precision", "f16", "--optimize", "traffic", "--prefetch", "off",
                   "--residency", policy]
        found, starts = {}, {cut: [] for cut in range(len(cuts))}
        order = [c for c in range(len(cuts)) if c not in coarser.values()]
        order += [c for c in coarser.values() if c not in order and c != 0] + [0]
        for cut in order:
            target = self.target(base, *cuts[cut])
            told = options + starts[cut]
            found[cut] = self.bench.measure(network, target, None, told)
            if policy == "best" and cut in coarser:
                whole = coarser[cut]
                starts[whole] += self.start(network, target, None, told,
                                            whole_of(cuts[cut][1], cuts[whole][1]))
        return [found[cut] for cut in range(len(cuts))]

    def cuts(self):
        rows = []
        for network in self.bench.networks(NETWORKS):
            for base, cuts in CUTS.items():
                for policy in ["onsram", "best"]:
                    cells = self.cells(network, base, policy)
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
                        start = self.start(network, "edge32", {
                            m: "%dK" % third for m in ("input", "weight", "output")}, options,
                            {m: "pool" for m in ("input", "weight", "output")})
                        one = self.bench.measure(network, "edge32-unified",
                                                 {"pool": "%dK" % (3 * third)}, options + start)
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
