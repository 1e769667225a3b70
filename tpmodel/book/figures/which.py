"""Tensor parallel over a pipeline on two equal cards, against the link: one user, many users, a prompt."""

from functools import cache, reduce
from itertools import product

from ...catalog.hosts import host, slot
from ...catalog.links import link
from ...formula import ops
from ...formula.units import GB
from ...formulas import passes, pipeline
from ...planner.evidence.articles import GPU, MODEL
from ...planner.plan import assume, one_pass, placement, places, products, wire
from ...planner.plan.plan import make
from ...planner.plan.values import Ask
from ..live import Axes, Choice, Curve, Figure, Label, Line, Marker, Table, holding, slider
from .options import AS_COUNTED, note

MACHINES = {"two RTX 5060 Ti, Qwen3.8-27B in NVFP4": (MODEL.key, GPU.key, "fp8"),
            "two RTX 5090, the same model": (MODEL.key, "rtx-5090", "fp8"),
            "two RTX 3090, Qwen3-8B in BF16": ("qwen3-8b", "rtx-3090", None)}
LINKS = {"host memory, host not said, PCIe 5.0 x8": places.link_at("shm", places.Place(slot=(5, 8))),
         "host memory of an EPYC of Zen 2, PCIe 4.0 x16": places.link_at(
             "shm", places.Place(host("epyc-zen2"), slot("4.0 x16"), True)),
         "peer access, PCIe 5.0 x8": link("p2p-pcie5-x8"), "NVLink bridge of two RTX 3090": link("nvlink-bridge")}
RATES, RATIOS = (GB, 200 * GB), (0.04, 4.0)
SAMPLES = tuple(RATES[0] * 200 ** (i / 28) for i in range(29))
LOADS = {"one": ("blue", "one user"), "many": ("green", "many users"), "prompt": ("red", "a prompt")}
WAYS = {"tp": "tensor parallel", "pp": "pipeline", "off": "one card"}
SHAPE = ("hidden", "heads", "head_elements", "full_layers", "allreduces")
CARDS = ("memory_bytes_per_s", "attention_flop_per_s", "achieved_frac", "mfu_frac", "flop_per_s", "copy_bytes_per_s")
STARTS = ("allreduce_latency_s", "bulk_latency_s")  # of the link; inside a graph of a decode step others
OF_LINK = (*STARTS, *(f"step_{name}" for name in STARTS))


@cache
def _machine(name):
    """What a pair of cards and a model set, folded as `plan` folds it."""
    model, card, kv_dtype = MACHINES[name]
    plan = make(Ask(model, (card,) * 2, kv_dtype=kv_dtype))
    config, wired = plan.config, plan.machine.link
    tensor, piped = (next(way for way in plan.tried if way.placement.kind == kind) for kind in ("tp", "pp"))
    alone = next(way for way in plan.tried if len(way.placement.cards) == 1 and way.fits).placement
    job, ends = one_pass.decode(tensor.setting, assume.PROMPT_TOKENS), range(len(assume.ENDS))
    views = [one_pass.view(config, tensor.placement, wired, job, end) for end in ends]
    v, used = views[assume.MID], tensor.placement.cards[0]
    per_token, _, states = placement.cache_bytes(config, tensor.setting, 0)
    first, last = (stage.read_bytes for stage in one_pass.stages(config, piped.placement, wired, job, assume.MID))
    (kept,), (copied,) = placement.reads(config, alone, 1)
    parameters = config.total(without=products.UNSPLIT, read=True)
    by_end = {name: [getattr(here, name) for here in views] for name in (*CARDS[:-2], "gap_s")}
    by_end["flop_per_s"] = [2 * parameters / (here.ranks * here.mfu_frac * here.linear_s) for here in views]
    by_end["copy_bytes_per_s"] = [assume.host_bytes_per_s(used, end) for end in ends]
    return {**{name: getattr(v, name) for name in SHAPE}, "parameters": parameters, "read_bytes": v.read_bytes,
            "first_read_bytes": first, "last_read_bytes": last, "kept_bytes": kept, "copied_bytes": copied,
            "token_bytes": 2 * per_token, "states_bytes": 2 * states,
            "bridged": float("nvlink" in used.said),
            "most_users": min(way.users.largest_batch for way in (tensor, piped)),
            **{f"{name}_{end}": one[end] for name, one in by_end.items() for end in ends}}


def _link(entry):
    found = {}
    for end in range(len(assume.ENDS)):
        here = wire.numbers(entry, 2, end)
        found |= {f"{name}_{end}": here[name] for name in ("link_bytes_per_s", *STARTS)}
        in_step = wire.numbers(wire.in_step(entry), 2, end)
        found |= {f"step_{name}_{end}": in_step[name] for name in STARTS}
    return found | {"link_bytes_per_s": found["link_bytes_per_s_1"], "bridge": entry.key == "nvlink-bridge"}


# --- seconds of a view whose ranges all stand at one end ------------------------------------------

def _loads(v):
    """{load: (the view of its pass, passes, tokens that it gives)}."""
    step = lambda users: v.extended(tokens=users, streams=users, passes=1.0)
    prompt = v.extended(tokens=v.pass_tokens, streams=1.0, context_tokens=v.mean_context_tokens, passes=v.chunks)
    return {"one": (step(1.0), 1), "many": (step(v.users), v.users), "prompt": (prompt, v.prompt_tokens)}


def _tensor_s(v, load, end):
    """Half of every matrix on each card, and all of its all-reduces; those of a step are in a graph."""
    in_step = {} if load == "prompt" else {name: getattr(v, f"step_{name}") for name in STARTS}
    return v.passes * v.extended(**in_step).pass_s


def _stages_s(v):
    """Of either stage: half of the layers; the last one has the output head too."""
    return [v.extended(read_bytes=v.ranks * read).busy_s for read in (v.first_read_bytes, v.last_read_bytes)]


def _piped_s(v, load, end):
    """The stages in turn; several users in two groups, and the passes of a prompt, keep both of them busy."""
    if load == "many":
        half = v.extended(tokens=v.tokens / 2, streams=v.streams / 2)
        work = 2 * ops.maximum(*_stages_s(half))
        return (ops.maximum(work, sum(_stages_s(v))) if end == 0 else work) + 2 * half.handover_s + v.gap_s
    first, last = _stages_s(v)
    work = v(pipeline.run_s, passes=v.passes, longest_s=ops.maximum(first, last), stages_s=first + last, handover_s=0.0,
             stages=2.0)
    handed = v.passes * v.handover_s
    if load == "prompt" and end == assume.FAST:  # several passes hide what they hand over, as far as they last
        handed = ops.where(v.passes > 1, ops.maximum(0, handed - work), handed)
    return work + handed + v.passes * v.gap_s


def _alone_s(v, load, end):
    """One card, and what does not fit in main memory: it comes in with every pass."""
    v = v.extended(ranks=1.0, read_bytes=v.kept_bytes)
    copy_s = v.copied_bytes / v.copy_bytes_per_s
    return v.passes * ((ops.maximum(v.busy_s, copy_s) if end == assume.FAST else v.busy_s + copy_s) + v.gap_s)


SECONDS = {"tp": _tensor_s, "pp": _piped_s, "off": _alone_s}


def at(link_end, cards_end, wait_end):
    """A function that puts the starts of the link, the cards and the engine's wait of any view each at an end."""
    ends = (*((name, link_end) for name in OF_LINK), *((name, cards_end) for name in CARDS), ("gap_s", wait_end))
    return holding(**{name: f"{name}_{end}" for name, end in ends})


def _rate(way, load, ends, link_end=None):
    """Tokens/s; at an end of the link's own bandwidth too, or at that of the place on the axis."""
    def rate(v):
        v = v if link_end is None else v.extended(link_bytes_per_s=getattr(v, f"link_bytes_per_s_{link_end}"))
        here, tokens = _loads(at(*ends)(v))[load]
        return tokens / SECONDS[way](here, load, ends[1])
    return rate


def _ratio(load, ends, link_end=None):
    first, second = (_rate(way, load, ends, link_end) for way in ("tp", "pp"))
    return lambda v: first(v) / second(v)


def _side(load):
    """0 where the ranges of link and cards hold both answers, 1 for tensor parallelism, 2 for the pipeline; the wait,
    which both share, turns nothing."""
    corners = [_ratio(load, (link, cards, assume.MID), link) for link, cards in product((0, 2), repeat=2)]

    def side(v):
        found = [corner(v) for corner in corners]
        return ops.where(reduce(ops.minimum, found) > 1, 1, ops.where(reduce(ops.maximum, found) < 1, 2, 0))
    return side


RECIPES = {
    "message_bytes": "allreduce_payload_bytes",
    "attention_s": lambda v: v.streams * v(passes.attention_s, tokens=v.tokens / v.streams),
    "cache_read_bytes": lambda v: v.streams * (v.context_tokens * v.token_bytes + 2 * v.states_bytes) / v.ranks,
    **{f"{way}_{load}_{end}": _rate(way, load, (end,) * 3, end) for way in WAYS for load in LOADS for end in range(3)},
    **{f"{load}_ratio": _ratio(load, (assume.MID,) * 3) for load in LOADS},
    **{f"{load}_side": _side(load) for load in LOADS}}


def which_way():
    """The speed of tensor parallelism over that of a pipeline, live."""
    def curve(load, end):
        color, label = LOADS[load]
        return Curve(f"{load}-{end}", "link_bytes_per_s", SAMPLES, _ratio(load, (end,) * 3), color,
                     label if end == assume.MID else "", thin=end != assume.MID, dashed=end != assume.MID)

    said = "{{{0}_side?undecided|tensor parallelism|the pipeline}}".format
    against = lambda load, n: (  # no derivations of these rates: `plan --why` tells them, and the page stays small
        "tensor parallel ", (lambda v: getattr(v, f"tp_{load}_1"), n), " tokens/s, pipeline ",
        (lambda v: getattr(v, f"pp_{load}_1"), n), f": {said(load)}.")
    span = "{{{0}_{1}_0:{2}}} to {{{0}_{1}_2:{2}}}".format
    digits = {"one": 1, "many": 1, "prompt": 0}
    return Figure(
        name="which-way", title="Tensor or pipeline?", size=(4.6, 3.8), first=4,
        caption="Above the line tensor parallelism is faster, below it the pipeline. Dashed: cards, wait and start of "
                "the link at their slow and fast ends. Between the grey lines lies your link.",
        controls=(
            Choice("machine", "Cards and model", {name: _machine(name) for name in MACHINES}, next(iter(MACHINES))),
            Choice("wire", "Link", {name: _link(entry) for name, entry in LINKS.items()}, next(iter(LINKS)),
                   note(lambda v: v.bridge > v.bridged, "these cards have no connector for it: as if they had")),
            slider("users", "Users at once, 8,192 tokens each", 2, 64, 6, step=1, whole=True,
                   silent=note(lambda v: v.users > v.most_users, "more than fit at once")),
            slider("prompt_tokens", "Prompt", 512, 131072, 8192, "tokens", whole=True)),
        presets={AS_COUNTED: {}},
        constants={"ranks": 2, "element_bytes": 2, "context_tokens": assume.PROMPT_TOKENS, "experts_s": 0,
                   "floor_s": 0, "unhidden_frac": 0,  # of these cards nobody measured them apart
                   "chunk_tokens": assume.CHUNK_TOKENS},
        given=("attention_s", "cache_read_bytes", "read_bytes", "allreduces"), recipes=RECIPES,
        axes=(Axes("link, one direction, GB/s", "tensor parallel over pipeline", RATES, RATIOS, True, True,
                   tuple((n * GB, f"{n}") for n in (1, 3, 10, 30, 100)),
                   tuple((n, f"{n:g}×") for n in (0.05, 0.1, 0.2, 0.5, 1, 2, 4)), legend=3),),
        marks=(
            *(Line(f"range-{end}", f"link_bytes_per_s_{end}", RATIOS[0], f"link_bytes_per_s_{end}", RATIOS[1], "gray",
                   dashed=True) for end in (0, 2)),
            Line("even", RATES[0], 1, RATES[1], 1, "gray"),
            *(curve(load, end) for load in LOADS for end in (1, 0, 2)),
            *(Marker(f"{load}-here", "link_bytes_per_s", f"{load}_ratio", LOADS[load][0], shape="D") for load in LOADS),
            Label("tp", 170 * GB, 3.1, ("tensor",), align="right"),
            Label("pp", 170 * GB, 0.05, ("pipeline",), align="right")),
        readouts={
            "one": ("One user: ", *against("one", 1)), "many": ("{users:0} users together: ", *against("many", 1)),
            "prompt": ("A prompt of {prompt_tokens:0} tokens: ", *against("prompt", 0)),
            "link": "The link moves {link_bytes_per_s/GB:1} GB/s, or {link_bytes_per_s_0/GB:1} to "
                    "{link_bytes_per_s_2/GB:1}."},
        table=Table("Tokens/s in the middle, and with all terms at their slow and at their fast ends",
                    ("", "one user", "users together", "a prompt"), tuple(
            row for way, words in WAYS.items() for row in (
                (words, *("–" if (way, load) == ("off", "many") else f"{{{way}_{load}_1:{n}}}"
                          for load, n in digits.items())),
                ("slow to fast", *("–" if (way, load) == ("off", "many") else span(way, load, n)
                                  for load, n in digits.items()))))))
