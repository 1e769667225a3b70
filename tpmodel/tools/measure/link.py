"""All-reduces and a ping between the GPUs of this machine: one process for each, NCCL through torch.distributed."""

import json
import multiprocessing
import os
import signal
import statistics
import tempfile
import time
from collections import ChainMap
from datetime import timedelta
from functools import partial
from pathlib import Path

from .one_gpu import BF16_BYTES, MIB, reason, timed

KIB = 2**10
SIZES = (8, 256, *(KIB * n for n in (1, 4, 8, 10, 16, 32, 64, 128, 256, 512)),
         *(MIB * n for n in (1, 2, 4, 16, 64, 256)))  # byte
QUICK_SIZES = (8, KIB, 10 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB)
PROTOCOLS = ("LL", "LL128", "Simple")  # of NCCL, forced one by one in processes of their own
LONGEST_S = 100.0  # of one set of processes
ROUND_S, MOST_CALLS = 0.02, 50  # one round of calls lasts about so long


def calls_of(call_s):
    """Calls in one round: as many as are needed for an exact time, as few as large messages allow."""
    return max(2, min(MOST_CALLS, int(ROUND_S / max(call_s, 1e-9))))


def _slowest(torch, value):
    """The largest of the ranks' values; also a meeting of all of them."""
    cell = torch.tensor([value], dtype=torch.float64, device="cuda")
    torch.distributed.all_reduce(cell, op=torch.distributed.ReduceOp.MAX)
    return cell.item()


def _rows(torch, make, sizes, repeats, in_graph):
    """(bytes, seconds of a call on the slowest rank) of each size; make(tensor) is the call, or None: it looks on."""
    for size in sizes:
        call = make(torch.zeros(size // BF16_BYTES, dtype=torch.bfloat16, device="cuda"))
        calls = calls_of(_slowest(torch, timed(torch, call, 1, 1)[0] if call else 0.0))
        mine = timed(torch, call, calls, repeats, in_graph) if call else [0.0]
        yield size, _slowest(torch, statistics.median(mine))


def _ping(dist, rank, tensor):
    """There and back between ranks 0 and 1; the others look on."""
    def call():
        for way in (dist.send, dist.recv) if rank == 0 else (dist.recv, dist.send):
            way(tensor, 1 - rank)
    return call if rank < 2 else None


def worker(rank, ranks, folder, protocol, sizes, repeats, in_graph):
    """One rank: leaves what it measured as a file in the folder, and the reason where it broke off."""
    os.dup2(2, 1)  # NCCL's own words are no part of the result
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; who started this one ends it
    # The ping is meant to be serial.
    os.environ.setdefault("TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "false")
    if protocol != "default":
        os.environ["NCCL_PROTO"] = protocol
    found, failed, step = {}, {}, "start"
    try:
        import torch
        dist = torch.distributed
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                                timeout=timedelta(seconds=LONGEST_S), device_id=torch.device("cuda", rank))
        ones = torch.ones(MIB, dtype=torch.bfloat16, device="cuda")
        dist.all_reduce(ones)
        if not (ones == ranks).all():
            raise RuntimeError("the sum of an all-reduce is wrong")
        sizes = [size for size in sizes if size <= torch.cuda.get_device_properties(rank).total_memory // 16]
        reduce, ping = (lambda tensor: lambda: dist.all_reduce(tensor)), partial(_ping, dist, rank)
        make = {"eager": reduce, "ping_eager": ping, "graph": reduce, "ping_graph": ping}
        forced = "graph" if in_graph else "eager"
        for step in make if protocol == "default" else [forced]:  # graphs last: after a failed capture nothing works
            found[step] = []  # what there is stays if one fails
            found[step].extend(_rows(torch, make[step], sizes, repeats, "graph" in step))
    except Exception as error:
        failed[step] = reason(error)
    part = Path(folder, f"part{rank}")
    part.write_text(json.dumps({"found": found, "failed": failed}))
    part.rename(Path(folder, f"rank{rank}.json"))
    if not failed:
        dist.destroy_process_group()


def run_ranks(ranks, protocol, sizes, repeats, in_graph):
    """(what rank 0 measured, {step: reason}) of one set of processes; a set that hangs or breaks is ended."""
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="tpmodel-") as folder:
        files = [Path(folder, f"rank{rank}.json") for rank in range(ranks)]
        given = (ranks, folder, protocol, sizes, repeats, in_graph)
        processes = [spawn.Process(target=worker, args=(rank, *given), daemon=True) for rank in range(ranks)]
        try:
            for process in processes:
                process.start()
            deadline = time.monotonic() + LONGEST_S
            while time.monotonic() < deadline and any(process.is_alive() for process in processes):
                there = [json.loads(file.read_text()) for file in files if file.exists()]
                broken = any(result["failed"] for result in there) or any(process.exitcode for process in processes)
                if broken or len(there) == ranks:
                    deadline = min(deadline, time.monotonic() + 5)  # for the others to say why
                time.sleep(0.1)
        finally:
            for process in processes:
                if process.pid:
                    process.kill()
                    process.join()
        results = [json.loads(file.read_text()) if file.exists() else {"found": {}, "failed": {
            "end": f"rank {rank} ended without a result, exit code {processes[rank].exitcode}"}}
            for rank, file in enumerate(files)]
    return results[0]["found"], dict(ChainMap(*(result["failed"] for result in results)))


def assemble(ranks, default, forced):
    """The all_reduce part of the result from (found, failed) of the default and {protocol: the same} of the forced."""
    sets, found = {"default": default, **forced}, default[0]
    protocols = {name: rows.get("graph") or rows.get("eager") for name, (rows, _) in sets.items()}
    ping = found.get("ping_graph") or found.get("ping_eager") or []
    return {"ranks": ranks, "backend": "nccl", "in_graph": bool(found.get("graph")),
            "protocols": {name: rows for name, rows in protocols.items() if rows}, "eager": found.get("eager", []),
            "send_recv": [[size, both / 2] for size, both in ping],
            "failed": {f"{name} {step}": why for name, (_, failed) in sets.items() for step, why in failed.items()}}


def all_reduce(ranks, quick, say):
    """The all_reduce part of the result, again after each set of processes; nothing for one GPU."""
    sizes, repeats = (QUICK_SIZES, 3) if quick else (SIZES, 7)
    sets, in_graph = {}, True
    for protocol in ("default", *PROTOCOLS) if ranks > 1 else ():
        say(f"all-reduces between {ranks} GPUs: {protocol}")
        sets[protocol] = run_ranks(ranks, protocol, sizes, repeats, in_graph)
        in_graph = bool(sets["default"][0].get("graph"))
        yield assemble(ranks, sets["default"], {name: sets[name] for name in PROTOCOLS if name in sets})
