"""The networks that the scripts of this folder measure: model, input, reference, tolerance of each.

Needs the folder of shared data: its tools make inputs, generated networks and ONNX Runtime's
outputs, and judge what comes out of the emulator.
"""
import argparse
import fnmatch
import hashlib
import json
import os
import platform
import shutil
import sys

FILES = ["blazeface_front", "ppocr_v2_cls", "ultraface_rfb_320", "yunet_s_320", "mnist_cntk"]
GENERATED = ["resnet18", "resnet18_bn", "mobilenet_v2"]
TARGETS = ["edge32", "edge32-unified", "edge32-ideal", "edge32-ideal-unified"]
# All bundled targets that compute in floating point.
FLOAT_TARGETS = TARGETS + ["edge32-ws", "edge32-is", "onsram", "tpu256", "meta-df"]
# Of the generated networks, those that compute in floating point, without loops and states.
FLOAT_GENERATED = ["resnet*", "vgg*", "alexnet*", "squeezenet*", "mobilenet*", "efficientnet*",
                   "googlenet", "densenet*", "unet*", "yolov8n_*", "deeplab*", "espcn*", "style*",
                   "convnext*", "vit_*", "swin*", "mlp_mixer*", "bert_*", "kws_conv1d", "tiny_*"]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Network:
    """One network; `judge(outputs)` says whether they match ONNX Runtime's."""

    def __init__(self, name, path, inputs, reference, judge, dims=None, shapes=None):
        self.name, self.path, self.dims, self.shapes = name, path, dims, shapes
        self.inputs, self._reference, self._judge = inputs, reference, judge

    def judge(self, outputs):
        ok, text = self._judge(outputs, self._reference())[:2]
        return ok, text


class Bench:
    """Arguments that all scripts have, the tools, the two commands and a folder for files."""

    def __init__(self, description, options=()):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("data", help="the folder of shared data")
        parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
        parser.add_argument("--work", default=os.path.join(ROOT, "build", "bench"),
                            help="folder for generated networks, programs and outputs")
        parser.add_argument("--only", nargs="+", metavar="NAME", help="these networks")
        parser.add_argument("--out", metavar="FILE", help="write the page here instead of to docs/")
        parser.add_argument("--timeout", type=float, default=600, help="seconds for one command")
        for args, kwargs in options:
            parser.add_argument(*args, **kwargs)
        self.options = parser.parse_args()
        sys.path.insert(0, os.path.join(self.options.data, "tools"))
        import dla_common
        self.tools = dla_common
        self.product = dla_common.Product(self.options.bin, self.options.timeout)
        if self.product.missing():
            missing = " and ".join(self.product.missing())
            parser.error("%s not found in %s" % (missing, self.options.bin))
        os.makedirs(self.options.work, exist_ok=True)
        self._cells = None

    def networks(self, names):
        """The networks of these names (and of --only), in this order, one at a time."""
        from nets import catalog
        for name in names:
            if not self.options.only or name in self.options.only:
                yield self._generated(name) if name in catalog.NETS else self._from_file(name)

    def float_networks(self):
        """The names of all networks that compute in floating point, files before generated ones."""
        import fetch_models
        from nets import catalog
        files = fetch_models.select(fetch_models.load_manifest(self._manifest()), kinds=["float-conv"])
        is_float = lambda net: net["quant"] is None and any(
            fnmatch.fnmatch(net["name"], pattern) for pattern in FLOAT_GENERATED)
        return ([entry["name"] for entry in files] +
                [net["name"] for net in catalog.NETS.values() if is_float(net)])

    def _manifest(self):
        return os.path.join(self.options.data, "models", "manifest.json")

    def _from_file(self, name):
        import fetch_models
        from make_inputs import make_inputs
        manifest = self._manifest()
        entry = fetch_models.select(fetch_models.load_manifest(manifest), [name])[0]
        path = fetch_models.model_path(entry, manifest)
        if path is None:
            sys.exit("%s is not here: run fetch_models.py of the shared tools" % name)
        inputs = make_inputs(entry, os.path.dirname(manifest))
        return Network(name, path, inputs,
                       lambda: self.tools.ort_reference(path, inputs, opt_level="disabled").outputs,
                       lambda outputs, expected: self.tools.compare_all(
                           outputs, expected, entry["tolerance"],
                           entry.get("tolerance_per_output")),
                       entry.get("dims"), entry.get("shapes"))

    def _generated(self, name):
        import gen_models
        import run_generated
        from nets import catalog
        path = os.path.join(self.options.work, name + ".onnx")
        if not os.path.exists(path):
            gen_models.generate(name, path + ".part")
            os.replace(path + ".part", path)
        inputs = catalog.NETS[name]["feeds"]("0")
        described = gen_models.load_manifest()["models"].get(name, {}).get("inputs", [])
        symbolic = any(isinstance(size, str) for given in described for size in given["shape"])
        return Network(name, path, inputs, lambda: self.tools.ort_reference(path, inputs).outputs,
                       lambda outputs, expected: run_generated.judge(
                           outputs, {"ORT": expected}, catalog.NETS[name]["tol"]),
                       shapes={k: v.shape for k, v in inputs.items()} if symbolic else None)

    def file(self, name):
        return os.path.join(self.options.work, name)

    def compile(self, network, program, target, mem=None, schedule=None, extra=()):
        return self.product.compile(network.path, program, target, mem, network.dims,
                                    network.shapes, schedule, extra=["--quiet", *extra])

    def measure(self, network, target, mem=None, extra=()):
        """What the emulator counts of the network compiled with these options, in timed mode, and
        what the schedule says of it. Ends the script if a count is not as predicted. None where
        dlac refuses."""
        return self.remembered([network.name, target, mem or {}, list(extra)],
                               lambda: self._measure(network, target, mem, extra))

    def remembered(self, key, compute):
        """compute(), or what this very build gave for the key before: it is kept in the work folder,
        so that a script can be stopped and run again, or run for parts in several processes."""
        key = json.dumps(key, sort_keys=True)
        if self._cells is None:
            self._read_cells()
        if key not in self._cells:
            self._cells[key] = compute()
            with open(self._cells_path, "a") as f:
                f.write(json.dumps([key, self._cells[key]]) + "\n")
        return self._cells[key]

    def _read_cells(self):
        """Measurements of this very build, one a line."""
        build = hashlib.sha256()
        for tool in (self.product.dlac, self.product.dlarun):
            with open(tool, "rb") as f:
                build.update(f.read())
        name = build.hexdigest()[:16]
        self._cells_path = self.file("cells_%s.jsonl" % name)
        self._mappings = self.file("mappings_%s" % name)  # for --cache
        self._cells = {}
        if os.path.exists(self._cells_path):
            with open(self._cells_path) as f:
                self._cells = dict(json.loads(line) for line in f)

    def _measure(self, network, target, mem, extra):
        # Names of this process: other scripts may use the same folder.
        names = ("cell%d.bin", "cell%d.json", "stats%d.json")
        program, plan, stats = (self.file(n % os.getpid()) for n in names)
        where = "%s on %s %s %s: " % (network.name, target, mem, " ".join(extra))
        # A cache changes no program; the policies of a network ask much the same.
        extra = [*extra, "--cache", self._mappings]
        step = self.compile(network, program, target, mem, plan, extra)
        if step.status == "no-fit":
            return None
        if step.status != "ok":
            sys.exit(where + "dlac: " + " ".join(step.reasons))
        step, _ = self.run(network, program, "timed", stats)
        if step.status != "ok":
            sys.exit(where + "dlarun: " + " ".join(step.reasons))
        schedule, counted = read_json(plan), read_json(stats)
        if not counted["as_predicted"] or schedule["totals"]["cycles"] != counted["cycles"]:
            sys.exit(where + "counters differ from their predictions")
        for path in (program, plan, stats):
            os.remove(path)
        return {"cycles": counted["cycles"], "dram_bytes": counted["dram_bytes"],
                "energy_pj": schedule["totals"]["energy_pj"],
                "bound": schedule["residency"]["bound"],
                "given_up": schedule["residency"]["given_up"], "engines": counted["engines"],
                "bus_bytes": counted["dram_bus_bytes"], "utilisation": counted["utilisation"]}

    def outputs(self):
        """Where the outputs of the last run with values are."""
        return self.file("outputs%d.npz" % os.getpid())

    def run(self, network, program, mode="both", stats=None, extra=()):
        """The step, and whether the outputs match with a text (None in timed mode)."""
        inputs, outputs = self.file("inputs%d.npz" % os.getpid()), self.outputs()
        values = mode != "timed"
        if values:
            self.tools.write_npz(inputs, network.inputs)
        step = self.product.run(program, inputs=inputs if values else None,
                                outputs=outputs if values else None, mode=mode, stats=stats,
                                extra=extra)
        if step.status != "ok" or not values:
            return step, None
        return step, network.judge(self.tools.read_npz(outputs))

    def write(self, page, text):
        path = self.options.out or os.path.join(ROOT, "docs", page)
        with open(path, "w") as f:
            f.write(text)
        print("written to", path)


    def write_part(self, page, name, text):
        """Replaces what stands between `<!-- NAME -->` and `<!-- end of NAME -->` in the page; with
        --out in a copy of the page there; with --only alone the text is printed."""
        if self.options.only and not self.options.out:
            print(text)
            return
        path = self.options.out or os.path.join(ROOT, "docs", page)
        if not os.path.exists(path):
            shutil.copyfile(os.path.join(ROOT, "docs", page), path)
        with open(path) as f:
            whole = f.read()
        first, last = "<!-- %s -->\n" % name, "<!-- end of %s -->\n" % name
        begin, end = whole.index(first) + len(first), whole.index(last)
        with open(path, "w") as f:
            f.write(whole[:begin] + "\n" + text + "\n\n" + whole[end:])
        print("written to", path)


def read_json(path):
    with open(path) as f:
        return json.load(f)


def markdown(headers, rows):
    """A table; numbers get thousands separators and stand to the right."""
    text = lambda v: format(v, ",") if isinstance(v, int) and not isinstance(v, bool) else str(v)
    numeric = [all(isinstance(r[c], (int, float)) for r in rows) for c in range(len(headers))]
    lines = ["| " + " | ".join(headers) + " |",
             "| " + " | ".join("---:" if n else "---" for n in numeric) + " |"]
    lines += ["| " + " | ".join(text(v) for v in row) + " |" for row in rows]
    return "\n".join(lines)


def processor():
    """The processor's name, as the kernel gives it."""
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
