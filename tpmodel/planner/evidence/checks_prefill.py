"""Prompt speeds as people measured them, beside the model: arithmetic, attention, all-reduces and a wait per pass.

Read are the columns that describe the setting, never a speed or a time. Rows of article 2 (its embedding model) are
predicted as its chapter does.
"""

from ...catalog.gpus import by_name, gpu
from ...inputs import layers as parse_layers
from ..engine.versions import Setting
from ..plan import assume, one_pass, placement
from ..shapes.models import by_name as model_by_name
from . import article2, transports
from .checks import judge, need_columns
from .unequal import BATCH_TOKENS, OFFLOAD_GIB, SHORTER

QUANTITIES = ("tokens_per_s", "ttft_s")
EMBEDDER, SMALL = "Nemotron-3-Embed-8B", "Nemotron-3-Embed-1B"
PAIR = {"RTX 5080": "off5080", "RTX 5060 Ti": "off5060"}  # article 2's cards -> its way of running the model on one
PLAIN = ("bf16", "bf16", "bf16")
MULTIPLIED = {  # format in which weights of a printed kind are multiplied, slow end to fast end
    "w4a4": ("fp4", "fp4", "fp4"), "w4a16": PLAIN, "nvfp4": ("bf16", "fp8", "fp4"), "fp8": ("bf16", "fp8", "fp8"),
    "": PLAIN}
CHUNKS = {alias: int(entry.chunk_tokens) for alias, entry in assume.ENGINES.items() if "chunk_tokens" in entry.numbers}
MOST_TOKENS = 10**8


def rows(columns, lines):
    """The Rows of a table with the columns of prefill_cases.csv."""
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
        found += [judge(line, quantity, predictions[quantity], note) for quantity in asked]
    return found


def predict(line):
    """((low, middle, high) in tokens/s, what was assumed) of one row."""
    if line.text("model") == EMBEDDER:
        return _embedding(line), "as article 2's chapter"
    if line.text("model") == SMALL:
        raise ValueError("its shape is not published")
    ranks, stages = transports.split_of(line)
    if stages > 1:
        raise ValueError("pp > 1 is predicted for article 2's model only")
    card, config = gpu(by_name(line.text("gpu"))), model_by_name(line.text("model"))
    tokens, engine = line.number("prompt_tokens", least=1, most=MOST_TOKENS), line.text("engine")
    formats = next(formats for kind, formats in MULTIPLIED.items() if kind in line.text("quant").lower())
    formats = formats if assume.RATE[formats[-1]] in card.numbers else PLAIN  # 16 bits where the fastest is missing
    chunk = line.number("chunk_tokens", CHUNKS.get(engine, assume.CHUNK_TOKENS), least=1, most=MOST_TOKENS)
    link, placed = transports.of(line), placement.place(config, (card,) * ranks, "tp" if ranks > 1 else "one")
    job = one_pass.prompt(Setting(ranks=ranks), tokens, chunk, engine=engine, formats=formats)
    rates = one_pass.rates(one_pass.terms(config, placed, link, job), (tokens,) * len(assume.ENDS))
    return rates, f"weights multiplied in {' / '.join(dict.fromkeys(formats))}; link {link.key}"


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
