"""Two ways to run a model on one machine, as people measured them against each other: which is faster, and by how much.

Read are the columns that describe the setting and the two ways, never a value. A row counts as right where the middle
of the model has the same way ahead. Streams that are not told are as many as fit: more of them queue, and no column
tells a limit of the engine's own.
"""

import re
from dataclasses import replace

from ... import inputs
from ...catalog import sourced
from ...catalog.gpus import gpu
from ...catalog.links import link as find_link
from ..engine.versions import Setting
from ..plan import assume, one_pass, partition, placement, versus, ways
from ..plan.machine import CARD_NEEDS, LINK_NEEDS, needed
from ..plan.values import Ask, Machine
from ..shapes.models import by_name, find_config, shapes
from . import transports
from .checks import COUNTED, Cells, judged, need_columns

QUANTITY = "ratio_a_over_b"
WORKLOADS = ("decode", "prefill", "batch")
MOST_TOKENS, MOST_STREAMS, MOST_DRAFTS = 10**8, 4096, 16


def rows(columns, lines):
    """The Rows of a table with the columns of which_cases.csv; a row is ok where the right way is ahead."""
    need_columns(columns, "id model config gpus link engine workload context prompt_tokens batch drafts way_a way_b")
    found = judged(lines, QUANTITY, predict)
    side = lambda row: "ok" if (row.predicted > 1) == (row.measured > 1) else "miss"
    return [row if row.status == "skipped" else replace(row, status=side(row)) for row in found]


def summary(found):
    """{"right_frac": share of the rows that count and could be compared whose faster way is the measured one}."""
    sides = [row.status == "ok" for row in found if row.use in COUNTED and row.status != "skipped"]
    return {"right_frac": sum(sides) / len(sides) if sides else None}


def predict(line):
    """((low, middle, high) of a's speed over b's, what would decide it where the ends disagree) of one row."""
    ratio = versus.compare(*(_arm(line, line.text(column)) for column in ("way_a", "way_b")))
    note = "" if ratio.decided else f"undecided; what would decide it: {ratio.words}"
    return (ratio.low, ratio.mid, ratio.high), note


def _arm(line, way):
    """The Arm of one way: tp2, pp3[18,9,9], replicas2xtp2; @link and #slot where the two ways differ in them."""
    way, _, slot = way.partition("#")
    name, _, wire = way.partition("@")
    extra, config = _beside(line), _config(line)
    keys = inputs.counted(part.strip() for part in line.text("gpus").split("+"))
    cards = tuple(needed(extra.get(key) or gpu(key), CARD_NEEDS, "comparison") for key in keys)
    link = needed(_link(line, wire or line.text("link", "pcie-unknown"), slot, keys, extra), LINK_NEEDS, "comparison")
    if line.text("workload") not in WORKLOADS:
        raise inputs.refused("workload", line.text("workload"), f"it must be one of {', '.join(WORKLOADS)}")
    context = line.number("context", least=1, most=MOST_TOKENS)
    setting = Setting(context_tokens=context, kv_dtype=config.kv_dtype)
    batch = line.number("batch", 1, least=1, most=MOST_STREAMS)
    if line.text("workload") == "batch" and not line.text("batch"):
        machine = Machine(cards, link, (0.0,) * len(cards))
        asked = Ask(line.text("model"), keys, context=context)
        batch = ways.way(config, machine, setting, asked, name).users.largest_batch
    placed = placement.place(config, cards, name)
    if partition.split(name, len(cards)).offload:
        raise ValueError("offload is not compared: no column tells how much of the weights is in main memory")
    return versus.Arm(config, placed, link, _jobs(line, placed, setting, batch, context), batch)


def _jobs(line, placed, setting, batch, context):
    """The work of a row: its prompt; or a step of its streams; or, where a decode row has a prompt, both."""
    engine = f"{line.text('engine')} {line.text('engine_version')}".strip()
    drafts = line.number("drafts", 0, most=MOST_DRAFTS)
    prompt = line.number("prompt_tokens", 0, most=MOST_TOKENS)
    streams, chunk = placed.share(batch), int(assume.of_engine("chunk_tokens", engine).base)
    jobs = []
    if prompt:
        job = one_pass.prompt(setting, prompt, chunk, engine=engine)
        before = context if line.text("workload") == "prefill" and context > prompt else 0
        jobs.append((streams, replace(job, context_tokens=job.context_tokens + before)))
    if line.text("workload") != "prefill":
        answer = max(1, context - prompt) if prompt else 1
        jobs.append((answer, one_pass.decode(setting, context, streams, drafts, engine=engine)))
    return tuple(jobs)


def _beside(line):
    """The catalog that stands beside the table under its name, or nothing."""
    path = line.path and line.path.with_suffix(".toml")
    return sourced.read_file(str(path)) if path and path.is_file() else {}


def _config(line):
    """The model's shape: of the catalog, or of a folder beside the table, or by the model's printed name."""
    name = line.text("config")
    if not name:
        return by_name(line.text("model"))
    return find_config(name if name in shapes() or not line.path else str(line.path.parent / name))


def _link(line, key, slot, keys, extra):
    """The link of an arm: of the catalog beside the table, or by transport and slot, or by its name in ours."""
    if key in extra:
        return extra[key]
    if key not in transports.NAMES:
        return find_link(key)
    said = slot or line.text("slots")  # and words about where the cards sit
    slots = " / ".join(re.findall("[0-9][.]0 x[0-9]+", said)) or slot
    return transports.of(Cells(link=key, gpu="+".join(keys), ranks=str(len(keys)), slots=slots,
                               host_cpu=line.text("host_cpu"), path=f"{line.text('path')} {said}"))
