#!/usr/bin/env python3
"""Correct outputs with scratchpads of many sizes, and the sizes that a refusal names.

  memory_sweep.py DATA [--bin DIR] [--only NAME...] [--most-steps N]

Every memory of edge32, and the pool of edge32-unified, at 16 KiB to 8 MiB: compiled, run, compared
with ONNX Runtime. Then scratchpads too small for anything: dlac must exit 5, each size that its
message names must do, and one alignment less must not. Programs of more than N steps are then
compiled only (dlac verifies them). Writes docs/MEMORY.md; exit code 1 if anything is not as it
should be.
"""
import re
import sys

from networks import FILES, GENERATED, Bench, markdown, read_json

MEMORIES = {"edge32": ["input", "weight", "output"], "edge32-unified": ["pool"]}
SIZES = ["16K", "32K", "64K", "256K", "1M", "8M"]
TOO_SMALL = [48, 32, 16]  # bytes: the first at which nothing fits is taken
ALIGN = 16  # of both targets

HEAD = """# Scratchpads of other sizes

`bench/memory_sweep.py` wrote this page.

## From 16 KiB to 8 MiB

Every memory of `edge32` (and the one of `edge32-unified`) has the size that the column names. An
entry has cycles and DRAM bytes of a run whose outputs matched ONNX Runtime's and whose counters
were as predicted.

"""
REFUSED = """
## Too small

All scratchpads (*all*), or one of them with the others as they are, at %s bytes, whichever
first is too small: dlac exits with 5 and names, for each scratchpad, the smallest size that would
do alone, and the least common scale. *Works*: compiled with exactly these sizes, and run and
compared where the program has at most %s steps. *Least*: with %d bytes less in the memories that
were changed, dlac still refuses.

"""


class Sweep:
    def __init__(self):
        self.bench = Bench(__doc__.split("\n")[0],
                           [(("--most-steps",), {"type": int, "default": 2000000})])
        self.failures = 0

    def fail(self, *what):
        print("FAILED:", *what, flush=True)
        self.failures += 1

    def try_sizes(self, network, target, mem, always_run=True):
        """What came of compiling and running ('ok...' if it worked), and the schedule."""
        files = ("model.bin", "schedule.json", "stats.json")
        program, plan, stats = (self.bench.file(name) for name in files)
        step = self.bench.compile(network, program, target, mem, plan)
        if step.status != "ok":
            return "%s: %s" % (step.status, " ".join(step.reasons)), None
        schedule = read_json(plan)
        steps = sum(group["mapping"]["steps"] for group in schedule["groups"])
        if steps > self.bench.options.most_steps and not always_run:
            return "ok, compiled only (%s steps)" % format(steps, ","), schedule
        step, matches = self.bench.run(network, program, stats=stats)
        if step.status != "ok":
            return "%s: %s" % (step.status, " ".join(step.reasons)), schedule
        if not matches[0]:
            return "differs: " + matches[1], schedule
        if not read_json(stats)["as_predicted"]:
            return "counters differ from their predictions", schedule
        return "ok", schedule

    def sizes(self, network):
        rows = []
        for target, memories in MEMORIES.items():
            row = [network.name, target]
            for size in SIZES:
                text, schedule = self.try_sizes(network, target, {m: size for m in memories})
                print(network.name, target, size, text, flush=True)
                if text != "ok":
                    self.fail(network.name, target, size, text)
                    row.append(text.split(":")[0])
                    continue
                totals = schedule["totals"]
                row.append("{:,}<br>{:,}".format(totals["cycles"], totals["dram_bytes"]))
            rows.append(row)
        return rows

    def refusals(self, network):
        rows = []
        for target, memories in MEMORIES.items():
            cases = [("all", memories)] + [(m, [m]) for m in memories if len(memories) > 1]
            for name, small in cases:
                for size in TOO_SMALL:
                    given = {m: size for m in small}
                    step = self.bench.compile(network, self.bench.file("model.bin"), target, given)
                    if step.run.rc != 0:
                        break
                label = "%s=%d" % (name, size)
                if step.run.rc == 5:
                    rows += self.named(network, target, label, given, " ".join(step.reasons))
                elif step.run.rc == 0:
                    text, _ = self.try_sizes(network, target, given, always_run=False)
                    rows.append([network.name, target, label, "fits", text, ""])
                    if not text.startswith("ok"):
                        self.fail(network.name, target, given, text)
                else:
                    self.fail(network.name, target, given, "exit", step.run.rc, *step.reasons)
        return rows

    def named(self, network, target, name, given, message):
        """A row for each set of sizes that the message names."""
        alone, _, scaled = message.partition("all scratchpads times")
        sizes = lambda text: re.findall(r"--mem ([^ =]+)=(\d+)", text)
        choices = [{m: int(b)} for m, b in sizes(alone)]
        if sizes(scaled):
            choices.append({m: int(b) for m, b in sizes(scaled)})
        if not choices:
            self.fail(network.name, target, given, "no size is named:", message)
        rows = []
        for choice in choices:
            text, _ = self.try_sizes(network, target, {**given, **choice}, always_run=False)
            less = {m: b - ALIGN for m, b in choice.items()}
            least = self.bench.compile(network, self.bench.file("model.bin"), target,
                                       {**given, **less}).run.rc == 5
            print(network.name, target, name, choice, text, "least:", least, flush=True)
            if not text.startswith("ok"):
                self.fail(network.name, target, {**given, **choice}, text)
            if not least:
                self.fail(network.name, target, {**given, **less}, "also fits")
            named = ", ".join("%s=%s" % (m, format(b, ",")) for m, b in choice.items())
            rows.append([network.name, target, name, named, text, "yes" if least else "no"])
        return rows

    def main(self):
        correct, refused = [], []
        for network in self.bench.networks(FILES + GENERATED):
            correct += self.sizes(network)
            refused += self.refusals(network)
        sizes = ", ".join(map(str, TOO_SMALL))
        page = HEAD + markdown(["network", "target"] + SIZES, correct) + "\n"
        page += REFUSED % (sizes, format(self.bench.options.most_steps, ","), ALIGN)
        headers = ["network", "target", "too small", "sizes named", "works", "least"]
        page += markdown(headers, refused)
        page += "\n"
        if not self.bench.options.only or self.bench.options.out:
            self.bench.write("MEMORY.md", page)
        print("%d failures" % self.failures)
        return 1 if self.failures else 0


if __name__ == "__main__":
    sys.exit(Sweep().main())
