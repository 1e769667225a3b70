"""What one GPU reaches, with PyTorch: copies (also from main memory), weights through products, kernels, arithmetic."""

import statistics
from functools import partial, reduce

from ...formulas.passes import linear_flop

MIB, GIB = 2**20, 2**30
HIDDEN, WIDE = 5120, 17408  # of a 27B model's FFN
BF16_BYTES = 2
LAYERS = 64
PRODUCTS = ((6144, HIDDEN), (1024, HIDDEN), (1024, HIDDEN), (HIDDEN, 6144),  # q k v o
            (WIDE, HIDDEN), (WIDE, HIDDEN), (HIDDEN, WIDE))  # gate up down


def reason(error):
    """An exception in one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def timed(torch, run, calls, repeats, in_graph=False):
    """Seconds of one call, `repeats` times, each from a round of `calls` (in_graph: one CUDA graph of them). The GPU
    never idles in between: one round more goes before the first."""
    if in_graph:
        return [t / calls for t in timed(torch, captured(torch, run, calls).replay, 1, repeats)]
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 2)]
    marks[0].record()
    for mark in marks[1:]:
        for _ in range(calls):
            run()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / 1e3 / calls for a, b in zip(marks[1:], marks[2:])]


def captured(torch, run, calls=1):
    """A CUDA graph of `calls` calls, warmed up on a side stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # PyTorch's own stream is the first GPU's; NCCL's watchdog may look on.
    with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
        for _ in range(calls):
            run()
    return graph


def _bf16(torch, *shape):
    return torch.empty(*shape, dtype=torch.bfloat16, device="cuda").normal_(0, 0.01)


def _copy(torch, free, repeats):
    count = min(2 * GIB, free // 4)
    source, target = (torch.empty(count, dtype=torch.uint8, device="cuda").fill_(1) for _ in range(2))
    return [2 * count / t for t in timed(torch, lambda: target.copy_(source), 4, repeats)]


def _matvec(shapes, torch, free, repeats):
    """Bytes/s of matrices read once each, one behind the other, for one token, all in one CUDA graph."""
    one = sum(out * into for out, into in shapes) * BF16_BYTES
    rounds = max(1, round(min(2.5 * GIB, free // 4) / one))
    stack = [_bf16(torch, *shape) for shape in rounds * shapes]
    graph = captured(torch, partial(reduce, torch.nn.functional.linear, stack, _bf16(torch, 1, HIDDEN)))
    return [rounds * one / t for t in timed(torch, graph.replay, 2, repeats)]


def _tiny(in_graph, torch, free, repeats):
    """Seconds of one kernel with almost nothing to do, each behind the one before."""
    x = torch.ones(1024, device="cuda")
    return timed(torch, lambda: x.add_(1), 200, repeats, in_graph)


def _product(torch, free, repeats):
    n = 8192 if free > 2 * GIB else 4096
    a, b, c = (_bf16(torch, n, n) for _ in range(3))
    return [linear_flop(n * n, n, 1) / t for t in timed(torch, lambda: torch.mm(a, b, out=c), 5, repeats)]


def _from_host(pinned, torch, free, repeats):
    count = min(256 * MIB, free // 4)
    source = torch.ones(count, dtype=torch.uint8, pin_memory=pinned)
    target = torch.empty(count, dtype=torch.uint8, device="cuda")
    return [count / t for t in timed(torch, lambda: target.copy_(source, non_blocking=pinned), 1, repeats)]


TESTS = {
    "copy_bytes_per_s": _copy, "matvec_bytes_per_s": partial(_matvec, ((WIDE, HIDDEN), (HIDDEN, WIDE))),
    "matvec_small_bytes_per_s": partial(_matvec, ((HIDDEN, HIDDEN),)), "kernel_s": partial(_tiny, True),
    "launch_s": partial(_tiny, False), "bf16_flop_per_s": _product,
    "host_to_device_pinned_bytes_per_s": partial(_from_host, True),
    "host_to_device_pageable_bytes_per_s": partial(_from_host, False),
}


def _decode_step(torch, free, repeats):
    """Matrix-vector products and small kernels like a decoder's, cut so that a third of the memory holds them."""
    whole = LAYERS * BF16_BYTES * sum(out * into for out, into in PRODUCTS)
    scale = min(1.0, (free / 3 / whole) ** 0.5)
    size = {n: max(128, int(n * scale) // 128 * 128) for pair in PRODUCTS for n in pair}
    layers = [[_bf16(torch, size[out], size[into]) for out, into in PRODUCTS] for _ in range(LAYERS)]
    first, linear = _bf16(torch, 1, size[HIDDEN]), torch.nn.functional.linear

    def step():
        x = first
        for q, k, v, o, gate, up, down in layers:
            h = x * 0.5
            mixed, _ = linear(h, q) * 0.5, linear(h, k) * linear(h, v)
            x = x + linear(mixed, o)
            h = x * 0.5
            x = x + linear(torch.nn.functional.silu(linear(h, gate)) * linear(h, up), down)

    eager_s, graph_s = (statistics.median(timed(torch, step, 1, repeats, in_graph)) for in_graph in (False, True))
    return {"weight_bytes": sum(m.numel() * BF16_BYTES for layer in layers for m in layer),
            "kernels": LAYERS * (len(PRODUCTS) + 8), "graph_s": graph_s, "eager_s": eager_s}


def one_gpu(torch, index, quick, found, done):
    """Fill `found` with every number of one GPU: medians, and the range of the repeats; `done(line)` follows each. What
    fails is null, with its reason under failed."""
    torch.cuda.set_device(index)
    free, total = torch.cuda.mem_get_info()
    found |= {"total_bytes": total, "free_bytes": free, "ranges": {}, "failed": {}}
    for name, test in (TESTS if quick else TESTS | {"decode_step": _decode_step}).items():
        found[name] = None
        try:
            got = test(torch, torch.cuda.mem_get_info()[0], 5 if quick else 15)
            if isinstance(got, dict):
                found[name], said = got, f"{got['graph_s']:.4g}"
            else:
                found[name], found["ranges"][name] = statistics.median(got), [min(got), max(got)]
                said = f"{found[name]:.4g}"
        except Exception as error:  # out of memory, no pinned memory, no capture: the other numbers still count
            said = found["failed"][name] = reason(error)
        torch.cuda.empty_cache()
        done(f"  GPU {index}: {name} {said}")
