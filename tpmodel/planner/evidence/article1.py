"""Article 1: its arithmetic under its own assumptions, and what we think of each number."""

from ...catalog.assumptions import assumed, ends
from ...formula.units import DTYPE_BYTES, GB, GIB, KB, MB, MIB, MS, TFLOP
from ...formulas.collectives import allreduces
from ...formulas.memory import read_bytes
from .articles import MODEL, setting
from .prompts import PROMPT
from .rows import printed

BF16, FP8 = DTYPE_BYTES["bf16"], DTYPE_BYTES["fp8"]
LATENCIES_US = (10, 20, 50)
ITS = assumed("article-1")
FP4_FLOP_PER_S = printed("a1.fp4_dense") * TFLOP  # as rounded there
BF16_BYTES = printed("a1.bf16_weights") * GB
FP8_BYTES = assumed("article-1-fp8").weights_bytes
ALARM_FRAC = ITS.bound_frac
SUSTAINED = ends("article-1", "achieved_frac")


def decode_view(latency_us=None, **more):
    """The article's decode step: its build read whole, no cache read, latency alone on the link."""
    latency = {} if latency_us is None else {"allreduce_latency_s": float(f"{latency_us}e-6")}
    return setting(message_bytes=0, cache_read_bytes=0, **latency, **more)


def bound(**more):
    return setting(**more).decode_bound_tokens_per_s


def kv(element_bytes, tokens=1, **more):
    """KV bytes on one GPU."""
    return setting(kv_element_bytes=element_bytes, context_tokens=tokens, **more).kv_cache_bytes


def fits(element_bytes):
    return setting(kv_element_bytes=element_bytes).pool_tokens


def counted():
    """What one step really reads of the 20 GB build."""
    return read_bytes(**{name: getattr(MODEL, name) for name in read_bytes.parameters})


def state(element_bytes):
    return setting(state_element_bytes=element_bytes).state_bytes


def payload(width):
    """One token's activation of this width."""
    return setting(hidden=width).allreduce_payload_bytes


def room(weights_bytes):
    """1 if a build leaves an FP8 cache for the everyday context, else 0."""
    return 1 if setting(weights_bytes=weights_bytes, kv_element_bytes=FP8).pool_tokens >= ITS.context_tokens else 0


def prompt(tokens, **more):
    """The article's prompt: one pass, every byte at the line rate, arithmetic at the FP4 rate, no attention."""
    return setting(PROMPT, **{"prompt_tokens": tokens, "chunk_tokens": tokens, "allreduce_latency_s": 0, "kv_element_bytes": FP8,
                              "flop_per_s": FP4_FLOP_PER_S, "attention_s": 0} | more)


COMPUTED = {
    "a1.fp4_dense": lambda: ITS.flop_per_s / 2 / TFLOP,
    "a1.pcie5x8": lambda: 32 * 8 / 8 * 128 / 130,
    "a1.col_row_allreduces": lambda: allreduces(1),
    "a1.payload_megatron": lambda: payload(MODEL.hidden),
    "a1.payload_naive_a": lambda: payload(MODEL.intermediate),
    "a1.payload_naive_b": lambda: 2 * payload(MODEL.hidden),
    "a1.naive_a_ratio": lambda: payload(MODEL.intermediate) / payload(MODEL.hidden),
    "a1.fits_bf16": lambda: room(BF16_BYTES),
    "a1.fits_fp8": lambda: room(FP8_BYTES),
    "a1.fits_nvfp4": lambda: room(MODEL.weights_bytes),
    "a1.prefill_payload": lambda: prompt(8192).message_bytes / MIB,
    "a1.prefill_allreduce": lambda: prompt(8192).communication_s / prompt(8192).allreduces / MS,
    "a1.prefill_comm": lambda: prompt(8192).communication_s / MS,
    "a1.prefill_flops": lambda: prompt(8192).linear_flop,
    "a1.prefill_gemm": lambda: prompt(8192).linear_s,
    "a1.prefill_share_low": lambda: prompt(8192).communication_frac,
    "a1.prefill_262k_comm": lambda: prompt(262144).communication_s,
    "a1.prefill_262k_gemm": lambda: prompt(262144).linear_s,
    "a1.threshold": lambda: ALARM_FRAC * bound(),
    "a1.allreduces_per_token": lambda: setting().allreduces,
    "a1.payload_per_token": lambda: setting().allreduces * setting().message_bytes,
    "a1.payload_per_token_mib": lambda: COMPUTED["a1.payload_per_token"]() / MIB,
    **{f"a1.comm_{us}us": lambda us=us: decode_view(us).communication_s / MS for us in LATENCIES_US},
    **{f"a1.ceiling_comm_{us}us": lambda us=us: decode_view(us).comm_ceiling_tokens_per_s for us in LATENCIES_US},
    "a1.weights_per_gpu": lambda: MODEL.weights_bytes / 2 / GB,
    "a1.weights_per_gpu_gib": lambda: MODEL.weights_bytes / 2 / GIB,
    "a1.weights_total_gib": lambda: MODEL.weights_bytes / GIB,
    "a1.t_weights": lambda: setting().weight_read_s / MS,
    "a1.decode_ceiling": bound,
    "a1.sustained_low": lambda: SUSTAINED[0] * setting().memory_bytes_per_s / GB,
    "a1.sustained_high": lambda: SUSTAINED[-1] * setting().memory_bytes_per_s / GB,
    **{f"a1.total_{us}us": lambda us=us: decode_view(us).pass_s / MS for us in LATENCIES_US},
    **{f"a1.toks_{us}us": lambda us=us: decode_view(us).decode_tokens_per_s for us in LATENCIES_US},
    **{f"a1.frac_{us}us": lambda us=us: decode_view(us).bound_frac
       for us in LATENCIES_US},
    "a1.single_gpu_time": lambda: setting(ranks=1).weight_read_s / MS,
    "a1.single_gpu_toks": lambda: bound(ranks=1),
    "a1.speedup": lambda: decode_view(20, ranks=1).pass_s / decode_view(20).pass_s,
    "a1.kv_per_token": lambda: kv(BF16),
    **{f"a1.kv_{name}_{words}": lambda b=b, n=n: kv(b, n) / GIB
       for name, b in (("bf16", BF16), ("fp8", FP8)) for words, n in (("32k", 32768), ("131k", 131072), ("262k", 262144))},
    "a1.kv_all_full": lambda: kv(BF16, full_layers=MODEL.layers) / kv(BF16),
    "a1.kv_model_bf16": lambda: kv(BF16, ranks=1) / KB,
    "a1.kv_model_fp8": lambda: kv(FP8, ranks=1) / KB,
    "a1.total_131k": lambda: setting(overhead_bytes=ITS.overhead_bytes, kv_element_bytes=FP8, context_tokens=131072).used_bytes / GB,
    "a1.budget": lambda: setting().budget_bytes / GIB,
    "a1.kv_budget": lambda: setting().kv_pool_bytes / GIB,
    "a1.max_ctx_bf16": lambda: fits(BF16),
    "a1.max_ctx_fp8": lambda: fits(FP8),
    "a1.all_full_fp8_262k": lambda: kv(FP8, 262144, full_layers=MODEL.layers) / GIB,
    "a1.gdn_state": lambda: state(BF16) / MB,
}

UNREAD = "a step does not read the embedding table, the vision tower, nor the MTP layer of this build"
RATE = "no all-reduce reaches the line rate without peer access: ours takes the 4.0 GB/s that article 2 measured through host memory"
HOST_BYTES_PER_S = printed("a2.allreduce_256m") * GB  # through shared memory
REACHED_FRAC = assumed("article-1-prompts").mfu_frac


def slow(tokens):
    """The same prompt with an all-reduce through host memory and arithmetic as reached."""
    return prompt(tokens, link_bytes_per_s=HOST_BYTES_PER_S, mfu_frac=REACHED_FRAC)


VERDICTS = {
    "a1.pcie5x8": ("loose", None, "right as a line rate; " + RATE),
    "a1.payload_naive_a": ("loose", lambda: payload(MODEL.intermediate) + payload(MODEL.hidden),
                           "the output comes out split too: a second gather, of the hidden size, is needed"),
    "a1.payload_naive_b": ("wrong", lambda: setting().naive_b_wire_bytes,
                           "the sums before the nonlinearity are the gate and up outputs, each of the intermediate size, not of the hidden size"),
    "a1.naive_a_ratio": ("loose", lambda: setting().naive_a_wire_bytes / setting().megatron_wire_bytes,
                         "payloads of different collectives: ours is on the wire, with both gathers"),
    "a1.t_weights": ("loose", lambda: setting(read_bytes=counted()).weight_read_s / MS, UNREAD),
    "a1.decode_ceiling": ("loose", lambda: bound(read_bytes=counted()),
                          UNREAD + "; nor is it a compute bound but one of memory bandwidth"),
    "a1.single_gpu_time": ("loose", lambda: setting(ranks=1, read_bytes=counted()).weight_read_s / MS, UNREAD),
    "a1.single_gpu_toks": ("loose", lambda: bound(ranks=1, read_bytes=counted()), UNREAD),
    "a1.threshold": ("loose", lambda: ALARM_FRAC * bound(read_bytes=counted()), UNREAD + "; so the alarm rings too late"),
    "a1.gdn_state": ("loose", lambda: state(DTYPE_BYTES["fp32"]) / MB,
                     "the checkpoint keeps the state in FP32, twice the size; it is also read and written once a token"),
    "a1.speedup": ("loose", None, "an upper end; pairs measured on one machine lie between 1.4 and 1.9"),
    "a1.fits_fp8": ("loose", None, "it starts, with an FP8 cache shorter than the everyday context; builds that keep more in 16 bits do not"),
    "a1.max_ctx_fp8": ("loose", lambda: min(fits(FP8), MODEL.native_tokens),
                       "the model ends at 262,144; the overhead of 1.2 GiB is an estimate and decides"),
    "a1.kv_budget": ("loose", None, "depends on an estimated overhead and a nominal 16 GiB; the driver reports 16,311 MiB"),
    "a1.prefill_allreduce": ("wrong", lambda: slow(8192).communication_s / 128 / MS, RATE),
    "a1.prefill_comm": ("wrong", lambda: slow(8192).communication_s / MS, RATE),
    "a1.prefill_gemm": ("loose", lambda: slow(8192).linear_s, "no kernel reaches the full rate; a public series of prompts is explained by 0.7 of it"),
    "a1.prefill_share_low": ("loose", lambda: slow(8192).communication_frac, RATE + "; the arithmetic is slower too"),
    "a1.prefill_262k_comm": ("wrong", lambda: slow(262144).communication_s, RATE),
    "a1.prefill_262k_gemm": ("loose", lambda: slow(262144).linear_s, "the linear part only, at the full rate; attention then takes several times as long"),
}
