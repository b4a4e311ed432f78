#!/usr/bin/env python3
"""Feature-map traffic of VGG-19's first five convolutions and two pools, layer by layer and fused.

usage: bench/fused_vgg.py DLAC DLARUN MODEL [--out FILE]

MODEL is `vgge5` of the generated networks (f32, batch 1, 224x224). Four schedules are forced by partial
--use-schedule files that name groups and cascades, on `edge32-ideal-unified` with 16 MiB; then dlac
chooses for the least traffic at several sizes. Every program is executed with --check; counts must
be as predicted, and outputs those of the first schedule, within 1e-5 of the largest. Feature maps are
what is not of class `weight`.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

CONV = "/features/features.%d/Conv"
POOL = "/features/features.%d/MaxPool"
C11, C12, P1, C21, C22, P2, C31 = (CONV % 0, CONV % 2, POOL % 4, CONV % 5, CONV % 7, POOL % 9,
                                   CONV % 10)
# Name, chains, and the feature-map bytes that follow from the shapes.
FORCED = [
    ("every layer by itself", [], 90_517_504),
    ("pooling before the store", [[C12, P1], [C22, P2]], 51_982_336),
    ("{1_1 1_2 pool} {2_1} {2_2 pool} {3_1}", [[C11, C12, P1], [C22, P2]], 26_292_224),
    ("all seven", [[C11, C12, P1, C21, C22, P2, C31]], 3_813_376),
]
MOST_ERROR = 1e-5  # of the largest output
SIZES = ["128K", "362000", "512K", "1M"]


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.first, self.error = args, folder, None, 0.0

    def path(self, name):
        return os.path.join(self.folder, name)

    def measure(self, size, extra):
        command = [self.args.dlac, self.args.model, "-q", "-o", self.path("a.bin"), "--schedule",
                   self.path("a.json"), "--target", "edge32-ideal-unified", "--mem",
                   "pool=" + size, "--optimize", "traffic", "--cascades", "on", *extra]
        subprocess.run(command, check=True)
        subprocess.run([self.args.dlarun, self.path("a.bin"), "-q", "--inputs",
                        self.path("in.npz"), "--outputs", self.path("out.npz"), "--check",
                        "--stats-json", self.path("s.json")], check=True)
        with open(self.path("a.json")) as file:
            plan = json.load(file)
        with open(self.path("s.json")) as file:
            counted = json.load(file)
        for key in ("cycles", "dram_bytes", "macs_issued"):
            if plan["totals"][key] != counted[key]:
                sys.exit(f"{key}: predicted {plan['totals'][key]}, counted {counted[key]}")
        self.compare()
        return plan, counted

    def compare(self):
        """Sums that tiles cut elsewhere are rounded otherwise."""
        import numpy
        with numpy.load(self.path("out.npz")) as file:
            outputs = {name: file[name].astype(numpy.float64) for name in file.files}
        self.first = self.first or outputs
        for name, values in outputs.items():
            error = numpy.abs(values - self.first[name]).max() / numpy.abs(self.first[name]).max()
            self.error = max(self.error, error)
            if not error <= MOST_ERROR:
                sys.exit(f"{name} differs from the first schedule's by {error:.1e} of the largest")

    def row(self, name, size, extra, expected=None):
        plan, counted = self.measure(size, extra)
        weights = counted["dram"]["weight"]["load_bytes"]
        maps = counted["dram_bytes"] - weights
        if expected is not None and maps != expected:
            sys.exit(f"{name}: {maps} bytes of feature maps, {expected} expected")
        rings = sum(r["bytes"] for c in plan["cascades"] for r in c["rings"])
        chains = " ".join("%d in %d" % (len(c["groups"]), c["lines"]) for c in plan["cascades"])
        return (f"| {name} | {size} | {maps:,} | {maps / 2**20:.2f} | {weights:,} | {rings:,} | "
                f"{plan['memories'][0]['peak_bytes']:,} | {counted['macs_issued']:,} | "
                f"{counted['cycles']:,} | {chains} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("dlac", "dlarun", "model"):
        parser.add_argument(name)
    parser.add_argument("--out")
    args = parser.parse_args()
    lines = [
        "| schedule | scratchpad | feature maps, bytes | x 2^20 | weights, bytes | rings, bytes | "
        "in use, bytes | MACs | cycles | chains: groups in lines |", "| --- " * 10 + "|"]
    with tempfile.TemporaryDirectory() as folder:
        import numpy
        bench = Bench(args, folder)
        image = numpy.random.default_rng(1).standard_normal((1, 3, 224, 224), numpy.float32)
        numpy.savez(bench.path("in.npz"), input=image)
        for name, chains, expected in FORCED:
            given = {"values": [], "cascades": [{"groups": c, "lines": 1} for c in chains]}
            with open(bench.path("given.json"), "w") as file:
                json.dump(given, file)
            lines.append(bench.row(name, "16M", ["--use-schedule", bench.path("given.json")],
                                   expected))
        for size in SIZES:
            lines.append(bench.row("chosen by dlac", size, []))
    text = "\n".join(lines) + "\n"
    if args.out:
        with open(args.out, "w") as file:
            file.write(text)
    print(text, end="")
    print(f"outputs: within {bench.error:.1e} of the largest")


if __name__ == "__main__":
    main()
