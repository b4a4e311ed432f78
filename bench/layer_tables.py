"""What mapping.py and dnnopt.py share: arguments, runs of `dlac map`, sums over a set of layers."""
import argparse
import csv
import io
import os
import platform
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class LayerBench:
    def __init__(self, description, page):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("data", help="the folder of shared data")
        parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
        parser.add_argument("--repeat", type=int, default=21, help="runs; times are medians")
        parser.add_argument("--out", default=os.path.join(ROOT, "docs", page),
                            help="the page to write")
        self.args = parser.parse_args()
        self.layers = os.path.join(self.args.data, "mapping", "layers.txt")

    def map(self, *options, repeat=None, layers=None):
        """Rows of `dlac map`, by layer, in order."""
        command = [os.path.join(self.args.bin, "dlac"), "map", layers or self.layers,
                   "--repeat", str(repeat or self.args.repeat), *options]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return {r["layer"]: r for r in csv.DictReader(io.StringIO(done.stdout))}

    def expected(self, name):
        """A table of the reference program, by layer."""
        with open(os.path.join(self.args.data, "mapping", name)) as file:
            return {r["layer"]: r for r in csv.DictReader(file)}

    def write(self, lines):
        text = "\n".join(lines) + "\n"
        with open(self.args.out, "w") as file:
            file.write(text)
        print(text)

    @staticmethod
    def machine():
        with open("/proc/cpuinfo") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        return f"{names[0] if names else platform.processor()}, one core, shared with other work"


def total(rows, column, only=None):
    """Sum over layers with their counts; a set's name in `only` restricts it."""
    return sum(float(r[column]) * int(r["count"]) for r in rows.values()
               if only is None or r["set"] == only)
