"""Controls and numbers that several figures share, and notes beside controls."""

from ...catalog.links import link
from ...formula import ops
from ...formula.units import DTYPE_BYTES, GB, GIB, MS, US
from ...planner.engine.versions import Setting
from ...planner.evidence.articles import GPU, LINK, MODEL, OVERHEAD, PLAIN, UTILISATION_FRAC
from ...planner.evidence.measured import waits_s
from ...planner.plan import assume, wire
from ...planner.plan.placement import cache_bytes
from ...planner.plan.plan import make
from ...planner.plan.values import Ask
from ...planner.shapes.models import find_config
from ..live import Choice, slider

AS_COUNTED = "as counted and measured"
"""The preset of every figure that shows what `plan` answers for the article's pair."""
CONFIG = find_config(MODEL.key)
PLANNED = make(Ask(MODEL.key, (GPU.key,) * 2, "tp", kv_dtype="fp8"))  # the article's pair, as `tpmodel plan` has it
LOADED_BYTES = PLANNED.config.weights_bytes  # without the MTP layer, which vLLM leaves out where nothing is drafted
TAKEN = tuple(PLANNED.best.memories[0]["overhead_range"].values())  # low, middle, high
RANGE = {words: dict(zip(("low_overhead_bytes", "mid_overhead_bytes", "high_overhead_bytes"), ends))
         for words, ends in (("article 1: {:.1f} / {:.1f} / {:.1f} GiB", OVERHEAD.base_range),
                             ("vLLM's parts: {:.2f} / {:.2f} / {:.2f} GiB", TAKEN))}
RANGE = {words.format(*(end / GIB for end in ends.values())): ends for words, ends in RANGE.items()}
ITS_RANGE, OUR_RANGE = RANGE
TAKEN_GIB = f"{TAKEN[1] / GIB:.10g}"
SHM, IN_STEP = (wire.numbers(way, 2, assume.MID) for way in (link("shm"), wire.in_step(link("shm"))))
NOMINAL = f"{GPU.vram_bytes / GIB:.0f} GiB, nominal"
DRIVER = f"{GPU.reported_bytes / GIB:.2f} GiB, as its driver gives an engine"
CARDS = {NOMINAL: {"vram_bytes": GPU.vram_bytes}, DRIVER: {"vram_bytes": GPU.reported_bytes}}
BUILD_GB = f"{LOADED_BYTES / GB:.10g}"
SHAPE = PLAIN | {name: getattr(MODEL, name) for name in
                 ("layers", "full_layers", "hidden", "heads", "kv_heads", "head_elements", "element_bytes")}
STATES_BYTES = cache_bytes(CONFIG, Setting(), 0)[2]  # of one sequence, before the split
COUNTED = {  # texts of controls
    "read_bytes": f"{CONFIG.read_bytes / GB:.10g}", "achieved_frac": f"{assume.ACHIEVED[1]:.10g}",
    "gap_s": f"{waits_s(assume.ENGINE)[1] / MS:.10g}", "context_tokens": f"{assume.PROMPT_TOKENS}",
    "allreduce_latency_s": f"{IN_STEP['allreduce_latency_s'] / US:.10g}",
    "link": "host memory, two protocols", "states": "read and written"}
PASS = {  # recipes of every figure that times a pass
    "message_bytes": "allreduce_payload_bytes",
    "state_bytes": lambda v: v.states_bytes / v.ranks,
    "working_s": lambda v: v.busy_s + v.communication_s}


def sources(constants, *entries):
    """Which of a figure's constants are numbers of these entries of the catalog: name -> the number with its source."""
    return {name: entry.numbers[name] for entry in entries for name, value in constants.items()
            if name in entry.numbers and getattr(entry, name) == value}


def note(holds, words):
    """A live text for a control's `silent`: shown while `holds` of the view is true."""
    return ((lambda v: ops.where(holds(v), 1, 0), ("", words)),)


NO_CACHE = note(lambda v: v.context_tokens <= 0, "no cache yet: the context is 0")
ONE_GPU = note(lambda v: v.ranks < 2, "one GPU makes no all-reduce")
NO_DRAFTS = note(lambda v: v.drafts < 1, "nothing is drafted")
ONE_LINE = note(lambda v: ops.maximum(v.bulk_latency_s - v.allreduce_latency_s, 0) * (v.ranks - 1) <= 0,
                "it decides nothing: one GPU, or a start no later than the first protocol's")
BEYOND = "A bar goes on beyond the axis; the table has its number."
NO_BYTES = 1e18  # a bandwidth at which a message's bytes take no time
LINKS = {"latency alone, as article 1": {"link_bytes_per_s": NO_BYTES, "bulk_latency_s": 0},
         "PCIe 5.0 x8 line rate, one straight line": {"link_bytes_per_s": LINK.link_bytes_per_s, "bulk_latency_s": 0},
         COUNTED["link"]: {name: SHM[name] for name in ("link_bytes_per_s", "bulk_latency_s")}}
STATES = {"not counted": {"states_bytes": 0}, COUNTED["states"]: {"states_bytes": STATES_BYTES}}


def gpus(*counts, silent=()):
    """Over how many GPUs a model is split: 1, 2, 4, 8 unless others are given."""
    options = {f"{n} GPU{'s' * (n > 1)}": {"ranks": n} for n in counts or (1, 2, 4, 8)}
    return Choice("tp", "Split over", options, "2 GPUs", silent)


def formats(quantity, *names):
    """Options of a choice: formats by name, each of which sets the bytes of one element."""
    return {name: {quantity: DTYPE_BYTES[name.lower()]} for name in names}


def cache_format(silent=()):
    """In which format the cache is kept."""
    return Choice("kv_dtype", "KV cache stored as", formats("kv_element_bytes", "BF16", "FP8"), "FP8", silent)


def overhead_range():
    """Between which ends the overhead lies."""
    return Choice("range", "Range of the overhead", RANGE, ITS_RANGE)


def share(least, start=UTILISATION_FRAC, silent=()):
    """The share of a card that the engine takes."""
    return slider("utilisation_frac", "Fraction the engine may take", least, 1, start, step=0.01, silent=silent)


def latency(start=20, silent=(), counted=COUNTED):
    """The latency of an all-reduce, from article 1's unless another is given; `counted` in a decode step."""
    return slider("allreduce_latency_s", "Latency of one all-reduce", 1, 200, start, "µs",
                  counted["allreduce_latency_s"], silent=silent)
