#!/usr/bin/env python3
"""Predicted against counted: every counter of every group, on all networks and targets.

  invariants.py DATA [--bin DIR] [--only NAME...]

The predictions come from schedule.json, which dlac writes before it generates code; the counts
from --stats-json of the run. Writes docs/INVARIANTS.md; exit code 1 if anything differs or an
output does not match.
"""
import sys

from networks import FILES, GENERATED, TARGETS, Bench, markdown, read_json

HEAD = """# Predicted and counted

`bench/invariants.py` wrote this page. For each network and target, `dlac --schedule` said before
code generation what the program would cost; `dlarun --stats-json` counted while it executed. All
integer counters of each group are compared: cycles, payload and bus bytes by operand class and
direction, bytes read and written in each scratchpad, descriptors, MACs, vector operations.
*Differing* counts groups and counters that are not equal. *Matches* says whether the outputs of the
same run match ONNX Runtime's within the network's tolerance.

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


def main():
    bench = Bench(__doc__.split("\n")[0])
    rows, failures = [], 0
    for network in bench.networks(FILES + GENERATED):
        for target in TARGETS:
            files = ("model.bin", "schedule.json", "stats.json")
            program, plan, stats = (bench.file(name) for name in files)
            step = bench.compile(network, program, target, schedule=plan)
            matches = None
            if step.status == "ok":
                step, matches = bench.run(network, program, stats=stats)
            if step.status != "ok":
                print(network.name, target, step.status, *step.reasons)
                failures += 1
                continue
            schedule, counted = read_json(plan), read_json(stats)
            groups, counters, found = differences(schedule, counted)
            for difference in found[:10]:
                print(network.name, target, "group %r: %s predicted %s, counted %s" % difference)
            failures += bool(found) + (not matches[0])
            row = [network.name, target]
            for key in ("cycles", "dram_bytes", "dram_bus_bytes"):
                row += [schedule["totals"][key], counted[key]]
            row += [groups, counters, len({f[0] for f in found}), len(found)]
            row.append("yes" if matches[0] else "NO")
            rows.append(row)
            print(*row, matches[1], flush=True)
    headers = ["network", "target", "cycles predicted", "counted", "DRAM bytes predicted",
               "counted",
               "bus bytes predicted", "counted", "groups", "counters", "differing groups",
               "differing counters", "matches"]
    print(markdown(headers, rows))
    if not bench.options.only or bench.options.out:
        bench.write("INVARIANTS.md", HEAD + markdown(headers, rows) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
