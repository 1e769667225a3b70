"""Figure 6: the same all-reduces in decode and in a prompt; and the time of a prompt against its length."""

from ...catalog.links import link
from ...formula.units import GB, GIB, KIB, MIB, TFLOP, US
from ...planner.evidence.articles import GPU, LINK, MODEL
from ...planner.evidence.measured import MIDDLE
from ...planner.evidence.prompts import PROMPT, points
from ...planner.plan import assume, one_pass, wire
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Curve, Line, Marker, Table, bar, quantity, rows, template
from .options import AS_COUNTED, CONFIG, COUNTED, ONE_GPU, ONE_LINE, SHM, STATES_BYTES, TP, note

LINKS = {"line": LINK, "peer": link("p2p-pcie5-x8"), "copy": link("staged"), "host": link("shm")}
COUNTED_MFU = assume.mfu_frac(GPU, "bf16", MIDDLE)
MULTIPLIED = CONFIG.total(without=one_pass.UNSPLIT, read=True)


def _counted_flop_per_s():
    """The one rate that all layers together have where each multiplies in its own format, if COUNTED_MFU of it is reached."""
    job = one_pass.prompt(None, assume.PROMPT_TOKENS)
    return 2 * MULTIPLIED * job.tokens / (COUNTED_MFU * one_pass.linear_s(CONFIG, GPU, 1, 1, job, MIDDLE))


EACH_ITS_OWN = f"each its own, FP4 at {assume.MFU['fp4'][MIDDLE] / COUNTED_MFU:.2g} of the fraction: {_counted_flop_per_s() / TFLOP:,.0f} TFLOP/s"
FORMATS = {f"{name}: {rate / TFLOP:,.0f} TFLOP/s": {"flop_per_s": rate} for name, rate in (
    ("FP4", GPU.fp4_flop_per_s), ("FP8", GPU.fp8_flop_per_s), ("BF16, also W4A16", GPU.bf16_flop_per_s))} | {
    EACH_ITS_OWN: {"flop_per_s": _counted_flop_per_s()}}
BUILDS = {
    f"all, as article 1: {MODEL.parameters / 1e9:.2f} billion, 20 GB": {
        "parameters": MODEL.parameters, "read_bytes": MODEL.weights_bytes, "achieved_frac": 1, "cached_tokens": 0, "states_bytes": 0},
    f"as counted: {MULTIPLIED / 1e9:.2f} billion, {CONFIG.read_bytes / GB:.2f} GB": {
        "parameters": MULTIPLIED, "read_bytes": CONFIG.read_bytes, "achieved_frac": assume.ACHIEVED[MIDDLE],
        "cached_tokens": assume.PROMPT_TOKENS, "states_bytes": STATES_BYTES}}
SHAPE = {name: getattr(MODEL, name) for name in ("layers", "full_layers", "hidden", "heads", "kv_heads", "head_elements", "element_bytes")} | {
    "attention_flop_per_s": GPU.bf16_flop_per_s, "memory_bytes_per_s": GPU.memory_bytes_per_s, "kv_element_bytes": 1}
RECIPES = PROMPT | {
    "message_bytes": "allreduce_payload_bytes",
    "state_bytes": lambda v: v.states_bytes / v.ranks,
    "linear_frac": lambda v: v.linear_s / v.pass_s,
    "busy_frac": lambda v: v.busy_s / v.pass_s,
    "working_frac": lambda v: (v.busy_s + v.communication_s) / v.pass_s,
    "all_linear_s": lambda v: v.chunks * v.linear_s,
    "all_attention_s": lambda v: v.chunks * v.attention_s,
    "all_communication_s": lambda v: v.chunks * v.communication_s,
    "all_gap_s": lambda v: v.chunks * v.gap_s,
}
SIZES = (KIB, GIB)
MESSAGES = tuple(2.0 ** (10 + i / 2) for i in range(41))
SECONDS = (1e-6, 2.0)
PROMPTS = (2048.0, 2.0**19)
LONG = (1e-2, 3e3)
CHUNKS = tuple(str(2**i) for i in range(9, 19))
AS_PLANNED = {"prompt_tokens": f"{assume.PROMPT_TOKENS}", "chunk_tokens": f"{assume.CHUNK_TOKENS}", "format": EACH_ITS_OWN, "mfu_frac": f"{COUNTED_MFU:.10g}",
              "link_bytes_per_s": f"{SHM['link_bytes_per_s'] / GB:.10g}", "bulk_latency_s": f"{SHM['bulk_latency_s'] / US:.10g}",
              "build": tuple(BUILDS)[1], **{name: COUNTED[name] for name in ("allreduce_latency_s", "gap_s")}}


def decode(v):
    """The same machine in a decode step."""
    return v.extended(tokens=1.0, context_tokens=v.cached_tokens)


def over(**at):
    """A function that replaces quantities of any view."""
    return lambda v: v.extended(**at)


def _over(entry):
    return over(**wire.numbers(entry, 2, MIDDLE))


ONE_CHUNK = note(lambda v: v.chunk_tokens >= v.prompt_tokens, "the prompt is one chunk")


def _figure(chunk, start, chunk_note, link_note=(), **more):
    """Either figure: its sliders, and what both hold; vLLM's servers start with chunks of 2,048."""
    return Figure(
        controls=(
            Slider("prompt_tokens", "Prompt", log_texts(2048, 524288, 20, start=8192), "8192", "tokens", whole=True),
            Slider("chunk_tokens", "Chunk: tokens of one pass", CHUNKS, chunk, "tokens", whole=True, silent=chunk_note),
            Slider("link_bytes_per_s", "Link, one direction, as achieved",
                   log_texts(1, 450, 20, start=(LINK.link_bytes_per_s / GB, AS_PLANNED["link_bytes_per_s"])), f"{LINK.link_bytes_per_s / GB:.10g}", "GB/s", "e9", silent=link_note),
            Slider("allreduce_latency_s", "Latency of one all-reduce", log_texts(1, 200, 20, start=(20, AS_PLANNED["allreduce_latency_s"])), "20", "µs", "e-6", silent=link_note),
            Slider("bulk_latency_s", "Start of the link's bulk protocol (0: it has one)", linear_texts(0, 100, 1), "0", "µs", "e-6", silent=ONE_LINE),
            Choice("format", "Linear layers multiply in", FORMATS, next(iter(FORMATS))),
            Slider("mfu_frac", "Fraction of that rate reached", linear_texts(0.05, 1, 0.01), "1"),
            Choice("build", "Parameters of a prompt, bytes of a decode step", BUILDS, next(iter(BUILDS))),
            Slider("gap_s", "Wait of the engine, a pass", linear_texts(0, 10, 0.1), "0", "ms", "e-3"),
            Choice("tp", "Split over", TP, "2 GPUs"),
        ),
        presets={start: {}, AS_COUNTED: AS_PLANNED}, constants=SHAPE, given=("read_bytes", "state_bytes"), recipes=RECIPES, **more)


def message_time():
    """Figure 6, live."""
    curve = lambda name, color, label, y="protocol_allreduce_s", **more: Curve(name, "message_bytes", MESSAGES, y, color, label, **more)
    one_s = lambda **at: quantity("protocol_allreduce_s", over(**at))
    return _figure(
        "8192", "article 1: one pass, FP4 at its full rate, line rate, 20 µs", ONE_CHUNK,
        name="message-time",
        title="The same all-reduces in decode and in a prompt.",
        caption="Above: one all-reduce against its message. Below: what they take of one decode step and of the whole prompt, in percent.",
        axes=(Axes("message", "one all-reduce", SIZES, SECONDS, xlog=True, ylog=True, legend=3, height=2,
                   xticks=((KIB, "1 KiB"), (32 * KIB, "32 KiB"), (MIB, "1 MiB"), (32 * MIB, "32 MiB"), (GIB, "1 GiB")),
                   yticks=((1e-6, "1 µs"), (1e-5, "10 µs"), (1e-4, "100 µs"), (1e-3, "1 ms"), (1e-2, "10 ms"), (0.1, "100 ms"), (1, "1 s"))),
              Axes("% of the time", xlim=(0, 100), ylim=(-1.5, 0.5), legend=3, yticks=((0, "decode"), (-1, "prompt")))),
        marks=(
            curve("latency", "gray", "latency", one_s(message_bytes=0.0), dashed=True),
            curve("bytes", "blue", "bytes", one_s(allreduce_latency_s=0.0, bulk_latency_s=0.0), dashed=True),
            curve("sum", "red", "both"),
            curve("host", "purple", "host memory", quantity("protocol_allreduce_s", _over(LINKS["host"]))),
            Marker("decode", quantity("message_bytes", decode), quantity("protocol_allreduce_s", decode), "green", "decode"),
            Marker("prompt", "message_bytes", "protocol_allreduce_s", "gold", "prompt", shape="s"),
            bar("decode-linear", 0, 0, quantity("busy_frac/PERCENT", decode), "blue", "linear layers", axes=1),
            bar("decode-comm", 0, quantity("busy_frac/PERCENT", decode), quantity("working_frac/PERCENT", decode), "red", axes=1),
            bar("decode-wait", 0, quantity("working_frac/PERCENT", decode), 100, "gray", axes=1),
            bar("prompt-linear", -1, 0, "linear_frac/PERCENT", "blue", axes=1),
            bar("prompt-attention", -1, "linear_frac/PERCENT", "busy_frac/PERCENT", "green", "attention", axes=1),
            bar("prompt-comm", -1, "busy_frac/PERCENT", "working_frac/PERCENT", "red", "all-reduces", axes=1),
            bar("prompt-wait", -1, "working_frac/PERCENT", 100, "gray", "engine waits", axes=1),
        ),
        readouts={
            "prompt": "Prompt: {prefill_s:2} s, of which the all-reduces are {communication_frac/PERCENT:0} %: "
                      "each carries {message_bytes/MIB:1} MiB in {protocol_allreduce_s/MS:2} ms.",
            "decode": template("Decode: {pass_s/MS:1} ms a token, of which the all-reduces are {communication_frac/PERCENT:0} %: "
                               "each carries {message_bytes/KIB:0} KiB in {protocol_allreduce_s/US:1} µs.", decode),
            "even": "Latency and bytes weigh the same at {even_message_bytes/KIB:0} KiB.",
        },
        table=Table("A prompt over your link, and over others: line rate, peer access, copies, host memory", ("", "yours", *LINKS), rows(
            (None, *map(_over, LINKS.values())),
            ("linear, s", "{all_linear_s:2}"), ("attn., s", "{all_attention_s:2}"), ("link, s", "{all_communication_s:2}"),
            ("prompt, s", "{prefill_s:2}"), ("link, %", "{communication_frac/PERCENT:0}"), ("tokens/s", "{tokens_per_s:0}"))),
        size=(4.6, 4.6),
    )


LINES = {"all_linear_s": "linear", "all_attention_s": "attn.", "all_communication_s": "link", "prefill_s": "total"}


def prompt_time():
    """The time of a prompt against its length, live."""
    samples = tuple(float(2 ** (11 + i / 8)) for i in range(65))
    curve = lambda part, color, label, **more: Curve(label.split()[0], "prompt_tokens", samples, part, color, label, **more)
    found = points("length")
    lengths = {"yours": (None, "–")} | {f"{p.tokens // 1024}K": (over(prompt_tokens=float(p.tokens)), f"{p.seconds}") for p in found}
    return _figure(
        "1024", "article 1's rates and link, chunks of 1,024", ONE_GPU, ONE_GPU,
        name="prompt-time",
        title="How long does a prompt take?",
        caption="Two straight lines and a steeper one: attention grows with the square. Diamonds: public times of two such cards, vLLM, NVFP4.",
        axes=(Axes("prompt, tokens", "time", PROMPTS, LONG, xlog=True, ylog=True, legend=3,
                   xticks=((2048, "2K"), (8192, "8K"), (32768, "32K"), (131072, "128K"), (524288, "512K")),
                   yticks=((1e-2, "10 ms"), (0.1, "0.1 s"), (1, "1 s"), (10, "10 s"), (100, "100 s"), (1e3, "1,000 s"))),),
        marks=(
            curve("all_linear_s", "blue", "linear layers"),
            curve("all_attention_s", "green", "attention"),
            curve("all_communication_s", "red", "all-reduces"),
            curve("prefill_s", "text", "total", dashed=True),
            Line("overtake", "overtake_tokens", LONG[0], "overtake_tokens",
                 quantity("all_attention_s", lambda v: v.extended(prompt_tokens=v.overtake_tokens)), "gray", "crossing", dashed=True),
            *(Marker(f"measured-{p.tokens}", float(p.tokens), p.seconds, "purple", "" if i else "measured", shape="D") for i, p in enumerate(found)),
            Marker("yours", "prompt_tokens", "prefill_s", "gold", "yours"),
        ),
        readouts={
            "time": "{prompt_tokens:0} tokens take {prefill_s:1} s: {tokens_per_s:0} tokens/s.",
            "parts": "Linear layers {all_linear_s:2} s, attention {all_attention_s:2} s, all-reduces {all_communication_s:2} s, engine waits {all_gap_s:2} s.",
            "overtake": "From {overtake_tokens:0} tokens on attention takes longer than the linear layers.",
        },
        table=Table("Seconds: your setting, at the lengths measured in public", ("tokens", *LINES.values(), "public"), tuple(
            (words, *(template(f"{{{part}:1}}", at) for part in LINES), said) for words, (at, said) in lengths.items())),
        size=(4.6, 3.4),
    )
