"""Choices that several figures share, and notes beside controls."""

from ...catalog.links import link
from ...formula import ops
from ...formula.units import DTYPE_BYTES, GB, GIB, MIB, MS, US
from ...planner.engine.versions import Setting
from ...planner.evidence.articles import GPU, LINK, MODEL
from ...planner.evidence.blocks import article_plan
from ...planner.plan import assume, wire
from ...planner.plan.placement import cache_bytes
from ...planner.shapes.models import find_config

TP = {"1 GPU": {"ranks": 1}, "2 GPUs": {"ranks": 2}, "4 GPUs": {"ranks": 4}, "8 GPUs": {"ranks": 8}}
KV_DTYPES = {name: {"kv_element_bytes": DTYPE_BYTES[name.lower()]} for name in ("BF16", "FP8")}
NVFP4_BYTES = (4 + 8 / 16) / 8  # 4 bits, and one 8-bit scale for each 16 elements
WEIGHT_DTYPES = {name: {"element_bytes": size} for name, size in
                 (("BF16", DTYPE_BYTES["bf16"]), ("FP8", DTYPE_BYTES["fp8"]), ("NVFP4", NVFP4_BYTES))}
ACTIVATION_DTYPES = {name: {"element_bytes": DTYPE_BYTES[name.lower()]} for name in ("BF16", "FP8")}

AS_COUNTED = "as counted and measured"
"""The preset of every figure that shows what `plan` answers for the article's pair."""
CONFIG = find_config(MODEL.key)
SHM = wire.numbers(link("shm"), 2, assume.ENDS.index("mid"))
NOMINAL = f"{GPU.vram_bytes / GIB:.0f} GiB, nominal"
DRIVER = f"{GPU.reported_bytes / MIB:,.0f} MiB, as its driver reports"
BUILD_GB = f"{CONFIG.weights_bytes / GB:.10g}"
LONGEST_TOKENS = f"{article_plan('0.33', vram_bytes=GPU.reported_bytes, weights_bytes=CONFIG.weights_bytes).fitting_tokens:.0f}"
STATES_BYTES = cache_bytes(CONFIG, Setting(), 0)[2]  # of one sequence, before the split
COUNTED = {  # texts of controls
    "read_bytes": f"{CONFIG.read_bytes / GB:.10g}",
    "achieved_frac": f"{assume.ACHIEVED[1]:.10g}",
    "gap_s": f"{assume.GAPS_S['vllm'][1] / MS:.10g}",
    "context_tokens": f"{assume.PROMPT_TOKENS}",
    "allreduce_latency_s": f"{SHM['allreduce_latency_s'] / US:.10g}",
    "link": "host memory, two protocols",
    "states": "read and written",
}


def note(holds, words):
    """A live text for a control's `silent`: shown while `holds` of the view is true."""
    return ((lambda v: ops.where(holds(v), 1, 0), ("", words)),)


NO_CACHE = note(lambda v: v.context_tokens <= 0, "no cache yet: the context is 0")
ONE_GPU = note(lambda v: v.ranks < 2, "one GPU makes no all-reduce")
NO_DRAFTS = note(lambda v: v.drafts < 1, "nothing is drafted")
ONE_LINE = note(lambda v: ops.maximum(v.bulk_latency_s - v.allreduce_latency_s, 0) * (v.ranks - 1) <= 0,
                "it decides nothing: one GPU, or a start no later than the first protocol's")
NO_BYTES = 1e18  # a bandwidth at which a message's bytes take no time
LINKS = {"latency alone, as article 1": {"link_bytes_per_s": NO_BYTES, "bulk_latency_s": 0},
         "PCIe 5.0 x8 line rate, one straight line": {"link_bytes_per_s": LINK.link_bytes_per_s, "bulk_latency_s": 0},
         COUNTED["link"]: {name: SHM[name] for name in ("link_bytes_per_s", "bulk_latency_s")}}
STATES = {"not counted": {"states_bytes": 0}, COUNTED["states"]: {"states_bytes": STATES_BYTES}}
