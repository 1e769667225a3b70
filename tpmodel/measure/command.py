"""`tpmodel measure` and `tpmodel fit`: their flags, files and words."""

import json
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

from . import SCHEMA

LARGEST_FILE = 20_000_000
NEEDS = "measure needs PyTorch and an NVIDIA GPU; without them, give `tpmodel fit` the output of nccl-tests or vLLM's log"
QUERY = {"uuid": "uuid", "driver": "driver_version", "reported_mib": "memory.total", "power_limit_w": "power.limit",
         "pcie_gen": "pcie.link.gen.current", "pcie_gen_max": "pcie.link.gen.max",
         "pcie_lanes": "pcie.link.width.current", "pcie_lanes_max": "pcie.link.width.max"}


def say(line):
    """Progress."""
    print(line, file=sys.stderr, flush=True)


def parse_smi(text):
    """[{name of QUERY: value}] of nvidia-smi's CSV; what it does not know ("[N/A]", "[Not Supported]") is null.

    >>> parse_smi("GPU-1, 580.65, 16311, [N/A], 5, 5, 8, 16")[0]["power_limit_w"] is None
    True
    """
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(QUERY):
            rows.append({name: _cell(name, cell) for name, cell in zip(QUERY, cells)})
    return rows


def _cell(name, cell):
    if name in ("uuid", "driver"):
        return cell if cell and not cell.startswith("[") else None
    try:
        value = float(cell)
    except ValueError:
        return None
    return int(value) if value == int(value) else value


def ask_smi():
    """What nvidia-smi says now, or nothing where it is missing."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(QUERY.values())}", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_smi(done.stdout)


def smi_of(rows, uuid, index):
    """The row of one GPU: by its UUID, else, where PyTorch knows none, by its index."""
    rest = dict.fromkeys(QUERY)
    found = [row for row in rows if uuid and row["uuid"] and row["uuid"].removeprefix("GPU-") == uuid.removeprefix("GPU-")]
    return found[0] if found else rest if uuid or index >= len(rows) else rows[index]


def kept(environment):
    """The variables that a result depends on: NCCL's, and which GPUs are visible."""
    return {name: value for name, value in sorted(environment.items()) if name.startswith("NCCL_") or name == "CUDA_VISIBLE_DEVICES"}


def target(path, force):
    """The file for the result, which may be written."""
    if path.is_dir() or path.exists() and not (force and path.is_file()):
        raise ValueError(f"out = {str(path)!r} is not accepted: it exists: give another name{'' if path.is_dir() else ', or --force to replace it'}")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"out = {str(path)!r} is not accepted: the folder {path.parent} must exist and be writable")
    return path


def save(text, path, force):
    """Write under another name in the same folder, then rename: the file is whole or not there."""
    part = path.with_name(f".tpmodel-{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        target(path, force)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _torch():
    try:
        import torch
    except (ImportError, OSError) as error:
        raise ValueError(f"PyTorch cannot be imported ({error}): {NEEDS}") from None
    if not torch.cuda.is_available() or torch.version.cuda is None:
        raise ValueError(f"PyTorch {torch.__version__} sees no NVIDIA GPU: {NEEDS}")
    return torch


def measured(torch, quick):
    """The whole result as plain values."""
    from . import link, one_gpu

    gpus = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        say(f"GPU {index}: {properties.name}")
        found = one_gpu.one_gpu(torch, index, quick, say)
        smi = smi_of(ask_smi(), str(getattr(properties, "uuid", "")), index)  # right behind the copies: an idle link is a slow one
        driver = smi.pop("driver")
        smi.pop("uuid")
        gpus.append({"index": index, "name": properties.name, **smi, **found})
    count = len(gpus)
    peers = [[a == b or torch.cuda.can_device_access_peer(a, b) for b in range(count)] for a in range(count)]
    nccl = torch.cuda.nccl.version() if torch.distributed.is_available() and torch.distributed.is_nccl_available() else None
    return {"schema": SCHEMA, "date": date.today().isoformat(), "torch": torch.__version__, "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, nccl)) if isinstance(nccl, tuple) else nccl, "driver": driver, "env": kept(os.environ), "quick": quick,
            "gpus": gpus, "peer_access": peers, "all_reduce": link.all_reduce(count, quick, say) if nccl else None}


def measure(args):
    """What this machine's NVIDIA GPUs and the link between them reach, measured with PyTorch, as one JSON object."""
    path = args.out and target(Path(args.out), args.force)
    found = measured(_torch(), args.quick)
    text = json.dumps(_finite(found), indent=1)
    if path:
        save(text + "\n", path, args.force)
    if args.json or not path:
        print(text)
    else:
        print(f"wrote {path}: {len(found['gpus'])} GPUs; tpmodel fit {path} makes catalog entries of it")
    return 0


def _finite(value):
    """JSON has no infinities: they become null."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def fit(args):
    """Catalog entries (TOML, for plan --catalog) from a result of measure, from vLLM's log of a start, or from the output of nccl-tests."""
    from ..catalog import gpus, sourced
    from . import fit as fitting, printed

    text = _text(args.file)
    base = None if args.gpu is None else gpus.gpu(args.gpu)
    key = "measured-link" if args.name is None else args.name
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", key):
        raise ValueError(f"name = {key[:60]!r} is not accepted: it must be letters, digits, - and _")
    said = log = None
    today, shown = date.today().isoformat(), fitting.clean(Path(args.file).name)
    own = {} if base is None else {name: fitting.kept(one) for name, one in base.numbers.items()}
    if text.lstrip().startswith("{"):
        result = _json(text, args.file)
        found, said = fitting.entries(result, key, own)
        comments = [f"What tpmodel measure found: {shown}"]
        if result.get("all_reduce") and not said:
            comments.append(f"No link: {fitting.clean(str(result['all_reduce'].get('failed')))}")
    elif printed.is_nccl(text):
        rows, ranks, names = printed.read_nccl(text)
        entry, said = fitting.link_entry(fitting.table(rows, args.file), ranks, f"{ranks} GPUs, {' and '.join(names)}, measured", f"nccl-tests, {shown}", today)
        found, comments = {key: entry}, [f"What nccl-tests found: {shown}"]
    elif printed.is_log(text):
        if base is None:
            raise ValueError(f"a log of vLLM needs --gpu, the card it ran on: one of {', '.join(gpus.gpus())}")
        log = printed.read_log(text)
        told = log.get("utilisation_frac")
        if args.util is not None and told is not None and told != args.util:
            raise ValueError(f"util = {args.util:g} is not accepted: the log says {told:g}, and needs no --util")
        total = printed.overhead(log, base, args.util)
        key = f"{base.key}-measured" if args.name is None else key
        found = {key: fitting.from_log(base, own, log, total, f"vLLM's own log, {shown}", today)}
        log = {**log, **total, "overhead_bytes": total["overhead_bytes"][1]}
        comments = [f"What vLLM printed: {shown}", *(f"{name}: {fitting.readable(name, value)}" for name, value in log.items())]
    else:
        raise ValueError(f"{args.file} is not accepted: it must be the JSON of tpmodel measure, the output of nccl-tests' all_reduce_perf, or vLLM's log")
    if said:
        comments.append("Fit of the link: {rows} all-reduces, off by {median_abs_error_frac:.1%} in the middle, {worst_abs_error_frac:.1%} at worst".format(**said))
    catalog = fitting.toml(found, comments)
    sourced.read(catalog, args.file)  # what plan will do with it
    print(json.dumps({"entries": found, "fit": said, "log": log}, allow_nan=False) if args.json else catalog, end="\n" if args.json else "")
    return 0


def _text(path):
    """The file as text; UTF-16 is what Windows' `>` writes."""
    try:
        with open(path, "rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ValueError(f"file = {path!r} is not accepted: {error.strerror}") from None
    if len(raw) > LARGEST_FILE:
        raise ValueError(f"{path} is larger than {LARGEST_FILE:,} bytes: give it the lines of one start")
    text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", errors="replace")
    if "\0" in text or not text.strip():
        raise ValueError(f"{path} is {'empty' if not text.strip() else 'no text'}: it must be the JSON of tpmodel measure, the output of nccl-tests or vLLM's log")
    return text


def _json(text, path):
    def refuse(constant):
        raise ValueError(f"{path}: {constant} is not accepted: it must be a number")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None


def add_fit_arguments(command):
    """The flags of `tpmodel fit`."""
    add = command.add_argument
    add("file", help="the JSON of tpmodel measure, the output of nccl-tests' all_reduce_perf, or vLLM's log of a start")
    add("--gpu", help="name in the catalog of the card; a log needs it, a measurement takes the rates it has not from there")
    add("--name", help="key of the entry (default: measured-link, or the card's name)")
    add("--util", type=float, help="gpu_memory_utilization, where the log does not tell it")
    add("--json", action="store_true", help="print JSON")
    command.set_defaults(run=fit)


def add_measure_arguments(command):
    """The flags of `tpmodel measure`."""
    add = command.add_argument
    add("--out", help="the file for the JSON (default: stdout)")
    add("--force", action="store_true", help="replace the file if it exists")
    add("--quick", action="store_true", help="fewer sizes and repeats: under a minute")
    add("--json", action="store_true", help="print the JSON also where --out is given")
    command.set_defaults(run=measure)
