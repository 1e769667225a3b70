"""Prompt speeds as people measured them, beside the model: arithmetic, attention, all-reduces and a wait per pass.

Read are the columns that describe the setting, never a speed or a time. Rows of article 2 (its embedding model) are
predicted as its chapter does.
"""

from dataclasses import replace

from ...inputs import layers as parse_layers
from ..engine import kernels
from ..engine.versions import Setting
from ..plan import apart, assume, one_pass, placement
from ..shapes.models import by_name as model_by_name
from . import article2, transports
from .checks import Cells, judge, need_columns
from .checks_decode import cards_of, engine_of
from .unequal import BATCH_TOKENS, OFFLOAD_GIB, SHORTER

QUANTITIES = ("tokens_per_s", "ttft_s")
EMBEDDER = "Nemotron-3-Embed-8B"
PAIR = {"RTX 5080": "off5080", "RTX 5060 Ti": "off5060"}  # article 2's cards -> its way of running the model on one
QUANTISED = ("attention", "state", "mlp", "experts", "shared_experts")  # modules that a build keeps in its own format
MOST_TOKENS, MOST_GIB, MOST_WATTS = 10**8, 10**5, 10**4


def rows(columns, lines):
    """The Rows of a table with the columns of prefill_cases.csv; one with a power limit only reports."""
    need_columns(columns, "id model quant gpu tp pp link engine prompt_tokens")
    found = []
    for line in lines:
        try:
            rates, note = predict(line)
            tokens = line.number("prompt_tokens", least=1, most=MOST_TOKENS)
            predictions = {"tokens_per_s": rates, "ttft_s": tuple(tokens / rate for rate in reversed(rates))}
        except ValueError as error:
            predictions, note = dict.fromkeys(QUANTITIES, str(error)), ""
        asked = [quantity for quantity in QUANTITIES if line.text(quantity)] or QUANTITIES[:1]
        line = Cells(line | {"use": "report"}) if line.text("power_limit_w") else line
        found += [judge(line, quantity, predictions[quantity], note) for quantity in asked]
    return found


def predict(line):
    """((low, middle, high) in tokens/s, what was assumed) of one row."""
    if line.text("model") == EMBEDDER:
        return _embedding(line), "as article 2's chapter"
    config, cards, format, engine = _setting(line)
    ranks, stages = transports.split_of(line)
    way = "x".join([f"tp{ranks}"] * (ranks > 1) + [f"pp{stages}"] * (stages > 1)) or "one"
    layers = parse_layers(line.text("partition"), "partition") if line.text("partition") and stages > 1 else None
    placed, link = placement.place(config, cards, way, layers), transports.of(line)
    ends = {kernels.spread(engine, format, card) for card in cards} if format else set()
    tokens, default = line.number("prompt_tokens", least=1, most=MOST_TOKENS), assume.of_engine("chunk_tokens", engine)
    chunk = line.number("chunk_tokens", int(default.value), least=1, most=MOST_TOKENS)
    setting = Setting(ranks=ranks, kernels=ends.pop() if len(ends) == 1 else ())
    job = one_pass.prompt(setting, tokens, chunk, engine=engine)
    job = replace(job, context_tokens=job.context_tokens + line.number("kv_depth_tokens", 0, most=MOST_TOKENS))
    rates = apart.rates(one_pass.terms(config, placed, link, job), tokens)
    met = ", ".join(dict.fromkeys(kernel for end in setting.kernels for kernel in end)) or "each module's own"
    limit = "; a power limit is not counted" if line.number("power_limit_w", 0, most=MOST_WATTS) else ""
    return rates, f"kernels: {met}; chunks of {chunk}; link {link.key}{limit}"


def _setting(line):
    """(the model's shape in the row's build, its cards, the format where the build's name decides, the engine)."""
    config, (ranks, stages) = model_by_name(line.text("config") or line.text("model")), transports.split_of(line)
    for name in ("engine", "quant"):
        if not line.text(name):
            raise ValueError(f"{name} is empty: it decides which kernels multiply")
    if line.number("offload_gib", 0, whole=False, most=MOST_GIB):
        raise ValueError("offload_gib is predicted for article 2's model only")
    cards, engine = cards_of(line, ranks * stages), engine_of(line)
    format, bits = kernels.build(line.text("quant"))
    if {module.format for module in config.quantised} & set(format.split(" or ")):
        return config, cards, None, engine  # the catalog's own build, each module in its format
    own = lambda m: replace(m, format=format, bits=bits) if m.name in QUANTISED else m
    return replace(config, modules=tuple(map(own, config.modules))), cards, format, engine


def _embedding(line):
    """Tokens/s of article 2's model on its machine."""
    length = line.number("prompt_tokens", least=SHORTER + 1, most=BATCH_TOKENS)
    cards, split = line.text("gpu"), transports.split_of(line)
    if set(cards.split(" + ")) != set(PAIR) and not (cards in PAIR and split == (1, 1)):
        raise ValueError(f"gpu = {cards[:60]!r} is not accepted: "
                       f"article 2's model is predicted for {' + '.join(PAIR)}, or one of them")
    if split == (1, 2):
        first, _ = parse_layers(line.text("partition"), "partition", 2, int(article2.MODEL.layers))
        return article2.speeds(article2.split_passes(first, "5060" in line.text("first_card")), length)
    if split == (2, 1):
        return article2.speeds("tp", length)
    if split == (1, 1) and cards in PAIR and line.number("offload_gib", 0, whole=False) == OFFLOAD_GIB:
        return article2.speeds(PAIR[cards], length)
    raise ValueError("article 2's model is predicted for tp = 2, for pp = 2 with its partition, "
                     "and for 4 GiB offloaded")
