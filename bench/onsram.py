#!/usr/bin/env python3
"""Residency policies on target `onsram`: cycles and bytes, executed, beside their lower bounds.

usage: bench/onsram.py DLAC DLARUN MODELS_DIR [--sizes 1M,2M] [--fuse on,off] NETWORK...

Compiles MODELS_DIR/NETWORK.onnx for latency with every policy, runs each program in timed mode,
stops if a count differs from its prediction, and prints one table row a cell with whether
none >= one-step >= best >= bound, none >= onsram >= best and best >= infinite hold. Options after
`--` are passed to dlac.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

POLICIES = ("none", "one-step", "onsram", "best", "infinite")


def measure(args, network, size, fuse, policy, folder, extra):
    program = os.path.join(folder, "a.bin")
    schedule = os.path.join(folder, "a.json")
    stats = os.path.join(folder, "s.json")
    subprocess.run([args.dlac, os.path.join(args.models, network + ".onnx"), "-q", "-o", program,
                    "--schedule", schedule, "--target", "onsram", "--mem", f"pool={size}",
                    "--optimize", "latency", "--fuse", fuse, "--residency", policy, *extra],
                   check=True)
    subprocess.run([args.dlarun, program, "-q", "--mode", "timed", "--stats-json", stats], check=True)
    with open(schedule) as file:
        plan = json.load(file)
    with open(stats) as file:
        counted = json.load(file)
    for key in ("cycles", "dram_bytes", "dram_bus_bytes"):
        if plan["totals"][key] != counted[key]:
            raise SystemExit(f"{network} {size} {policy}: {key} predicted {plan['totals'][key]}, "
                             f"counted {counted[key]}")
    return counted["cycles"], counted["dram_bytes"], plan["residency"]["bound"], \
        plan["totals"]["energy_pj"]


def main():
    argv = sys.argv[1:]
    extra = []
    if "--" in argv:
        extra = argv[argv.index("--") + 1:]
        argv = argv[:argv.index("--")]
    parser = argparse.ArgumentParser()
    parser.add_argument("dlac")
    parser.add_argument("dlarun")
    parser.add_argument("models")
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--sizes", default="1M,2M,4M,8M")
    parser.add_argument("--fuse", default="on,off")
    args = parser.parse_args(argv)
    print("| network | pool | fused | none | one-step | onsram | best | infinite | bound | gap | "
          "none/best | MB none | MB best | MB bound | energy none/best | order |")
    print("| --- " * 16 + "|")
    gaps = []
    with tempfile.TemporaryDirectory() as folder:
        for network in args.networks:
            for size in args.sizes.split(","):
                for fuse in args.fuse.split(","):
                    cells = {p: measure(args, network, size, fuse, p, folder, extra)
                             for p in POLICIES}
                    cycles = [cells[p][0] for p in POLICIES]
                    none, one_step, onsram, best, infinite = cycles
                    bound = cells["best"][2]
                    holds = none >= one_step >= best >= bound["cycles"] and \
                        none >= onsram >= best >= infinite
                    gaps.append(best / bound["cycles"])
                    mb = [cells["none"][1], cells["best"][1], bound["dram_bytes"]]
                    print(f"| {network} | {size} | {fuse} | "
                          + " | ".join(f"{c:,}" for c in cycles)
                          + f" | {bound['cycles']:,} | {gaps[-1] - 1:.1%} | {none / best:.3f} | "
                          + " | ".join(f"{b / 1e6:.2f}" for b in mb)
                          + f" | {cells['none'][3] / cells['best'][3]:.2f} | "
                          + ("holds" if holds else "VIOLATED") + " |", flush=True)
    mean = math.exp(sum(math.log(g) for g in gaps) / len(gaps))
    print(f"\nGap of best to its bound, geometric mean: {mean - 1:.2%}.")


if __name__ == "__main__":
    main()
