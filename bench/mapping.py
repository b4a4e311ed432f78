#!/usr/bin/env python3
"""Proven optima of the 90 layers: equal to the reference tables or not, sums, and time."""
from layer_tables import LayerBench, total

RUNS = [  # title, options, table, column, what is compared
    ("bytes, S0, separate", ["--space", "s0"], "optimum_s0_separate.csv", "optimum_bytes"),
    ("bytes, S0, pooled", ["--space", "s0", "--target", "edge32-ideal-unified"],
     "optimum_s0_pooled.csv", "optimum_bytes"),
]
for memory, target in (("separate", "edge32-ideal"), ("pooled", "edge32-ideal-unified")):
    for buffers, column in (("single", "optimum_single_bytes"),
                            ("inputs-double", "optimum_inputs_double_bytes"),
                            ("double", "optimum_all_double_bytes")):
        RUNS.append((f"bytes, S1, {memory}, {buffers}",
                     ["--space", "s1", "--target", target, "--buffers", buffers],
                     f"optimum_s1_{memory}.csv", column))


def row(title, rows, column, expected, expected_column):
    equal = sum(int(r[column]) == int(expected[n][expected_column]) for n, r in rows.items())
    slowest = max(rows, key=lambda n: float(rows[n]["ms"]))
    proven = sum(r["proven"] == "yes" for r in rows.values())
    return (f"| {title} | {equal} | {proven} | {total(rows, column, 'resnet18'):,.0f} | "
            f"{total(rows, column, 'bert_layer'):,.0f} | {total(rows, 'ms', 'resnet18'):.3f} | "
            f"{sum(float(r['ms']) for r in rows.values()):.2f} | "
            f"{float(rows[slowest]['ms']):.3f} ({slowest}) |")


def compiler_gap(bench):
    """What the compiler's own search leaves on the same layers and machine."""
    lines = ["", "## The compiler's search", "",
             "Groups of models are mapped by the search of [SCHEDULER.md](SCHEDULER.md), which has everything "
             "in its", "cost and proves nothing. On these layers and this ideal machine, against the proven "
             "optimum of S1", "(which rolls; the compiler's search does not):", "",
             "| objective | sum of the 90 layers | optimum | layers equal or better | mean gap | worst gap | "
             "ms all 90 |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for objective, cell, exact in (
            ("latency", "cycles", bench.map("--optimize", "latency", repeat=1)),
            ("balanced", "bytes", bench.map("--optimize", "balanced", repeat=1)),
            ("traffic", "bytes", bench.map("--optimize", "traffic", "--buffers", "single", repeat=1))):
        found = bench.map("--optimize", objective, "--search", "compiler", repeat=1)
        gaps = {n: int(r[cell]) / int(exact[n][cell]) - 1 for n, r in found.items()}
        worst = max(gaps, key=gaps.get)
        lines.append(f"| {objective} ({cell}) | {total(found, cell):,.0f} | {total(exact, cell):,.0f} | "
                     f"{sum(g <= 0 for g in gaps.values())} | {100 * sum(gaps.values()) / len(gaps):.1f} % | "
                     f"{100 * gaps[worst]:.0f} % ({worst}) | "
                     f"{sum(float(r['ms']) for r in found.values()):,.0f} |")
    return lines


def main():
    bench = LayerBench(__doc__, "MAPPING_TABLES.md")
    lines = ["# Proven optima of 90 layers", "",
             "Written by `bench/mapping.py DATA`. Spaces and rules: [MAPPING.md](MAPPING.md). Machine:",
             f"{bench.machine()}; times are medians of {bench.args.repeat} runs, proof included.", "",
             "| search | equal to the reference, of 90 | proven | ResNet-18 | BERT layer | "
             "ms ResNet-18 (21 layers) | ms all 90 | ms slowest layer |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for title, options, table, column in RUNS:
        rows = bench.map("--optimize", "traffic", *options)
        lines.append(row(title, rows, "bytes", bench.expected(table), column))
    for space, table in (("s0-folds", "optimum_latency_separate.csv"),
                         ("s1", "optimum_latency_s1_separate.csv")):
        reference = bench.expected(table)
        for objective, cell, column in (("latency", "cycles", "least_cycles"),
                                        ("balanced", "bytes", "least_bytes_within_5pct")):
            rows = bench.map("--optimize", objective, "--space", space)
            what = "least cycles" if cell == "cycles" else "least bytes within 5 % of them"
            lines.append(row(f"{what}, {space}", rows, cell, reference, column))
            if objective == "latency" and space == "s1":
                s1 = rows
    lines += ["", "The two rows of a space come from the same search, which finds both; each time is of both.",
              "", "## Every integer size", "",
              "Least cycles with every integer size of every dimension (`--space all`), where S1 is not the "
              "optimum:", "", "| layer | S1 | all | gain |", "| --- | --- | --- | --- |"]
    everything = bench.map("--optimize", "latency", "--space", "all", repeat=1)
    for name, r in everything.items():
        before, after = int(s1[name]["cycles"]), int(r["cycles"])
        if after != before:
            lines.append(f"| {name} | {before:,} | {after:,} | {100 * (1 - after / before):.2f} % |")
    lines += ["", f"All 90 layers take {sum(float(r['ms']) for r in everything.values()) / 1000:.0f} s. For "
              "bytes, all integer sizes of M, C, N and G add nothing (rules 3 to 5)."]
    lines += compiler_gap(bench)
    bench.write(lines)


if __name__ == "__main__":
    main()
