"""One pass of so many tokens through linear layers and their all-reduces, as measured, beside the one pass.

Read are the columns that describe shape, card, link and tokens, never the time. No attention, cache, head or engine.
"""

from ...catalog.assumptions import ends
from ...catalog.gpus import by_name, gpu
from ...catalog.links import link, links
from ...formula.units import DTYPE_BYTES
from ..engine import kernels
from ..plan import assume, one_pass, products, wire
from . import transports
from .checks import judged, need_columns

MOST = 10**7
MATRICES = 3  # of an FFN: gate, up, down
DTYPES = [name for name in kernels.KERNELS if name in DTYPE_BYTES]
BARE = {"heads": 1, "full_layers": 0, "head_elements": 1, "context_tokens": 0, "cache_read_bytes": 0, "gap_s": 0}
ROUTING_S = ends("torch-experts", "routing_s")


def rows(columns, lines):
    """The Rows of a table with the columns of pass_cases.csv."""
    need_columns(columns, "id gpu ranks link dtype layers hidden qkv_rows o_columns tokens")
    return judged(lines, "pass_s", predict)


def predict(line):
    """((low, middle, high) in seconds, what was assumed) of one row."""
    views = [view(line, end) for end in range(len(assume.ENDS))]
    turn = f"turns to computing at {views[assume.MID].turning_tokens:,.0f} tokens"
    return tuple(v.pass_s for v in reversed(views)), turn


def view(line, end):
    """The pass of a row, by name, at one end of all ranges."""
    card, dtype = gpu(by_name(line.text("gpu"))), line.text("dtype")
    if dtype not in DTYPES or not kernels.has(card, dtype):
        raise ValueError(f"dtype = {dtype[:40]!r} is not accepted: {card.key} has rates for "
                         f"{', '.join(name for name in DTYPES if kernels.has(card, name))}")
    number = lambda name, default=None: line.number(name, default, least=0 if default == 0 else 1, most=MOST)
    layers, hidden, tokens, ranks = map(number, ("layers", "hidden", "tokens", "ranks"))
    wide, experts = number("intermediate", 0), number("experts", 0)
    parameters = layers * hidden * (number("qkv_rows") + number("o_columns") + MATRICES * wide)
    experts_s = _experts_s(line, card, layers * MATRICES * hidden, tokens, ranks, end) if experts else 0
    rate, mfu = card.numbers[kernels.rate_of(dtype)], assume.mfu_number(card, dtype)
    return one_pass.stage(
        card, _link(line, ranks), end, **BARE, hidden=hidden, ranks=ranks, tokens=tokens, parameters=parameters,
        read_bytes=parameters * DTYPE_BYTES[dtype], layers=layers, experts_s=experts_s,
        flop_per_s=rate.base_range[end], mfu_frac=mfu.base_range[end],
        linear_s=products.multiply_s(card, dtype, parameters, tokens, ranks, end),
        floor_s=products.floor_s(card, products.PRODUCTS * layers, end))


def _experts_s(line, card, each, tokens, ranks, end):
    """Time of the experts of all layers, of `each` times their size and number."""
    experts, drawn = (line.number(name, least=1, most=MOST) for name in ("experts", "experts_per_token"))
    drawn = min(drawn, experts) / experts
    all_of_them = each * experts * line.number("expert_intermediate", least=1, most=MOST)
    read = all_of_them * (1 - (1 - drawn) ** tokens) / ranks * DTYPE_BYTES[line.text("dtype")]
    rows = products.expert_tokens(tokens, drawn, end)
    compute_s = products.multiply_s(card, line.text("dtype"), all_of_them, rows, ranks, end)
    return products.roof_s(card, read, compute_s, end) + line.number("layers") * ROUTING_S[2 - end]


def _link(line, ranks):
    """The link of a row, by its name in the catalog or by its transport; in a graph an all-reduce starts sooner."""
    name = line.text("link", "none")
    found = link(name) if name in links() else transports.of(line)
    return wire.in_step(found) if ranks > 1 and line.text("graph") == "yes" else found
