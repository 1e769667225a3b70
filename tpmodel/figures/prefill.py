"""Figure 6: the same all-reduces in decode and in a prompt; and the time of a prompt against its length."""

from .. import ops
from ..catalog.articles import GPU, LINK, MODEL
from ..catalog.links import link
from ..evidence.prompts import PARTS, points
from ..formulas import collectives, decode, prefill
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Curve, Line, Marker, Table, bar
from ..units import GB, GIB, KIB, MIB, MS, TFLOP, US
from .options import ONE_GPU, TP, note

LINKS = {"line": LINK, "peer": link("p2p-pcie5-x8"), "copy": link("staged"), "host": link("shm")}
FORMATS = {f"{name}: {rate / TFLOP:,.0f} TFLOP/s": {"flop_per_s": rate} for name, rate in (
    ("FP4", GPU.fp4_flop_per_s), ("FP8", GPU.fp8_flop_per_s), ("BF16, also W4A16", GPU.bf16_flop_per_s))}
SHAPE = {name: getattr(MODEL, name) for name in
         ("layers", "full_layers", "hidden", "heads", "head_elements", "element_bytes", "parameters")} | {
    "attention_flop_per_s": GPU.bf16_flop_per_s, "context_tokens": 0}
DECODE = {"read_bytes": MODEL.weights_bytes, "memory_bytes_per_s": GPU.memory_bytes_per_s, "achieved_frac": 1,
          "kv_bytes_per_token": 1}  # an empty cache: its bytes per token do not matter
SIZES = (KIB, GIB)
MESSAGES = tuple(2.0 ** (10 + i / 2) for i in range(41))
SECONDS = (1e-6, 2.0)
PROMPTS = (2048.0, 2.0**19)
LONG = (1e-2, 3e3)
CHUNKS = tuple(str(2**i) for i in range(9, 19))
ALLREDUCES = {"allreduces": lambda v: v(collectives.allreduces)}


ONE_CHUNK = note(lambda v: v.chunk_tokens >= v.tokens, "the prompt is one chunk")


def _controls(chunk, chunk_silent, link_silent=()):
    """The sliders of both figures; vLLM's servers start with chunks of 2,048."""
    return (
        Slider("tokens", "Prompt", log_texts(2048, 524288, 20, start=8192), "8192", "tokens", whole=True),
        Slider("chunk_tokens", "Chunk: tokens of one pass", CHUNKS, chunk, "tokens", whole=True, silent=chunk_silent),
        Slider("link_bytes_per_s", "Link, one direction, as achieved", log_texts(1, 450, 20, start=LINK.link_bytes_per_s / GB),
               f"{LINK.link_bytes_per_s / GB:.10g}", "GB/s", "e9", silent=link_silent),
        Slider("allreduce_latency_s", "Latency of one all-reduce", log_texts(1, 200, 20, start=20), "20", "µs", "e-6", silent=link_silent),
        Choice("format", "Linear layers multiply in", FORMATS, next(iter(FORMATS))),
        Slider("mfu_frac", "Fraction of that rate reached", linear_texts(0.05, 1, 0.01), "1"),
        Choice("tp", "Split over", TP, "2 GPUs"),
    )


def whole(v):
    """The view with every part of its prompt."""
    return v.derived(PARTS)


def _payload(v, tokens):
    return v(collectives.allreduce_payload_bytes, tokens=tokens)


def _one_s(v, message_bytes):
    return v(collectives.allreduce_s, message_bytes=message_bytes)


def _step(v):
    return v(decode.decode_s, message_bytes=v.token_bytes)


def _reads(v):
    return v(decode.weight_read_s)


def _call(v):
    """All-reduce time of one decode step."""
    return v(collectives.communication_s, message_bytes=v.token_bytes)


def _at(entry):
    """A function that puts another link into any view; None keeps its own."""
    fixed = {name: getattr(entry, name) for name in ("link_bytes_per_s", "allreduce_latency_s")} if entry else {}
    return lambda v: v.extended(**fixed)


def _row(label, function, decimals):
    views = [_at(entry) for entry in (None, *LINKS.values())]
    return (label, *((((lambda v, at=at: function(whole(at(v)))), decimals),) for at in views))


def _table():
    return Table("A prompt over your link, and over others: line rate, peer access, copies, host memory", ("", "yours", *LINKS), (
        _row("linear, s", lambda v: v.linear_s, 2),
        _row("attn., s", lambda v: v.attention_s, 2),
        _row("link, s", lambda v: v.prefill_communication_s, 2),
        _row("prompt, s", lambda v: v.prefill_s, 2),
        _row("link, %", lambda v: 100 * v.prefill_share_frac, 0),
        _row("tokens/s", lambda v: v.tokens / v.prefill_s, 0),
    ))


def _split(*parts, one=""):
    """A part of a text that speaks of all-reduces: `one` where there are none."""
    return (lambda v: ops.where(v.ranks < 2, 0, 1), (one, parts))


def _share(*names):
    """The parts of the prompt up to and with the last of `names`, in percent."""
    return lambda v: 100 * sum((getattr(whole(v), name) for name in names), 0) / whole(v).prefill_s


def message_time():
    """Figure 6, live."""
    message = lambda v: v.message_bytes
    return Figure(
        name="message-time",
        title="The same all-reduces in decode and in a prompt.",
        caption="Above: one all-reduce against its message. Below: what they take of one decode step and of the whole prompt, in percent.",
        controls=_controls("8192", ONE_CHUNK, ONE_GPU),
        constants=SHAPE | DECODE,
        derived=ALLREDUCES | {
            "token_bytes": lambda v: _payload(v, 1),
            "chunk_bytes": lambda v: _payload(v, v(prefill.pass_tokens)),
        },
        axes=(Axes("message", "one all-reduce", SIZES, SECONDS, xlog=True, ylog=True, legend=3, height=2,
                   xticks=((KIB, "1 KiB"), (32 * KIB, "32 KiB"), (MIB, "1 MiB"), (32 * MIB, "32 MiB"), (GIB, "1 GiB")),
                   yticks=((1e-6, "1 µs"), (1e-5, "10 µs"), (1e-4, "100 µs"), (1e-3, "1 ms"), (1e-2, "10 ms"), (0.1, "100 ms"), (1, "1 s"))),
              Axes("% of the time", xlim=(0, 100), ylim=(-1.5, 0.5), legend=3, yticks=((0, "decode"), (-1, "prompt")))),
        marks=(
            Curve("latency", "message_bytes", MESSAGES, lambda v: _one_s(v, 0), "gray", "latency", x=message, dashed=True),
            Curve("bytes", "message_bytes", MESSAGES, lambda v: v(collectives.allreduce_s, allreduce_latency_s=0), "blue", "bytes", x=message, dashed=True),
            Curve("sum", "message_bytes", MESSAGES, lambda v: _one_s(v, v.message_bytes), "red", "both", x=message),
            Curve("host", "message_bytes", MESSAGES, lambda v: _one_s(_at(LINKS["host"])(v), v.message_bytes),
                  "purple", "host memory", x=message),
            Marker("decode", lambda v: v.token_bytes, lambda v: _one_s(v, v.token_bytes), "green", "decode"),
            Marker("prompt", lambda v: v.chunk_bytes, lambda v: _one_s(v, v.chunk_bytes), "gold", "prompt", shape="s"),
            bar("decode-linear", 0, 0, lambda v: 100 * _reads(v) / _step(v), "blue", "linear layers", axes=1),
            bar("decode-comm", 0, lambda v: 100 * _reads(v) / _step(v), 100, "red", axes=1),
            bar("prompt-linear", -1, 0, _share("linear_s"), "blue", axes=1),
            bar("prompt-attention", -1, _share("linear_s"), _share("linear_s", "attention_s"), "green", "attention", axes=1),
            bar("prompt-comm", -1, _share("linear_s", "attention_s"), 100, "red", "all-reduces", axes=1),
        ),
        readouts={
            "prompt": ("Prompt: ", (lambda v: whole(v).prefill_s, 2), " s", _split(
                ", of which the all-reduces are ", (lambda v: 100 * whole(v).prefill_share_frac, 0), " %: each carries ",
                (lambda v: v.chunk_bytes / MIB, 1), " MiB in ", (lambda v: _one_s(v, v.chunk_bytes) / MS, 2), " ms"), "."),
            "decode": ("Decode: ", (lambda v: _step(v) / MS, 1), " ms a token", _split(
                ", of which the all-reduces are ", (lambda v: 100 * _call(v) / _step(v), 0), " %: each carries ",
                (lambda v: v.token_bytes / KIB, 0), " KiB in ", (lambda v: _one_s(v, v.token_bytes) / US, 1), " µs"), "."),
            "even": (_split("Latency and bytes weigh the same at ", (lambda v: v(collectives.even_message_bytes) / KIB, 0), " KiB.",
                            one="One GPU makes no all-reduce."),),
        },
        table=_table(),
        size=(4.6, 4.6),
    )


LINES = {"linear_s": "linear", "attention_s": "attn.", "prefill_communication_s": "link", "prefill_s": "total"}


def _seconds(label, at, measured):
    """One row: every part of the prompt of the view that `at` makes, in seconds."""
    return (label, *((((lambda v, part=part: getattr(whole(at(v)), part)), 1),) for part in LINES), measured)


def prompt_time():
    """The time of a prompt against its length, live."""
    samples = tuple(float(2 ** (11 + i / 8)) for i in range(65))
    overtake = lambda v: v(prefill.overtake_tokens)
    curve = lambda name, part, color, label, **more: Curve(name, "tokens", samples, lambda v: getattr(whole(v), part), color, label, **more)
    return Figure(
        name="prompt-time",
        title="How long does a prompt take?",
        caption="Two straight lines and a steeper one: attention grows with the square. Diamonds: public times of two such cards, vLLM, NVFP4.",
        controls=_controls("1024", ONE_GPU, ONE_GPU),
        constants=SHAPE,
        derived=ALLREDUCES,
        axes=(Axes("prompt, tokens", "time", PROMPTS, LONG, xlog=True, ylog=True, legend=3,
                   xticks=((2048, "2K"), (8192, "8K"), (32768, "32K"), (131072, "128K"), (524288, "512K")),
                   yticks=((1e-2, "10 ms"), (0.1, "0.1 s"), (1, "1 s"), (10, "10 s"), (100, "100 s"), (1e3, "1,000 s"))),),
        marks=(
            curve("linear", "linear_s", "blue", "linear layers"),
            curve("attention", "attention_s", "green", "attention"),
            curve("comm", "prefill_communication_s", "red", "all-reduces"),
            curve("total", "prefill_s", "text", "total", dashed=True),
            Line("overtake", overtake, LONG[0], overtake, lambda v: whole(v.extended(tokens=overtake(v))).attention_s, "gray", "crossing", dashed=True),
            *(Marker(f"measured-{point.tokens}", float(point.tokens), point.seconds, "purple", "" if i else "measured", shape="D")
              for i, point in enumerate(points("length"))),
            Marker("yours", lambda v: v.tokens, lambda v: whole(v).prefill_s, "gold", "yours"),
        ),
        readouts={
            "time": ((lambda v: v.tokens, 0), " tokens take ", (lambda v: whole(v).prefill_s, 1), " s: ",
                     (lambda v: v.tokens / whole(v).prefill_s, 0), " tokens/s."),
            "parts": ("Linear layers ", (lambda v: whole(v).linear_s, 2), " s, attention ", (lambda v: whole(v).attention_s, 2),
                      " s, all-reduces ", (lambda v: whole(v).prefill_communication_s, 2), " s."),
            "overtake": ("From ", (overtake, 0), " tokens on attention takes longer than the linear layers."),
        },
        table=Table("Seconds: your setting, at the lengths measured in public", ("tokens", *LINES.values(), "public"), (
            _seconds("yours", lambda v: v, "–"),
            *(_seconds(f"{point.tokens // 1024}K", lambda v, tokens=point.tokens: v.extended(tokens=tokens), f"{point.seconds}")
              for point in points("length")),
        )),
        size=(4.6, 3.4),
    )
