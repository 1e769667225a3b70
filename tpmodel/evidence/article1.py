"""Article 1: its arithmetic under its own assumptions, and what we think of each number."""

from ..catalog.articles import MODEL, setting
from ..formulas import collectives, decode, memory
from ..units import DTYPE_BYTES, GB, GIB, KB, MB, MIB, MS

BF16, FP8 = DTYPE_BYTES["bf16"], DTYPE_BYTES["fp8"]
LATENCIES_US = (10, 20, 50)
MIDDLE_OVERHEAD_BYTES = 1.5 * GB  # section 4.2: "1 to 2 GB"


def decode_view(latency_us, **more):
    """The article's decode step: its build read whole, no cache read, latency alone on the link."""
    v = setting(allreduce_latency_s=float(f"{latency_us}e-6"), message_bytes=0, kv_element_bytes=FP8, **more)
    return v.derived({"allreduces": lambda v: v(collectives.allreduces),
                      "kv_bytes_per_token": lambda v: v(memory.kv_bytes_per_token)})


def step_s(latency_us, **more):
    return decode_view(latency_us, **more)(decode.decode_s)


def comm_s(latency_us):
    return decode_view(latency_us)(collectives.communication_s)


def bound(**more):
    return setting(**more)(decode.decode_bound_tokens_per_s)


def kv(element_bytes, tokens=1, **more):
    """KV bytes on one GPU."""
    v = setting(kv_element_bytes=element_bytes, context_tokens=tokens, **more)
    return v(memory.kv_cache_bytes, kv_bytes_per_token=v(memory.kv_bytes_per_token))


def pool():
    return setting()(memory.kv_pool_bytes)


def fits(element_bytes):
    return memory.pool_tokens(kv_pool_bytes=pool(), kv_bytes_per_token=kv(element_bytes))


def read_bytes():
    """What one step really reads of the 20 GB build."""
    return setting()(memory.read_bytes)


def state(element_bytes):
    return setting(state_element_bytes=element_bytes)(memory.state_bytes)


COMPUTED = {
    "a1.allreduces_per_token": lambda: setting()(collectives.allreduces),
    "a1.payload_per_token": lambda: setting()(collectives.allreduces) * setting()(collectives.allreduce_payload_bytes),
    "a1.payload_per_token_mib": lambda: COMPUTED["a1.payload_per_token"]() / MIB,
    **{f"a1.comm_{us}us": lambda us=us: comm_s(us) / MS for us in LATENCIES_US},
    **{f"a1.ceiling_comm_{us}us": lambda us=us: collectives.comm_ceiling_tokens_per_s(comm_s(us)) for us in LATENCIES_US},
    "a1.weights_per_gpu": lambda: MODEL.weights_bytes / 2 / GB,
    "a1.weights_per_gpu_gib": lambda: MODEL.weights_bytes / 2 / GIB,
    "a1.weights_total_gib": lambda: MODEL.weights_bytes / GIB,
    "a1.t_weights": lambda: setting()(decode.weight_read_s) / MS,
    "a1.decode_ceiling": bound,
    "a1.sustained_low": lambda: 0.85 * setting().memory_bytes_per_s / GB,
    "a1.sustained_high": lambda: 0.94 * setting().memory_bytes_per_s / GB,
    **{f"a1.total_{us}us": lambda us=us: step_s(us) / MS for us in LATENCIES_US},
    **{f"a1.toks_{us}us": lambda us=us: decode.decode_tokens_per_s(step_s(us)) for us in LATENCIES_US},
    **{f"a1.frac_{us}us": lambda us=us: decode.bound_frac(decode.decode_tokens_per_s(step_s(us)), bound())
       for us in LATENCIES_US},
    "a1.single_gpu_time": lambda: setting(ranks=1)(decode.weight_read_s) / MS,
    "a1.single_gpu_toks": lambda: bound(ranks=1),
    "a1.speedup": lambda: step_s(20, ranks=1) / step_s(20),
    "a1.kv_per_token": lambda: kv(BF16),
    **{f"a1.kv_{name}_{words}": lambda b=b, n=n: kv(b, n) / GIB
       for name, b in (("bf16", BF16), ("fp8", FP8)) for words, n in (("32k", 32768), ("131k", 131072), ("262k", 262144))},
    "a1.kv_all_full": lambda: kv(BF16, full_layers=MODEL.layers) / kv(BF16),
    "a1.kv_model_bf16": lambda: kv(BF16, ranks=1) / KB,
    "a1.kv_model_fp8": lambda: kv(FP8, ranks=1) / KB,
    "a1.total_131k": lambda: setting(overhead_bytes=MIDDLE_OVERHEAD_BYTES)(
        memory.used_bytes, kv_cache_bytes=kv(FP8, 131072)) / GB,
    "a1.budget": lambda: setting()(memory.budget_bytes) / GIB,
    "a1.kv_budget": lambda: pool() / GIB,
    "a1.max_ctx_bf16": lambda: fits(BF16),
    "a1.max_ctx_fp8": lambda: fits(FP8),
    "a1.all_full_fp8_262k": lambda: kv(FP8, 262144, full_layers=MODEL.layers) / GIB,
    "a1.gdn_state": lambda: state(BF16) / MB,
}

UNREAD = "a step does not read the embedding table, the vision tower, nor the MTP layer: 15.7 of the 20 GB"

VERDICTS = {
    "a1.t_weights": ("loose", lambda: setting(read_bytes=read_bytes())(decode.weight_read_s) / MS, UNREAD),
    "a1.decode_ceiling": ("loose", lambda: bound(read_bytes=read_bytes()), UNREAD + "; nor is it a compute bound but one of memory bandwidth"),
    "a1.gdn_state": ("loose", lambda: state(DTYPE_BYTES["fp32"]) / MB,
                     "the checkpoint keeps the state in FP32, twice the size; it is also read and written once a token"),
    "a1.speedup": ("loose", None, "an upper end; pairs measured on one machine lie between 1.4 and 1.9"),
    "a1.max_ctx_fp8": ("loose", lambda: min(fits(FP8), MODEL.native_tokens),
                       "the model ends at 262,144; the overhead of 1.2 GiB is an estimate and decides"),
    "a1.kv_budget": ("loose", None, "depends on an estimated overhead and a nominal 16 GiB; the driver reports 16,311 MiB"),
}
