#!/usr/bin/env python3
"""Reuse of mappings found for other networks against a search from scratch.

  reuse.py DLAC MODELS_DIR [--target NAME] [--out FILE]

For each network: one mapping by rule (--search none), mappings of a donor network adapted to its
sizes (--search reuse), of all other networks, and the exact search; with nothing resident (layers
alone, as the published figures) and with residency as it is by default. Writes docs/REUSE.md.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Network and donor; the pairs of Gibson's table 6.3 where both are there, else one of its family.
DONORS = {"resnet18": "resnet50", "resnet50": "googlenet", "alexnet": "vgg16", "vgg16": "googlenet",
          "mobilenet_v2": "efficientnet_b0", "efficientnet_b0": "mobilenet_v2",
          "googlenet": "resnet50", "squeezenet1_1": "googlenet", "densenet121": "resnet50",
          "unet128": "vgg16", "yolov8n_320": "resnet50"}
PUBLISHED = {"resnet18": 49.2, "resnet50": 40.65, "alexnet": 71.54, "vgg16": 17.69,
             "mobilenet_v2": 29.16, "efficientnet_b0": 80.14, "googlenet": 48.0}
HEAD = """# Mappings of other networks

`bench/reuse.py` wrote this page: `--target %s --optimize latency`, nothing resident. What a cache
(`--cache DIR`) knows of one network is used for another without a search (`--search reuse`): mappings
of the same class (operators, types, windows, strides), the nearest sizes first, in three readings of their
block sizes, halved where they do not fit; the best by the cost model is taken, the default included.

* *default*: one mapping by rule for each group (everything whole, halved until it fits), no search.
* *donor*: from the network in brackets; *all others*: from all other networks of the table; *exact*: search
  from scratch, proven where its budget suffices.
* *Speed-up* over default. *Share*: ratio of speed-ups, reuse over exact; *share of gains*: (speed-up - 1)
  over (speed-up - 1). Published share: Gibson, table 6.4, a CPU and the Ansor tuner; mean of eleven networks
  49.1 %% at 2.1 %% of the search.
* *Tried*: adapted mappings, and how many of them did not fit as they were (and were repaired or dropped).
  *Points*: bound evaluations of the exact search, equal shapes counted once; *to reach*: those of
  the search with the least budget of 100, 1,000, 10,000 or 100,000 a group that is as good as reuse of all
  others (where the budget ends, the quick search's evaluations are among them). The cost of a point differs: an
  adapted mapping is always evaluated whole, most points of the search are bounds of boxes. Seconds of the
  whole compilation, file included.

"""


def compile_one(dlac, model, target, options):
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "s.json")
        begin = time.perf_counter()
        run = subprocess.run([dlac, model, "-v", "-o", os.path.join(work, "m.bin"), "--schedule",
                              path, "--target", target, "--optimize", "latency", "--residency",
                              "none"] + options, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        with open(path, encoding="utf-8") as file:
            schedule = json.load(file)
    numbers = re.search(r"cache: (\d+) mappings taken, (\d+) searched, (\d+) of other sizes tried "
                        r"\((\d+)", run.stderr)
    shapes = {json.dumps([g["nest"]["dimensions"], g["nest"].get("program"), g["op"]]): g
              for g in schedule["groups"]}
    points = sum(g["search"]["points"] for g in shapes.values())
    return {"cycles": schedule["totals"]["cycles"], "seconds": seconds, "points": points,
            "tried": int(numbers.group(3)) if numbers else 0,
            "illegal": int(numbers.group(4)) if numbers else 0}


def first_reach(run, cycles):
    """Points of the search with the least budget a group that is as good, of 100, 1,000 and so on."""
    for exponent in range(2, 6):
        found = run("--search-budget", str(10 ** exponent))
        if found["cycles"] <= cycles:
            return "%d (budget %d)" % (found["points"], 10 ** exponent)
    return "none of the budgets"


def gather(caches, names, to):
    os.makedirs(to)
    for name in names:
        for file in os.listdir(os.path.join(caches, name)):
            shutil.copy(os.path.join(caches, name, file), to)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dlac")
    parser.add_argument("models")
    parser.add_argument("--target", default="edge32")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "REUSE.md"))
    options = parser.parse_args()
    names = [n for n in DONORS if os.path.exists(os.path.join(options.models, n + ".onnx"))]
    rows, shares, gains, points, tried = [], [], [], 0, 0
    with tempfile.TemporaryDirectory() as work:
        model = lambda name: os.path.join(options.models, name + ".onnx")
        run = lambda name, *more: compile_one(options.dlac, model(name), options.target, list(more))
        exact = {n: run(n, "--cache", os.path.join(work, "caches", n)) for n in names}
        for name in names:
            default = run(name, "--search", "none")
            donor = DONORS[name]
            one = run(name, "--search", "reuse", "--cache", os.path.join(work, "caches", donor))
            pool = os.path.join(work, "pool_" + name)
            gather(os.path.join(work, "caches"), [n for n in names if n != name], pool)
            every = run(name, "--search", "reuse", "--cache", pool)
            again = run(name, "--cache", os.path.join(work, "caches", name))
            reaches = first_reach(lambda *more: run(name, *more), every["cycles"])
            up = lambda r: default["cycles"] / r["cycles"]
            best = up(exact[name])
            shares.append((up(one) / best, up(every) / best))
            gains.append(((up(one) - 1) / (best - 1), (up(every) - 1) / (best - 1)))
            points += exact[name]["points"]
            tried += one["tried"]
            rows.append("| %s (%s) | %d | %d | %d | %d | %.2f | %.1f %%, %.1f %% | %.1f %%, %.1f %% | "
                        "%s | %d, %d | %d, %d | %d | %s | %.2f, %.2f, %.2f, %.2f |" % (
                            name, donor, default["cycles"], one["cycles"], every["cycles"],
                            exact[name]["cycles"], best, 100 * shares[-1][0], 100 * shares[-1][1],
                            100 * gains[-1][0], 100 * gains[-1][1],
                            "%.1f %%" % PUBLISHED[name] if name in PUBLISHED else "",
                            one["tried"], one["illegal"], every["tried"], every["illegal"],
                            exact[name]["points"], reaches, default["seconds"], one["seconds"],
                            exact[name]["seconds"], again["seconds"]))
            print(rows[-1], flush=True)
    mean = lambda values, k: 100 * sum(v[k] for v in values) / len(values)
    text = HEAD % options.target
    text += ("| network (donor) | default cycles | donor | all others | exact | exact speed-up | share: "
             "donor, all | share of gains: donor, all | published share | tried, misfits: donor | "
             "tried, misfits: all | points of exact | of these to reach all others | seconds: default, donor, exact, exact with its "
             "own cache |\n|" + " --- |" * 14 + "\n" + "\n".join(rows) + "\n\n")
    text += ("Mean share %.1f %% from the donor, %.1f %% from all others; of gains %.1f %% and %.1f %%. "
             "Mappings tried from donors are %.2f %% of the points of the exact search.\n" % (
                 mean(shares, 0), mean(shares, 1), mean(gains, 0), mean(gains, 1),
                 100 * tried / points))
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(text)
    print("written to", options.out)


if __name__ == "__main__":
    main()
