"""What engines printed about memory, and vLLM's own planner run without a GPU, against our rules."""

from dataclasses import replace

from ...catalog.assumptions import ends
from ...formula.units import GIB
from ...inputs import as_real
from ...inputs import layers as parse_layers
from ..engine.memory import plan
from ..engine.versions import VERSIONS, Refused, Setting, split_layers, version
from ..shapes.layers import Layers, State, spread
from .checks import Cells, Unusable, judge, need_columns

ORACLE = ("needed_bytes", "num_blocks", "kv_tokens", "concurrency", "est_max_len", "aligned_block", "fits")
PRINTED = ("printed_needed_gib", "printed_est_max_len", "printed_kv_tokens", "printed_concurrency", "printed_load_gib", "printed_block")
HALF_DIGIT = 0.005  # GiB and concurrency are printed with two decimals
HALF_MICRO = 0.5e-6  # the planner's concurrency with six
DTYPES = {"f16": "fp16", "fp8 (656 B record)": "fp8_ds_mla"}
WEIGHT_BITS = {"bf16": 16, "fp16": 16, "fp8": 8}
MOST_LAYERS = 10_000
MANAGER = "hybrid_manager"
OFF = "hybrid manager off"  # what opens the note of such a row in a table older than the column


def rows(columns, lines):
    """The Rows of a table with the columns of kv_cases.csv or of vllm_oracle.csv."""
    oracle = "vllm_version" in columns
    need_columns(columns, ("id", "layers", "full_layers", "kv_dtype", "tp", "max_len", "available_gib") + (() if oracle else ("engine",)))
    found = []
    for line in lines if MANAGER in columns else map(_with_manager, lines):
        quantities = ORACLE if oracle else PRINTED
        measured = [q for q in quantities if line.text(q)]
        predictions, note = (_oracle if oracle else _printed)(line)
        for quantity in measured or [q for q in quantities if q in predictions]:
            found.append(judge(line, quantity, predictions.get(quantity, predictions.get("", "not predicted")), note))
    return found


def _with_manager(line):
    """The line of a table without the column, with it."""
    return Cells({**line, MANAGER: "0" if line.text("note").split(":")[0] == OFF else ""})


def layers_of(line):
    """The order of the layers, as far as counts tell: full-attention layers evenly spread, every n-th the last."""
    total = line.number("layers", least=1, most=MOST_LAYERS)
    latent, windows, states = line.number("mla_kv_lora", 0), line.number("swa_layers", 0), line.number("linear_layers", 0)
    full = line.number("full_layers")
    if full + windows + states > total:
        raise Unusable(f"full_layers + swa_layers + linear_layers = {full + windows + states} exceeds layers = {total}")
    if latent:
        first = Layers("latent", latent_elements=latent, rope_elements=line.number("mla_rope"))
    else:
        heads, size = (line.number(n, None if full else 1, least=1) for n in ("kv_heads", "head_dim"))
        first = Layers("full", heads, size, line.number("v_head_dim", size))
    others = []
    if windows:
        size = line.number("swa_head_dim", first.head_elements, least=1)
        others.append((Layers("window", line.number("swa_kv_heads", first.kv_heads, least=1), size, size,
                              line.number("sliding_window", least=1)), windows))
    if states:
        others.append((Layers("state", state=State(
            line.text("state_kind", "gdn"), line.number("linear_v_heads", least=1), line.number("linear_v_dim", 128, least=1),
            line.number("linear_k_heads"), line.number("linear_k_dim", 128, least=1), line.number("conv_kernel", 4, least=1),
            line.number("ssm_bytes", 4, least=1))), states))
    return spread([(first, full), *others], total)


def setting_of(line, layers, rules):
    """The engine's setting. Empty cells mean the version's default."""
    pp = line.number("pp", 1, least=1)
    given = line.text("partition").strip('"')
    try:
        stages = split_layers(layers, pp, parse_layers(given, "partition", pp, layers) if given else None) if pp > 1 else ()
    except ValueError as error:
        raise Unusable(f"pp = {pp}: {error}") from None
    flag = lambda name: bool(line.number(name)) if line.text(name) else None
    count = lambda name: line.number(name) if line.text(name) else None
    dtype = line.text("kv_dtype")
    return Setting(
        rules=rules, ranks=line.number("tp", 1, least=1), stages=stages, kv_dtype=DTYPES.get(dtype, dtype),
        block_tokens=line.number("block_size", 16, least=1), batch_tokens=line.number("max_num_batched_tokens", 8192, least=1),
        context_tokens=line.number("max_len", 1, least=1), in_flight=count("in_flight_batches"), caching=flag("prefix_caching"),
        mode=line.text("mamba_mode") or None, drafts=line.number("spec_tokens", 0, most=10_000),
        draft_layers=line.number("mtp_layers", 0, most=100), checkpoints=count("ckpt_blocks"),
        packed=line.text("layout").startswith("B"),
        hybrid=line.number(MANAGER, 1, most=1) == 1)


def _oracle(line):
    try:
        order = layers_of(line)
        setting = setting_of(line, len(order), version(line.text("vllm_version")))
        pool = plan(order, setting, int(line.number("available_gib", whole=False, most=1e6) * GIB))
    except Refused as refusal:
        return {"fits": (0, 0, 0), "": f"refused: {refusal}"}, str(refusal)
    except ValueError as error:
        return {"": str(error)}, ""
    exact = lambda value: (value, value, value)
    found = {"needed_bytes": exact(pool.needed_bytes), "num_blocks": exact(pool.pool_blocks), "est_max_len": exact(pool.fitting_tokens),
             "aligned_block": exact(pool.block_tokens), "fits": exact(int(pool.fits))}
    if pool.fits:
        found["kv_tokens"] = exact(pool.printed_tokens)
        found["concurrency"] = (pool.concurrency - HALF_MICRO, round(pool.concurrency, 6), pool.concurrency + HALF_MICRO)
    elif not any(line.text(q) for q in ORACLE):
        found = {"fits": exact(0)}
    return found, "" if setting.hybrid else "hybrid cache manager off"


def candidates(line):
    """The versions that may have printed this: the one named, or those with the pool's form, or all since 0.16."""
    try:
        return [version(line.text("engine_version"))]
    except ValueError:
        form = line.text("pool_form")
        return [rule for rule in VERSIONS if (0, 16) <= rule.since < (0, 33) and form in ("", rule.printed)]


def _printed(line):
    found = {"printed_load_gib": _load(line)}
    if not any(line.text(q) for q in PRINTED if q != "printed_load_gib"):
        if line.text("printed_load_gib"):
            return found, "range: what loads beside the parameters (0 to 1.4 % in these logs)"
    try:
        vllm = line.text("engine").startswith("vllm")
        order, pools = layers_of(line), []
        available = line.number("available_gib", 0.0, whole=False, most=1e6)
        for rules in candidates(line) if vllm else VERSIONS[:1]:
            setting = setting_of(line, len(order), rules)
            if not vllm:
                setting = replace(setting, block_tokens=1)
            spans = [available, available - HALF_DIGIT, available + HALF_DIGIT]
            pools += [plan(order, setting, max(0.0, gib) * GIB) for gib in spans]
    except ValueError as error:
        return found | {"": str(error)}, ""
    span = lambda values, half=0.0: (min(values) - half, values[0], max(values) + half)
    both = [p.printed_tokens for p in pools] if line.text("pool_form") != "old" else []
    both += [p.printed_tokens_old for p in pools] if line.text("pool_form") != "new" else []
    known = {"printed_block": span([p.block_tokens for p in pools])}
    if line.text("max_len"):
        known["printed_needed_gib"] = span([p.needed_bytes / GIB for p in pools], HALF_DIGIT)
    if line.text("available_gib"):
        known["printed_kv_tokens"] = span(both)
        if line.text("max_len"):
            known["printed_concurrency"] = span([p.concurrency for p in pools], HALF_DIGIT)
            known["printed_est_max_len"] = span([p.fitting_tokens for p in pools])
    return {"": "max_len or available_gib is empty", **found, **known}, ""


def _load(line):
    """Loaded weights on one GPU: parameters times bits over the ranks; a range for tables and buffers that come on top."""
    try:
        quant = line.text("quant")
        bits = as_real(quant.split()[1]) if quant.startswith("gguf ") else WEIGHT_BITS.get(quant)
        if bits is None:
            return f"quant = {quant[:40]!r} does not say which modules stay in 16 bits"
        size = line.number("params_b", whole=False, most=1e6) * 1e9 * bits / 8 / line.number("tp", 1, least=1) / GIB
        return tuple(size * frac for frac in ends("load", "loaded_frac"))
    except ValueError as error:
        return str(error)
