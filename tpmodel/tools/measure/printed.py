"""What other programs print: vLLM's log of a start, and the table of nccl-tests."""

import re

from ... import inputs
from ...catalog.gpus import memory
from ...formula.units import GIB
from ...formulas.memory import kv_pool_bytes

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
WORKER = re.compile(r"\((\w+) pid=\d+\)")
WORKERS = re.compile(r"\(Worker_(?:\w+_)?TP(\d+)")
ENGINE = re.compile(r"Initializing an? (?:\w+ )?LLM engine")
D = "[0-9]+(?:[.][0-9]+)?"
N, I = f"({D})", "([0-9][0-9,]*)"
PATTERNS = {  # of each number: the wordings of vLLM 0.6 to 0.33
    "weights_gib": (rf"Model loading took {N} Gi?B", rf"Loading model weights took {N} GB",
                    rf"model weights take\s+{N} ?GiB"),
    "available_gib": (rf"Available KV cache memory: (-?{D}) GiB", rf"memory reserved for KV Cache is (-?{D}) ?GiB"),
    "memory_gib": (rf"Free memory on device \({D}/{N} GiB\)", rf"total_gpu_memory\s+\(?{N} ?GiB"),
    "utilisation_frac": (
        rf"current --gpu-memory-utilization={N} is equivalent", rf"--gpu-memory-utilization from {N} to",
        rf"GPU memory utilization (?:is )?\({N},", rf"gpu_memory_utilization['\"]?\s{{0,9}}[:=(]?\s{{0,9}}{N}",
        rf"--gpu-memory-utilization[= ]{N}"),
    "graph_gib": (rf"CUDA graph pool memory: {N} GiB \(actual\)",
                  rf"Graph capturing finished in .{{0,60}}?took {N} GiB", rf"Estimated CUDA graph memory: {N} GiB"),
    "kv_tokens": (rf"GPU KV cache size: {I} tokens",),
    "concurrency": (rf"Maximum concurrency for [0-9,]+ tokens per request: {N}x",),
    "max_model_len": (rf"Maximum concurrency for {I} tokens per request", rf"max_seq_len={I}"),
    "tp": (rf"tensor_parallel_size['\"]?[:=]\s*{I}", rf"(?:--tensor-parallel-size|-tp)[= ]{I}"),
    "block_tokens": (rf"Setting attention block size to {I} tokens",),
}
MOST = 2**53  # of a printed number
PREFIX = 300  # letters of a line where its worker is named
PER_GPU = ("weights_gib", "available_gib")
PRINTED = 0.01 * GIB  # each of two numbers is rounded to half of it
MISSING = {"weights_gib": "Model loading took 14.25 GiB memory and 3.5 seconds",
           "available_gib": "Available KV cache memory: 4.99 GiB",
           "utilisation_frac": "non-default args: {'gpu_memory_utilization': 0.92}, or --util 0.92 here"}
ROW = re.compile(r"^ *(\d+) +\d+ +[a-z]\w* +(?:([a-z]+) +)?(?:-?\d+ +)?(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?: +\d+\.\d+){2}",
                 re.M | re.ASCII)
RANK = re.compile(r"^# +Rank +(\d+) .{0,300}?device +\d+ +\[[^]\n]{0,60}\] *(.*)$", re.M | re.ASCII)


def is_log(text):
    """Whether the text has a line of vLLM's start."""
    told = [pattern for name in (*PER_GPU, "kv_tokens") for pattern in PATTERNS[name]]
    return any(re.search(pattern, text) for pattern in (*told, ENGINE))


def read_log(text):
    """What a log of vLLM says of its last start: {name of PATTERNS: value}, {worker: value} for those of PER_GPU.

    >>> read_log("(Worker_TP0 pid=7) INFO 05-06 [a.py:1] Model loading took 12.66 GiB memory and 31.6 s")["weights_gib"]
    {'Worker_TP0': 12.66}
    """
    text = ESCAPES.sub("", text)
    last = text[max((start.start() for start in ENGINE.finditer(text)), default=0):]
    ranks = [int(rank) for rank in WORKERS.findall(last)]
    found = {"tp": max(ranks) + 1} if ranks else {}
    for name, patterns in PATTERNS.items():
        parts = (last,) if name in PER_GPU else (last, text)  # the arguments stand before the start
        matches = next(filter(None, ([*re.finditer(pattern, part)] for pattern in patterns for part in parts)), ())
        if matches and name in PER_GPU:
            found[name] = {_worker(match): _value(match, name) for match in matches}
        elif matches:
            found[name] = _value(matches[-1], name)
    return found


def _value(match, name):
    text = match[1].replace(",", "")
    return inputs.whole(text, name, 0, MOST) if text.isdigit() else inputs.real(text, name, -MOST, MOST)


def _worker(match):
    """Who printed the line: the last name in round brackets before it."""
    before = match.string[max(0, match.start() - PREFIX):match.start()].rpartition("\n")[2]
    return (WORKER.findall(before) or [""])[-1]


def overhead(said, card, util=None):
    """{memory_bytes, utilisation_frac, weights_bytes, available_bytes, overhead_bytes: (low, value, high)} of a
    log; what is missing is an error."""
    share = said.get("utilisation_frac", util)
    if util not in (None, share):
        raise ValueError(f"util = {util:g} is not accepted: the log says {share:g}, and needs no --util")
    for name, line in MISSING.items():
        if name not in said and (name != "utilisation_frac" or share is None):
            raise ValueError(f"the log has no line that tells {name}: vLLM prints it as '{line}'")
    weights, available = said["weights_gib"], said["available_gib"]
    if not 0 < share <= 1:
        raise ValueError(f"gpu_memory_utilization = {share:g} is not accepted: it must be a number above 0, at most 1")
    total = said["memory_gib"] * GIB if said.get("memory_gib") else memory(card).base
    heaviest, least = max(weights.values()), min(available.values())
    left = [kv_pool_bytes(total, share, max(1.0, weights.get(worker, heaviest) * GIB), 0, 1) - gib * GIB
            for worker, gib in available.items()]
    if min(left) < 0:
        raise ValueError(f"the log does not add up: {share:g} x {total / GIB:.2f} GiB less weights less {least:.2f} "
                         f"GiB for the cache is {min(left) / GIB:.2f} GiB: is it the log of a {card.key}?")
    return {"memory_bytes": total, "utilisation_frac": share,
            "weights_bytes": heaviest * GIB, "available_bytes": least * GIB,
            "overhead_bytes": (max(0.0, min(left) - PRINTED), sum(left) / len(left), max(left) + PRINTED)}


def is_nccl(text):
    """Whether the text is of nccl-tests."""
    return "busbw" in text or bool(re.search(r"^# nThread", text, re.M))


def read_nccl(text):
    """([(bytes, seconds)] out of place, ranks, names of the GPUs) of all_reduce_perf's table.

    >>> read_nccl("#  Rank  1 Group  0 Pid 9 on host device  1 [0x25] Card X\\n 8 2 float sum  -1  12.5  0.00  0.00\\n")
    ([[8, 1.25e-05]], 2, ['Card X'])
    """
    text = ESCAPES.sub("", text).replace("\t", " ").replace("\r", "")
    cards = {int(rank): name.strip() for rank, name in RANK.findall(text) if len(rank) < 5}
    if max(cards, default=0) < 1:
        raise ValueError("the output of nccl-tests has no two lines such as '#  Rank  1 Group  0 Pid   9822 on host "
                         "device  1 [0x2d] NVIDIA ...': run all_reduce_perf with -g 2, and paste all that it prints")
    rows, programs = ROW.findall(text), re.findall(r"\b(\w+)_perf\b", text)
    if not rows or any(redop == "none" for _, redop, _ in rows) or programs and "all_reduce" not in programs:
        raise ValueError("the output of nccl-tests has no rows of an all-reduce, such as '1024 256 float sum -1 9.06 "
                         "0.11 0.11 0': run all_reduce_perf")
    times = {}
    for size, _, time_us in rows:
        times.setdefault(inputs.whole(size, "size", 0, MOST), []).append(inputs.real(time_us, "time", 0, MOST) / 1e6)
    table = [[size, sum(ts) / len(ts)] for size, ts in sorted(times.items()) if size]
    return table, max(cards) + 1, list(dict.fromkeys(cards.values()))
