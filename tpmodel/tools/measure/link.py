"""All-reduces and a ping between the GPUs of this machine: one process for each, NCCL through torch.distributed."""

import json
import os
import signal
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from .one_gpu import BF16_BYTES, captured, reason, timed

KIB, MIB = 2**10, 2**20
SIZES = (8, 256, *(n * KIB for n in (1, 4, 8, 10, 16, 32, 64, 128, 256, 512)), *(n * MIB for n in (1, 2, 4, 16, 64, 256)))  # byte
QUICK_SIZES = (8, KIB, 10 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB)
PROTOCOLS = ("LL", "LL128", "Simple")  # of NCCL, forced one by one in processes of their own
LONGEST_S = 100.0  # of one set of processes
ROUND_S, MOST_CALLS = 0.02, 50  # one round of calls lasts about so long


def calls_of(call_s):
    """Calls in one round: as many as are needed for an exact time, as few as large messages allow."""
    return max(2, min(MOST_CALLS, int(ROUND_S / max(call_s, 1e-9))))


def _slowest(torch, dist, value):
    """The largest of the ranks' values; also a meeting of all of them."""
    cell = torch.tensor([value], dtype=torch.float64, device="cuda")
    dist.all_reduce(cell, op=dist.ReduceOp.MAX)
    return cell.item()


def _rows(torch, dist, make, sizes, repeats, in_graph):
    """(bytes, seconds of one call on the slowest rank) of each size; make(tensor) is the call, or None for who looks on."""
    for size in sizes:
        call = make(torch.zeros(size // BF16_BYTES, dtype=torch.bfloat16, device="cuda"))
        calls = calls_of(_slowest(torch, dist, timed(torch, call, 1, 1)[0] if call else 0.0))
        mine = [0.0]
        if call and in_graph:
            graph = captured(torch, call, calls)
            mine = [t / calls for t in timed(torch, graph.replay, 1, repeats)]
            del graph  # before its communicator
        elif call:
            mine = timed(torch, call, calls, repeats)
        yield size, _slowest(torch, dist, statistics.median(mine))


def _ping(dist, rank):
    """There and back between ranks 0 and 1; the others look on."""
    def make(tensor):
        def call():
            (dist.send if rank == 0 else dist.recv)(tensor, 1 - rank)
            (dist.recv if rank == 0 else dist.send)(tensor, 1 - rank)
        return call if rank < 2 else None
    return make


def worker(rank, ranks, folder, protocol, sizes, repeats, in_graph):
    """One rank: leaves what it measured as a file in the folder, and the reason where it broke off."""
    os.dup2(2, 1)  # NCCL's own words are no part of the result
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; who started this one ends it
    os.environ.setdefault("TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "false")  # the ping is meant to be serial
    if protocol != "default":
        os.environ["NCCL_PROTO"] = protocol
    found, failed = {}, {}
    step = "start"
    try:
        import torch
        import torch.distributed as dist

        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                                timeout=timedelta(seconds=LONGEST_S), device_id=torch.device("cuda", rank))
        ones = torch.ones(MIB, dtype=torch.bfloat16, device="cuda")
        dist.all_reduce(ones)
        if not bool((ones == ranks).all()):
            raise RuntimeError("the sum of an all-reduce is wrong")
        sizes = [size for size in sizes if size <= torch.cuda.get_device_properties(rank).total_memory // 16]
        reduce = lambda tensor: lambda: dist.all_reduce(tensor)
        steps = [("graph" if in_graph else "eager", reduce, sizes, in_graph)]
        if protocol == "default":  # what may fail comes last: after a failed capture nothing works
            steps = [("eager", reduce, sizes, False), ("ping_eager", _ping(dist, rank), sizes, False),
                     ("graph", reduce, sizes, True), ("ping_graph", _ping(dist, rank), sizes, True)]
        for step, make, chosen, graph in steps:
            found[step] = []
            found[step].extend(_rows(torch, dist, make, chosen, repeats, graph))  # what there is stays if one fails
    except Exception as error:
        failed[step] = reason(error)
    part = Path(folder, f"part{rank}")
    part.write_text(json.dumps({"found": found, "failed": failed}))
    part.rename(Path(folder, f"rank{rank}.json"))
    if not failed:
        dist.destroy_process_group()


def _wait(processes, files):
    """Start the processes and wait for their files; a set that hangs or breaks is not waited for."""
    for process in processes:
        process.start()
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline and any(process.is_alive() for process in processes):
        ended = all(file.exists() for file in files) or any(process.exitcode not in (None, 0) for process in processes)
        broken = any(file.exists() and json.loads(file.read_text())["failed"] for file in files)
        if ended or broken:
            deadline = min(deadline, time.monotonic() + 5)  # for the others to say why
        time.sleep(0.1)


def run_ranks(ranks, protocol, sizes, repeats, in_graph):
    """(what rank 0 measured, {step: reason}) of one set of processes; a set that hangs or breaks is ended."""
    import multiprocessing

    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="tpmodel-") as folder:
        files = [Path(folder, f"rank{rank}.json") for rank in range(ranks)]
        processes = [spawn.Process(target=worker, args=(rank, ranks, folder, protocol, sizes, repeats, in_graph), daemon=True)
                     for rank in range(ranks)]
        try:
            _wait(processes, files)
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
                if process.pid:
                    process.join()
        results = [json.loads(file.read_text()) if file.exists() else
                   {"found": {}, "failed": {"end": f"rank {rank} ended without a result, exit code {processes[rank].exitcode}"}}
                   for rank, file in enumerate(files)]
    failed = {}
    for result in results:
        failed = result["failed"] | failed
    return results[0]["found"], failed


def assemble(ranks, default, forced):
    """The all_reduce part of the result from (found, failed) of the default and {protocol: (found, failed)} of the forced."""
    found, failed = default
    said = {f"default {step}": why for step, why in failed.items()}
    protocols = {"default": found.get("graph") or found.get("eager")}
    for name, (rows, why) in forced.items():
        protocols[name] = rows.get("graph") or rows.get("eager")
        said |= {f"{name} {step}": reason_ for step, reason_ in why.items()}
    ping = found.get("ping_graph") or found.get("ping_eager") or []
    return {"ranks": ranks, "backend": "nccl", "in_graph": bool(found.get("graph")),
            "protocols": {name: rows for name, rows in protocols.items() if rows}, "eager": found.get("eager", []),
            "send_recv": [[size, both / 2] for size, both in ping], "failed": said}


def all_reduce(ranks, quick, say):
    """The all_reduce part of the result, again after each set of processes; nothing for one GPU."""
    if ranks < 2:
        return
    sizes, repeats = (QUICK_SIZES, 3) if quick else (SIZES, 7)
    say(f"all-reduces between {ranks} GPUs: default")
    default, forced = run_ranks(ranks, "default", sizes, repeats, True), {}
    yield assemble(ranks, default, forced)
    for protocol in PROTOCOLS:
        say(f"all-reduces between {ranks} GPUs: {protocol}")
        forced[protocol] = run_ranks(ranks, protocol, sizes, repeats, bool(default[0].get("graph")))
        yield assemble(ranks, default, forced)
