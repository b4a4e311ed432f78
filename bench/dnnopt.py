#!/usr/bin/env python3
"""Ways to search for the least bytes of a layer: points, time and gap, in one run."""
from layer_tables import LayerBench, total

METHODS = ["exact", "exhaustive", "strided", "early-exit", "dnnopt", "random:20", "random:100", "random:1000",
           "random:10000", "random:100000"]


def main():
    bench = LayerBench(__doc__, "DNNOPT.md")
    found = {m: bench.map("--optimize", "traffic", "--space", "s0", "--search", m,
                          repeat=1 if m == "exhaustive" else min(bench.args.repeat, 5))
             for m in METHODS}
    exact = found["exact"]
    for r in exact.values():
        r["points"] = str(3 * int(r["points"]))  # each of its points costs three order classes
    whole = sum(int(r["points"]) for r in found["exhaustive"].values())
    lines = ["# Ways to search, compared", "",
             "Written by `bench/dnnopt.py DATA`: the least bytes of 90 layers on `edge32-ideal` (3 x 64 KiB,",
             "output stationary, int8), space S0 with double buffers. Machine:",
             f"{bench.machine()}.", "",
             "* `exact`: the branch and bound of [MAPPING.md](MAPPING.md), with proof. `exhaustive`: all block",
             "  vectors of S0. `strided`: multiples of 32 in M and C, the other sizes even, R, S and N whole.",
             "  `early-exit`: even sizes, each loop of the nest G M C E F ends when a larger block does not need",
             "  fewer bytes. `dnnopt`: both. `random:N`: N block vectors drawn uniformly.",
             "* A point is a block vector in one of the three order classes. The denominator of *pruned* is all",
             f"  {whole:,} points of S0, and its sum is over all 90 layers.",
             "* Gaps are against the optimum of S0, over the layers where the method found a mapping that fits.",
             "",
             "| method | points | pruned | layers above the optimum | mean gap | worst gap | found none | "
             "ResNet-18 bytes | ms all 90 | time against exact |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    exact_ms = sum(float(r["ms"]) for r in exact.values())
    for method in METHODS:
        rows = {n: r for n, r in found[method].items() if r["bytes"]}
        gaps = {n: int(r["bytes"]) / int(exact[n]["bytes"]) - 1 for n, r in rows.items()}
        points = sum(int(r["points"]) for r in rows.values())
        ms = sum(float(r["ms"]) for r in rows.values())
        none = len(found[method]) - len(rows)
        r18 = {n: r for n, r in rows.items() if r["set"] == "resnet18"}
        missing = any(r["set"] == "resnet18" and not r["bytes"] for r in found[method].values())
        sum18 = "none for a layer" if missing else f"{total(r18, 'bytes'):,.0f}"
        lines.append(
            f"| {method} | {points:,} | {100 * (1 - points / whole):.4f} % | "
            f"{sum(g > 0 for g in gaps.values())} | {100 * sum(gaps.values()) / len(gaps):.2f} % | "
            f"{100 * max(gaps.values()):.1f} % | {none} | {sum18} | {ms:.2f} | {ms / exact_ms:.1f} |")
    lines += ["", "Random sampling that takes about as long as `exact` is the row whose last cell is "
              "nearest to 1; setting", "up its tables is part of its time. Only `exact` and `exhaustive` "
              "prove their result."]
    bench.write(lines)


if __name__ == "__main__":
    main()
