"""Article 1: its arithmetic under its own assumptions, and what we think of each number."""

from ...catalog.assumptions import assumed, ends
from ...formula.units import DTYPE_BYTES, GB, GIB, KB, MB, MIB, MS, TFLOP
from ...formulas.collectives import allreduces
from ...formulas.memory import read_bytes
from . import prompts
from .articles import MODEL, setting
from .rows import printed

BF16, FP8 = DTYPE_BYTES["bf16"], DTYPE_BYTES["fp8"]
ITS = assumed("article-1")
FP4_FLOP_PER_S = printed("a1.fp4_dense") * TFLOP  # as rounded there
BF16_BYTES, FP8_BYTES = printed("a1.bf16_weights") * GB, assumed("article-1-fp8").weights_bytes
ALARM_FRAC = ITS.bound_frac
SUSTAINED = ends("article-1", "achieved_frac")
HOST_BYTES_PER_S = printed("a2.allreduce_256m") * GB  # through shared memory
REACHED_FRAC = assumed("article-1-prompts").mfu_frac


def decode_view(latency_us=None, **more):
    """The article's decode step: its build read whole, no cache read, latency alone on the link."""
    latency = {} if latency_us is None else {"allreduce_latency_s": float(f"{latency_us}e-6")}
    return setting(message_bytes=0, cache_read_bytes=0, **latency, **more)


def bound(**more):
    return setting(**more).decode_bound_tokens_per_s


def kv(element_bytes, tokens=1, **more):
    """KV bytes on one GPU."""
    return setting(kv_element_bytes=element_bytes, context_tokens=tokens, **more).kv_cache_bytes


def fits(element_bytes, **more):
    """Tokens of cache that fit."""
    return setting(kv_element_bytes=element_bytes, **more).pool_tokens


def counted():
    """What one step really reads of the 20 GB build."""
    return setting()(read_bytes)


def state(element_bytes):
    return setting(state_element_bytes=element_bytes).state_bytes


def payload(width):
    """One token's activation of this width."""
    return setting(hidden=width).allreduce_payload_bytes


def prompt(tokens, **more):
    """The article's prompt: one pass, every byte at the line rate, arithmetic at the FP4 rate, no attention."""
    given = {"allreduce_latency_s": 0, "flop_per_s": FP4_FLOP_PER_S, "attention_s": 0}
    return prompts.prompt(tokens, **given | more)


def slow(tokens):
    """The same prompt with an all-reduce through host memory and arithmetic as reached."""
    return prompt(tokens, link_bytes_per_s=HOST_BYTES_PER_S, mfu_frac=REACHED_FRAC)


UNREAD = "a step does not read the embedding table, the vision tower, nor the MTP layer of this build"
RATE = ("no all-reduce reaches the line rate without peer access: "
        "ours takes the 4.0 GB/s that article 2 measured through host memory")
READS = {  # claim -> (its value where all is read, or the bytes that `more` says; what is wrong beside that)
    "t_weights": (lambda **more: setting(**more).weight_read_s / MS, ""),
    "decode_ceiling": (bound, "; nor is it a compute bound but one of memory bandwidth"),
    "single_gpu_time": (lambda **more: setting(ranks=1, **more).weight_read_s / MS, ""),
    "single_gpu_toks": (lambda **more: bound(ranks=1, **more), ""),
}
PROMPTS = {  # claim -> (its value of a prompt that `at` makes: the article's by `prompt`, ours by `slow`; our verdict)
    "prefill_allreduce": (lambda at: at(8192).communication_s / at(8192).allreduces / MS, "wrong", RATE),
    "prefill_comm": (lambda at: at(8192).communication_s / MS, "wrong", RATE),
    "prefill_gemm": (lambda at: at(8192).linear_s, "loose",
                     "no kernel reaches the full rate; a public series of prompts is explained by 0.7 of it"),
    "prefill_share_low": (lambda at: at(8192).communication_frac, "wrong", RATE + "; the arithmetic is slower too"),
    "prefill_262k_comm": (lambda at: at(262144).communication_s, "wrong", RATE),
    "prefill_262k_gemm": (lambda at: at(262144).linear_s, "loose",
                          "the linear part only, at the full rate; attention then takes several times as long"),
}
DECODED = {"comm": lambda v: v.communication_s / MS, "ceiling_comm": lambda v: v.comm_ceiling_tokens_per_s,
           "total": lambda v: v.pass_s / MS, "toks": lambda v: v.decode_tokens_per_s, "frac": lambda v: v.bound_frac}
COMPUTED = {f"a1.{name}": how for name, how in {
    "fp4_dense": lambda: ITS.flop_per_s / 2 / TFLOP, "pcie5x8": lambda: 32 * 8 / 8 * 128 / 130,
    "col_row_allreduces": lambda: allreduces(1), "payload_megatron": lambda: payload(MODEL.hidden),
    "payload_naive_a": lambda: payload(MODEL.intermediate), "payload_naive_b": lambda: 2 * payload(MODEL.hidden),
    "naive_a_ratio": lambda: payload(MODEL.intermediate) / payload(MODEL.hidden),
    **{f"fits_{name}": lambda size=size: fits(FP8, weights_bytes=size) >= ITS.context_tokens  # the everyday context
       for name, size in (("bf16", BF16_BYTES), ("fp8", FP8_BYTES), ("nvfp4", MODEL.weights_bytes))},
    "prefill_payload": lambda: prompt(8192).message_bytes / MIB, "prefill_flops": lambda: prompt(8192).linear_flop,
    **{name: lambda how=how: how(prompt) for name, (how, *_) in PROMPTS.items()},
    **{name: how for name, (how, _) in READS.items()},
    "threshold": lambda: ALARM_FRAC * bound(), "allreduces_per_token": lambda: setting().allreduces,
    "payload_per_token": lambda: setting().allreduces * setting().message_bytes,
    "payload_per_token_mib": lambda: setting().allreduces * setting().message_bytes / MIB,
    **{f"{name}_{us}us": lambda us=us, how=how: how(decode_view(us))
       for us in (10, 20, 50) for name, how in DECODED.items()},
    "weights_total_gib": lambda: MODEL.weights_bytes / GIB, "weights_per_gpu": lambda: MODEL.weights_bytes / 2 / GB,
    "weights_per_gpu_gib": lambda: MODEL.weights_bytes / 2 / GIB,
    "sustained_low": lambda: SUSTAINED[0] * setting().memory_bytes_per_s / GB,
    "sustained_high": lambda: SUSTAINED[-1] * setting().memory_bytes_per_s / GB,
    "speedup": lambda: decode_view(20, ranks=1).pass_s / decode_view(20).pass_s, "kv_per_token": lambda: kv(BF16),
    **{f"kv_{name}_{words}": lambda size=size, tokens=tokens: kv(size, tokens) / GIB
       for name, size in (("bf16", BF16), ("fp8", FP8))
       for words, tokens in (("32k", 32768), ("131k", 131072), ("262k", 262144))},
    "kv_all_full": lambda: kv(BF16, full_layers=MODEL.layers) / kv(BF16),
    "kv_model_bf16": lambda: kv(BF16, ranks=1) / KB, "kv_model_fp8": lambda: kv(FP8, ranks=1) / KB,
    "total_131k": lambda: setting(overhead_bytes=ITS.overhead_bytes, kv_element_bytes=FP8,
                                  context_tokens=131072).used_bytes / GB,
    "budget": lambda: setting().budget_bytes / GIB, "kv_budget": lambda: setting().kv_pool_bytes / GIB,
    "max_ctx_bf16": lambda: fits(BF16), "max_ctx_fp8": lambda: fits(FP8),
    "all_full_fp8_262k": lambda: kv(FP8, 262144, full_layers=MODEL.layers) / GIB, "gdn_state": lambda: state(BF16) / MB,
}.items()}
VERDICTS = {f"a1.{name}": verdict for name, verdict in {
    **{name: ("loose", lambda how=how: how(read_bytes=counted()), UNREAD + why) for name, (how, why) in READS.items()},
    **{name: (verdict, lambda how=how: how(slow), note) for name, (how, verdict, note) in PROMPTS.items()},
    "pcie5x8": ("loose", None, "right as a line rate; " + RATE),
    "payload_naive_a": ("loose", lambda: payload(MODEL.intermediate) + payload(MODEL.hidden),
                        "the output comes out split too: a second gather, of the hidden size, is needed"),
    "payload_naive_b": ("wrong", lambda: setting().naive_b_wire_bytes,
                        "the sums before the nonlinearity are the gate and up outputs, each of the intermediate size, "
                        "not of the hidden size"),
    "naive_a_ratio": ("loose", lambda: setting().naive_a_wire_bytes / setting().megatron_wire_bytes,
                      "payloads of different collectives: ours is on the wire, with both gathers"),
    "gdn_state": ("loose", lambda: state(DTYPE_BYTES["fp32"]) / MB,
                  "the checkpoint keeps the state in FP32, twice the size; it is also read and written once a token"),
    "speedup": ("loose", None, "an upper end; pairs measured on one machine lie between 1.4 and 1.9"),
    "fits_fp8": ("loose", None, "it starts, with an FP8 cache shorter than the everyday context; "
                                "builds that keep more in 16 bits do not"),
    "max_ctx_fp8": ("loose", lambda: min(fits(FP8), MODEL.native_tokens),
                    "the model ends at 262,144; the overhead of 1.2 GiB is an estimate and decides"),
    "kv_budget": ("loose", None,
                  "depends on an estimated overhead and a nominal 16 GiB; the driver reports 16,311 MiB"),
}.items()}
