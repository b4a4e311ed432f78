#!/usr/bin/env python3
"""Seconds and peak memory of dlac and of dlarun (functional and timed) on one core.

  compile_emulate.py DATA [--bin DIR] [--runs N] [--only NAME...]

Median of N runs, all on one core. Writes docs/PERFORMANCE.md with the processor's name. Goals: for
ResNet-18 3 s to compile, 1.5 s to emulate, and 500 MB of memory each; for ResNet-50 5 s, 5 s and 1 GB;
VGG16 compiles in less memory than 1.5 times its weights.
"""
import os
import statistics
import sys

from networks import Bench, markdown, processor

NETWORKS = ["resnet18", "resnet50", "vgg16", "mobilenet_v2", "ultraface_rfb_320", "blazeface_front"]

HEAD = """# How long compiling and emulating take

`bench/compile_emulate.py` wrote this page, on one core of: %s. %s
Median of %d runs (the least in brackets); a run is one process, reading and writing its files
included. CPU seconds are the same run's user and system time: where they are less than the seconds,
something else had the core. `dlarun` runs `--mode both`: output values, counters and cycles in one
pass. The target is `edge32`; all networks are f32. Goals: ResNet-18 3 s to compile, 1.5 s to emulate,
500 MB each; ResNet-50 5 s, 5 s, 1 GB each; VGG16 (a file of 553 MB, nearly all weights) compiles within
1.5 times that.

"""


def measure(bench, network, runs):
    """Two rows: dlac and dlarun."""
    program = bench.file("timed.bin")
    steps = {"dlac": [], "dlarun": []}
    for _ in range(runs):
        step = bench.compile(network, program, "edge32")
        if step.status != "ok":
            sys.exit("%s: dlac: %s %s" % (network.name, step.status, " ".join(step.reasons)))
        steps["dlac"].append(step.run)
        step, matches = bench.run(network, program, stats=bench.file("timed.json"))
        if step.status != "ok" or not matches[0]:
            sys.exit("%s: dlarun: %s %s" % (network.name, step.status, matches or step.reasons))
        steps["dlarun"].append(step.run)
    rows = []
    for tool, of_tool in steps.items():
        seconds = [run.seconds for run in of_tool]
        cpu = [run.cpu_seconds for run in of_tool]
        rows.append([network.name, tool, "%.2f (%.2f)" % (statistics.median(seconds), min(seconds)),
                     "%.2f (%.2f)" % (statistics.median(cpu), min(cpu)),
                     "%.0f MB" % (max(run.peak_rss for run in of_tool) / 1e6),
                     "%.0f MB" % (os.path.getsize(network.path) / 1e6)])
        print(*rows[-1], flush=True)
    return rows


def main():
    bench = Bench(__doc__.split("\n")[0], [(("--runs",), {"type": int, "default": 5}),
                                          (("--core",), {"type": int, "default": 0})])
    os.sched_setaffinity(0, {bench.options.core})
    load = os.getloadavg()[0]
    rows = []
    for network in bench.networks(NETWORKS):
        rows += measure(bench, network, bench.options.runs)
    table = markdown(["network", "command", "seconds", "CPU seconds", "peak memory", "model file"], rows)
    print(table)
    busy = ("The machine was busy with other work (load average %.1f): compare the CPU seconds." %
            load if load > 0.5 else "The machine was otherwise idle.")
    if not bench.options.only or bench.options.out:
        bench.write("PERFORMANCE.md", HEAD % (processor(), busy, bench.options.runs) + table + "\n")


if __name__ == "__main__":
    sys.exit(main())
