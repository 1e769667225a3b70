"""`tpmodel measure` and `tpmodel fit`: their files and words."""

import json
import os
import re
import shlex
import sys
from datetime import date
from pathlib import Path

from ... import inputs
from . import SCHEMA

LARGEST_FILE = 20_000_000
ACCEPTED = "the JSON of tpmodel measure, the output of nccl-tests' all_reduce_perf, or vLLM's log of a start"
NEEDS = ("measure needs PyTorch and an NVIDIA GPU; without them, give `tpmodel fit` the output of nccl-tests or vLLM's "
         "log")


def say(line):
    """Print progress."""
    print(line, file=sys.stderr, flush=True)


def kept(environment):
    """The variables that a result depends on: NCCL's, and which GPUs are visible."""
    names = [name for name in sorted(environment) if name.startswith("NCCL_") or name == "CUDA_VISIBLE_DEVICES"]
    return {name: environment[name] for name in names}


def measured(torch, quick, found, done):
    """Fill `found` with the result as plain values; `done()` follows each part, with a line to say or without."""
    from . import link, one_gpu, smi
    count, distributed = torch.cuda.device_count(), torch.distributed
    nccl = torch.cuda.nccl.version() if distributed.is_available() and distributed.is_nccl_available() else None
    peers = [[a == b or torch.cuda.can_device_access_peer(a, b) for b in range(count)] for a in range(count)]
    found |= {"schema": SCHEMA, "complete": False, "date": date.today().isoformat(), "torch": torch.__version__,
              "cuda": torch.version.cuda, "nccl": ".".join(map(str, nccl)) if isinstance(nccl, tuple) else nccl,
              "driver": None, "env": kept(os.environ), "quick": quick, "gpus": [], "peer_access": peers,
              "all_reduce": None}
    for index in range(count):
        properties = torch.cuda.get_device_properties(index)
        say(f"GPU {index}: {properties.name}")
        gpu = {"index": index, "name": properties.name}
        found["gpus"].append(gpu)
        one_gpu.one_gpu(torch, index, quick, gpu, done)
        # Right behind the copies: an idle link is a slow one.
        says = smi.smi_of(smi.ask_smi(), str(getattr(properties, "uuid", "")), index)
        found["driver"] = says["driver"]
        gpu |= {name: value for name, value in says.items() if name not in ("uuid", "driver")}
        done()
    for part in link.all_reduce(count, quick, say) if nccl else ():
        found["all_reduce"] = part
        done()
    found["complete"] = True
    done()


class Result:
    """The JSON of a measurement: written to its file after each part, and printed where that cannot be done."""

    def __init__(self, path, force):
        self.path, self.force, self.found, self.text, self.unwritten = path, force, {}, "", None

    def keep(self, line=None):
        """Write what there is. A full disk ends nothing: there may be room later, and there is stdout."""
        if line:
            say(line)
        self.text = json.dumps(_finite(self.found), indent=1)
        try:
            if self.path:
                inputs.write(self.path, lambda file: file.write(f"{self.text}\n".encode()), "out", self.force)
                self.force, self.unwritten = True, None  # the file is ours now
        except ValueError as error:
            if self.unwritten is None:
                say(f"{error}; going on: what is measured will be printed")
            self.unwritten = error

    def end(self):
        """Where the parts are, in words; what no file has is printed."""
        if not self.text:
            return "nothing was measured yet"
        if self.path and not self.unwritten:
            return f"what was measured is in {self.path}"
        print(self.text, flush=True)
        return "what was measured is printed"


def measure(args):
    """What this machine's NVIDIA GPUs and the link between them reach, measured with PyTorch, as one JSON object; a run
    that is broken off keeps what it has."""
    result = Result(args.out and inputs.target(args.out, "out", args.force), args.force)
    try:
        import torch
    except (ImportError, OSError) as error:
        raise ValueError(f"PyTorch cannot be imported ({error}): {NEEDS}") from None
    if not torch.cuda.is_available() or torch.version.cuda is None:
        raise ValueError(f"PyTorch {torch.__version__} sees no NVIDIA GPU: {NEEDS}")
    try:
        measured(torch, args.quick, result.found, result.keep)
    except KeyboardInterrupt as stop:
        stop.add_note(result.end())
        raise
    except Exception as error:  # of the driver or PyTorch, after which nothing works
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise ValueError(f"{why}; {result.end()}") from error
    if result.unwritten:
        raise ValueError(f"{result.unwritten}; {result.end()}")
    if args.json or not result.path:
        print(result.text)
    else:
        shown = shlex.quote(inputs.plain(result.path))
        print(f"wrote {result.path}: {len(result.found['gpus'])} GPUs; tpmodel fit {shown} makes catalog entries of it")
    return 0


def _finite(value):
    """The value as JSON has it, which has no infinities: they become null."""
    return json.loads(json.dumps(value), parse_constant=lambda name: None)


def fit(args):
    """Catalog entries (TOML, for plan --catalog) from a result of measure, from vLLM's log of a start, or from the
    output of nccl-tests."""
    from ...catalog import gpus, sourced
    from . import fit as fitting
    from . import printed
    text = _text(args.file)
    base = None if args.gpu is None else gpus.gpu(args.gpu)
    key = "measured-link" if args.name is None else args.name
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", key):
        raise inputs.refused("name", key, "it must be at most 60 letters, digits, - and _")
    said = log = None
    today, shown = date.today().isoformat(), fitting.clean(Path(args.file).name)
    own = {} if base is None else {name: fitting.kept(one) for name, one in base.numbers.items()}
    if text.lstrip().startswith("{"):
        result = _json(text, args.file)
        found, said = fitting.entries(result, key, own)
        comments = [f"What tpmodel measure found: {shown}"]
        if result.get("complete") is False:
            comments.append("The measurement was broken off: what is not here was not measured")
        if result.get("all_reduce") and not said:
            comments.append(f"No link: {fitting.clean(str(result['all_reduce'].get('failed')))}")
    elif printed.is_nccl(text):
        rows, ranks, names = printed.read_nccl(text)
        name = f"{ranks} GPUs, {' and '.join(names)}, measured"
        entry, said = fitting.link_entry(fitting.table(rows, args.file), ranks, name, f"nccl-tests, {shown}", today)
        found, comments = {key: entry}, [f"What nccl-tests found: {shown}"]
    elif printed.is_log(text):
        if base is None:
            raise ValueError(f"a log of vLLM needs --gpu, the card it ran on: one of {', '.join(gpus.gpus())}")
        log = printed.read_log(text)
        total = printed.overhead(log, base, args.util)
        key = f"{base.key}-measured" if args.name is None else key
        found = {key: fitting.from_log(base, own, log, total, f"vLLM's own log, {shown}", today)}
        log = {**log, **total, "overhead_bytes": total["overhead_bytes"][1]}
        comments = [f"What vLLM printed: {shown}"]
        comments += [f"{name}: {fitting.readable(name, value)}" for name, value in log.items()]
    else:
        raise inputs.refused("file", args.file, f"it must be {ACCEPTED}")
    if said:
        comments.append("Fit of the link: {rows} all-reduces, off by {median_abs_error_frac:.1%} in the middle, "
                        "{worst_abs_error_frac:.1%} at worst".format(**said))
    catalog = fitting.toml(found, comments)
    sourced.read(catalog, args.file)  # what plan will do with it
    if args.json:
        print(json.dumps({"entries": found, "fit": said, "log": log}, allow_nan=False))
    else:
        print(catalog, end="")
    return 0


def _text(path):
    """The file as text; UTF-16 is what Windows' `>` writes."""
    raw = inputs.read_bytes(path, "file", LARGEST_FILE, ACCEPTED)
    text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", errors="replace")
    if "\0" in text or not text.strip():
        raise inputs.refused("file", path, f"it is {'empty' if not text.strip() else 'no text'}: it must be {ACCEPTED}")
    return text


def _json(text, path):
    def refuse(constant):
        raise ValueError(f"{constant} is not accepted: it must be a number")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:  # also of an integer of thousands of digits
        raise ValueError(f"{path} is not JSON: {str(error)[:100]}") from None
