"""Figure 6: the same all-reduces in decode and in a prompt; and the time of a prompt against its length."""

from ...catalog.links import link
from ...formula.units import GB, GIB, KIB, MIB, TFLOP, US
from ...planner.engine.versions import Setting
from ...planner.evidence.articles import GPU, LINK, MODEL
from ...planner.evidence.measured import MIDDLE
from ...planner.evidence.prompts import PROMPT, points
from ...planner.plan import assume, one_pass, products, wire
from ..live import (Axes, Choice, Curve, Figure, Line, Marker, Slider, Table, holding, quantity, rows, slider, stack,
                    template)
from .options import (AS_COUNTED, CONFIG, COUNTED, ONE_GPU, ONE_LINE, PASS, SHAPE, SHM, STATES_BYTES, gpus, latency,
                      note)

LINKS = {name: holding(**wire.numbers(entry, 2, MIDDLE)) for name, entry in (
    ("line", LINK), ("peer", link("p2p-pcie5-x8")), ("copy", link("staged")), ("host", link("shm")))}
COUNTED_MFU = assume.mfu_number(GPU, "attention").base_range[MIDDLE]
MULTIPLIED = CONFIG.total(without=products.UNSPLIT, read=True)
JOB = one_pass.prompt(Setting(), assume.PROMPT_TOKENS)
COUNTED_S = products.work(CONFIG, GPU, 1, 1, JOB, 1, MIDDLE).linear_s
COUNTED_FLOP_PER_S = 2 * MULTIPLIED * JOB.tokens / (COUNTED_MFU * COUNTED_S)
"""The one rate that all layers have together where each multiplies in its own format, if COUNTED_MFU is reached."""
COUNTED_TIMES = assume.mfu_number(GPU, "fp4").value / COUNTED_MFU
FORMATS = {f"{name}: {rate / TFLOP:,.0f} TFLOP/s": {"flop_per_s": rate} for name, rate in (
    ("FP4", GPU.fp4_flop_per_s), ("FP8", GPU.fp8_flop_per_s), ("BF16, also W4A16", GPU.bf16_flop_per_s),
    (f"each its own, FP4 at {COUNTED_TIMES:.2g} of the fraction", COUNTED_FLOP_PER_S))}
BUILDS = {
    f"all, as article 1: {MODEL.parameters / 1e9:.2f} billion, 20 GB": {
        "parameters": MODEL.parameters, "read_bytes": MODEL.weights_bytes, "achieved_frac": 1, "cached_tokens": 0,
        "states_bytes": 0, "in_step_frac": 1},
    f"as counted: {MULTIPLIED / 1e9:.2f} billion, {CONFIG.read_bytes / GB:.2f} GB": {
        "parameters": MULTIPLIED, "read_bytes": CONFIG.read_bytes, "achieved_frac": assume.ACHIEVED[MIDDLE],
        "cached_tokens": assume.PROMPT_TOKENS, "states_bytes": STATES_BYTES,
        "in_step_frac": wire.step_share(link("shm")).base}}
RECIPES = PROMPT | PASS | {
    "linear_frac": lambda v: v.linear_s / v.pass_s,
    "busy_frac": lambda v: v.busy_s / v.pass_s,
    "working_frac": lambda v: v.working_s / v.pass_s,
    **{f"all_{part}_s": lambda v, name=f"{part}_s": v.chunks * getattr(v, name)
       for part in ("linear", "attention", "communication", "gap")}}
SIZES, SECONDS = (KIB, GIB), (1e-6, 2.0)
MESSAGES = tuple(2.0 ** (10 + i / 2) for i in range(41))
PROMPTS, LONG = (2048.0, 2.0**19), (1e-2, 3e3)
LENGTHS = tuple(float(2 ** (11 + i / 8)) for i in range(65))
AS_PLANNED = {
    "prompt_tokens": f"{assume.PROMPT_TOKENS}", "chunk_tokens": f"{assume.CHUNK_TOKENS}", "format": tuple(FORMATS)[-1],
    "mfu_frac": f"{COUNTED_MFU:.10g}", "link_bytes_per_s": f"{SHM['link_bytes_per_s'] / GB:.10g}",
    "bulk_latency_s": f"{SHM['bulk_latency_s'] / US:.10g}", "build": tuple(BUILDS)[-1],
    "allreduce_latency_s": f"{SHM['allreduce_latency_s'] / US:.10g}", "gap_s": COUNTED["gap_s"]}
ONE_CHUNK = note(lambda v: v.chunk_tokens >= v.prompt_tokens, "the prompt is one chunk")
STEP_PARTS = (("linear", "blue", "linear layers", "busy_frac/PERCENT"), ("comm", "red", "", "working_frac/PERCENT"),
              ("wait", "gray", "", 100))
PROMPT_PARTS = (("linear", "blue", "", "linear_frac/PERCENT"), ("attention", "green", "attention", "busy_frac/PERCENT"),
                ("comm", "red", "all-reduces", "working_frac/PERCENT"), ("wait", "gray", "engine waits", 100))
LINES = {"all_linear_s": "linear", "all_attention_s": "attn.", "all_communication_s": "link", "prefill_s": "total"}

decode = holding(tokens=1.0, context_tokens="cached_tokens",  # the same machine in a decode step, in a graph
                 allreduce_latency_s=lambda v: v.in_step_frac * v.allreduce_latency_s)


def _figure(chunk, start, chunk_note, link_note=(), **more):
    """Either figure: its sliders, and what both hold; vLLM's servers start with chunks of 2,048."""
    return Figure(
        controls=(
            slider("prompt_tokens", "Prompt", 2048, 524288, 8192, "tokens", whole=True),
            Slider("chunk_tokens", "Chunk: tokens of one pass", tuple(str(2**i) for i in range(9, 19)), chunk, "tokens",
                   whole=True, silent=chunk_note),
            slider("link_bytes_per_s", "Link, one direction, as achieved", 1, 450, LINK.link_bytes_per_s / GB, "GB/s",
                   AS_PLANNED["link_bytes_per_s"], silent=link_note),
            latency(silent=link_note, counted=AS_PLANNED),
            slider("bulk_latency_s", "Start of the link's bulk protocol (0: it has one)", 0, 100, 0, "µs", step=1,
                   silent=ONE_LINE),
            Choice("format", "Linear layers multiply in", FORMATS, next(iter(FORMATS))),
            slider("mfu_frac", "Fraction of that rate reached", 0.05, 1, 1, step=0.01),
            Choice("build", "Parameters of a prompt, bytes of a decode step", BUILDS, next(iter(BUILDS))),
            slider("gap_s", "Wait of the engine, a pass", 0, 10, 0, "ms", COUNTED["gap_s"], step=0.1),
            gpus()),
        presets={start: {}, AS_COUNTED: AS_PLANNED}, given=("read_bytes", "state_bytes"), recipes=RECIPES,
        constants=SHAPE | {"attention_flop_per_s": GPU.bf16_flop_per_s, "memory_bytes_per_s": GPU.memory_bytes_per_s,
                           "kv_element_bytes": 1}, **more)


def message_time():
    """Figure 6, live."""
    curve = lambda name, color, label, *at, **more: Curve(
        name, "message_bytes", MESSAGES, quantity("protocol_allreduce_s", *at), color, label, **more)
    return _figure(
        "8192", "article 1: one pass, FP4 at its full rate, line rate, 20 µs", ONE_CHUNK,
        name="message-time", title="The same all-reduces in decode and in a prompt.", size=(4.6, 4.6),
        caption="Above: one all-reduce against its message. "
                "Below: what they take of one decode step and of the whole prompt, in percent.",
        axes=(Axes("message", "one all-reduce", SIZES, SECONDS, xlog=True, ylog=True, legend=3, height=2,
                   xticks=((KIB, "1 KiB"), (32 * KIB, "32 KiB"), (MIB, "1 MiB"), (32 * MIB, "32 MiB"), (GIB, "1 GiB")),
                   yticks=((1e-6, "1 µs"), (1e-5, "10 µs"), (1e-4, "100 µs"), (1e-3, "1 ms"), (1e-2, "10 ms"),
                           (0.1, "100 ms"), (1, "1 s"))),
              Axes("% of the time", xlim=(0, 100), ylim=(-1.5, 0.5), legend=3, yticks=((0, "decode"), (-1, "prompt")))),
        marks=(
            curve("latency", "gray", "latency", holding(message_bytes=0.0), dashed=True),
            curve("bytes", "blue", "bytes", holding(allreduce_latency_s=0.0, bulk_latency_s=0.0), dashed=True),
            curve("sum", "red", "both"),
            curve("host", "purple", "host memory", LINKS["host"]),
            Marker("decode", quantity("message_bytes", decode), quantity("protocol_allreduce_s", decode), "green",
                   "decode"),
            Marker("prompt", "message_bytes", "protocol_allreduce_s", "gold", "prompt", shape="s"),
            *stack(0, STEP_PARTS, decode, "decode-{}", axes=1),
            *stack(-1, PROMPT_PARTS, name="prompt-{}", axes=1)),
        readouts={
            "prompt": "Prompt: {prefill_s:2} s, of which the all-reduces are {communication_frac/PERCENT:0} %: "
                      "each carries {message_bytes/MIB:1} MiB in {protocol_allreduce_s/MS:2} ms.",
            "decode": template("Decode: {pass_s/MS:1} ms a token, of which the all-reduces are "
                               "{communication_frac/PERCENT:0} %: each carries {message_bytes/KIB:0} KiB "
                               "in {protocol_allreduce_s/US:1} µs.", decode),
            "even": "Latency and bytes weigh the same at {even_message_bytes/KIB:0} KiB."},
        table=Table("A prompt over your link, and over others: line rate, peer access, copies, host memory",
                    ("", "yours", *LINKS), rows(
            (None, *LINKS.values()),
            ("linear, s", "{all_linear_s:2}"), ("attn., s", "{all_attention_s:2}"),
            ("link, s", "{all_communication_s:2}"), ("prompt, s", "{prefill_s:2}"),
            ("link, %", "{communication_frac/PERCENT:0}"), ("tokens/s", "{tokens_per_s:0}"))))


def prompt_time():
    """The time of a prompt against its length, live."""
    curve = lambda name, part, color, label, **more: Curve(name, "prompt_tokens", LENGTHS, part, color, label, **more)
    found = points("length")
    overtaken = quantity("all_attention_s", holding(prompt_tokens="overtake_tokens"))
    row = lambda words, public, at=None: (words, *(template(f"{{{part}:1}}", at) for part in LINES), public)
    return _figure(
        "1024", "article 1's rates and link, chunks of 1,024", ONE_GPU, ONE_GPU,
        name="prompt-time", title="How long does a prompt take?", size=(4.6, 3.4),
        caption="Two straight lines and a steeper one: attention grows with the square. "
                "Diamonds: public times of two such cards, vLLM, NVFP4.",
        axes=(Axes("prompt, tokens", "time", PROMPTS, LONG, xlog=True, ylog=True, legend=3,
                   xticks=((2048, "2K"), (8192, "8K"), (32768, "32K"), (131072, "128K"), (524288, "512K")),
                   yticks=((1e-2, "10 ms"), (0.1, "0.1 s"), (1, "1 s"), (10, "10 s"), (100, "100 s"),
                           (1e3, "1,000 s"))),),
        marks=(
            curve("linear", "all_linear_s", "blue", "linear layers"),
            curve("attention", "all_attention_s", "green", "attention"),
            curve("all-reduces", "all_communication_s", "red", "all-reduces"),
            curve("total", "prefill_s", "text", "total", dashed=True),
            Line("overtake", "overtake_tokens", LONG[0], "overtake_tokens", overtaken, "gray", "crossing", dashed=True),
            *(Marker(f"measured-{p.tokens}", float(p.tokens), p.seconds, "purple", "" if i else "measured", shape="D")
              for i, p in enumerate(found)),
            Marker("yours", "prompt_tokens", "prefill_s", "gold", "yours")),
        readouts={
            "time": "{prompt_tokens:0} tokens take {prefill_s:1} s: {tokens_per_s:0} tokens/s.",
            "parts": "Linear layers {all_linear_s:2} s, attention {all_attention_s:2} s, "
                     "all-reduces {all_communication_s:2} s, engine waits {all_gap_s:2} s.",
            "overtake": "From {overtake_tokens:0} tokens on attention takes longer than the linear layers."},
        table=Table("Seconds: your setting, at the lengths measured in public", ("tokens", *LINES.values(), "public"), (
            row("yours", "–"),
            *(row(f"{p.tokens // 1024}K", f"{p.seconds}", holding(prompt_tokens=float(p.tokens))) for p in found))))
