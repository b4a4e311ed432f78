#!/usr/bin/env python3
"""Predicted against counted: every counter of every group, on all networks and targets.

  invariants.py DATA [--bin DIR] [--only NAME...] [--target NAME...] [--values]

The predictions come from schedule.json, which dlac writes before it generates code; the counts
from --stats-json of the run. Writes docs/INVARIANTS.md; exit code 1 if anything differs, a bound is
broken, or something does not compile or run. --values also computes the outputs and compares them
with ONNX Runtime's. What a build gave is remembered in the work folder: several processes may each
do some networks (--only), and the last one writes the page.
"""
import os
import sys

from networks import FLOAT_TARGETS, Bench, markdown, read_json

HEAD = """# Predicted and counted

`bench/invariants.py` wrote this page. For each network and target, `dlac --schedule` said before
code generation what the program would cost; `dlarun --stats-json` counted while it executed. All
integer counters of each group are compared: cycles, payload and bus bytes by operand class and
direction, bytes read and written in each scratchpad, descriptors, MACs, vector operations.
*Compared* and *differing* count these counters over all targets. *Bounds*: how often
compulsory <= lower bound <= chosen was compared, of each group (DRAM bytes, what the objective
minimises) and of the program (DRAM bytes, cycles), and how often it did not hold. Then come the
cycles on each target, predicted and counted alike.

"""


def leaves(tree, path=""):
    """All integers of a JSON object, as (path, value)."""
    for key, value in tree.items():
        here = path + "." + key if path else key
        if isinstance(value, dict):
            yield from leaves(value, here)
        elif isinstance(value, int):
            yield here, value


def at(tree, path):
    for key in path.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def differences(schedule, stats):
    """Groups and counters compared, and (group, counter, predicted, counted) where they differ."""
    found, counters = [], 0
    planned, counted = schedule["groups"], stats["groups"]
    if len(planned) != len(counted):
        found.append(("", "number of groups", len(planned), len(counted)))
    for plan, count in zip(planned, counted):
        for path, value in leaves(plan["predicted"]):
            counters += 1
            if at(count, path) != value:
                found.append((plan["name"], path, value, at(count, path)))
    return len(planned), counters, found


def bounds_broken(schedule):
    """How many pairs of smaller and larger of compulsory <= bound <= chosen were compared, and the
    (group, what, smaller, larger) that are the wrong way round. Bounds of `balanced` and `traffic`
    are bus bytes, which no group has fewer of than compulsory bytes; other objectives' are not
    compared with these."""
    pairs = []
    in_bytes = schedule["optimize"] in ("balanced", "traffic")
    for group in schedule["groups"]:
        name, compulsory, search = group["name"], group["compulsory_bytes"], group["search"]
        predicted = group["predicted"]
        payload, bus = predicted["dram_bytes"], predicted["dram_bus_bytes"]
        pairs.append((name, "compulsory, chosen bytes", compulsory, payload))
        pairs.append((name, "payload, bus bytes", payload, bus))
        compute = group["compute_cycles"]
        pairs.append((name, "compute, chosen cycles", compute, predicted["cycles"]))
        if "bound" in search:
            pairs.append((name, "bound, chosen value", search["bound"], search["value"]))
            if in_bytes:
                pairs.append((name, "compulsory bytes, bound", compulsory, search["bound"]))
    totals, bound = schedule["totals"], schedule["residency"]["bound"]
    pairs += [("", "compulsory bytes, bound", bound["compulsory_bytes"], bound["dram_bytes"]),
              ("", "bound, chosen bytes", bound["dram_bytes"], totals["dram_bytes"]),
              ("", "bound, chosen cycles", bound["cycles"], totals["cycles"]),
              ("", "bound, cycles without overlap", bound["alone_cycles"],
               sum(group["alone_cycles"] for group in schedule["groups"]))]
    # Sums of fractions: what is above by less than a thousandth is rounding.
    return len(pairs), [pair for pair in pairs if pair[2] > pair[3] + 1e-3]


def check(bench, network, target):
    """Cycles, counters compared and differing, bounds compared and broken; None where the network
    did not run."""
    names = ("model%d.bin", "schedule%d.json", "stats%d.json")
    program, plan, stats = (bench.file(name % os.getpid()) for name in names)
    step = bench.compile(network, program, target, schedule=plan)
    matches = None
    if step.status == "ok":
        mode = "both" if bench.options.values else "timed"
        step, matches = bench.run(network, program, mode=mode, stats=stats)
    if step.status != "ok":
        print(network.name, target, step.status, *step.reasons, flush=True)
        return None
    schedule, counted = read_json(plan), read_json(stats)
    groups, counters, found = differences(schedule, counted)
    for key in ("cycles", "dram_bytes", "dram_bus_bytes"):
        counters += 1
        if schedule["totals"][key] != counted[key]:
            found.append(("", key, schedule["totals"][key], counted[key]))
    if matches and not matches[0]:
        found.append(("", "outputs: " + matches[1], "", ""))
    for difference in found[:10]:
        print(network.name, target, "group %r: %s predicted %s, counted %s" % difference)
    print(network.name, target, counted["cycles"], groups, counters, len(found),
          matches[1] if matches else "", flush=True)
    bounds, broken = bounds_broken(schedule)
    for pair in broken[:10]:
        print(network.name, target, "group %r: %s: %s is above %s" % pair, flush=True)
    for path in (program, plan, stats):
        os.remove(path)
    return counted["cycles"], counters, len(found), bounds, len(broken)


def main():
    bench = Bench(__doc__.split("\n")[0], [
        (("--target",), {"nargs": "+", "default": FLOAT_TARGETS}),
        (("--values",), {"action": "store_true"})])
    targets = bench.options.target
    rows, failures = [], 0
    for network in bench.networks(bench.float_networks()):
        results = [bench.remembered(["invariants", network.name, target, bench.options.values],
                                    lambda: check(bench, network, target)) for target in targets]
        failures += sum(r is None or r[2] + r[4] != 0 for r in results)
        ran = [r for r in results if r is not None]
        rows.append([network.name] + [sum(r[i] for r in ran) for i in range(1, 5)] +
                    ["did not run" if r is None else r[0] for r in results])
    rows.append(["all"] + [sum(r[i] for r in rows) for i in range(1, 5)] + [""] * len(targets))
    table = markdown(["network", "compared", "differing", "bounds", "broken"] + targets, rows)
    print(table)
    if not bench.options.only or bench.options.out:
        count = "%d networks on %d targets.\n\n" % (len(rows) - 1, len(targets))
        bench.write("INVARIANTS.md", HEAD + count + table + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
