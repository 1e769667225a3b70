"""What engines printed about memory, and vLLM's own planner run without a GPU, against our rules."""

from dataclasses import replace

from ...catalog.assumptions import ends
from ...formula.units import GIB
from ...inputs import as_real, refused
from ...inputs import layers as parse_layers
from ..engine.memory import plan
from ..engine.versions import VERSIONS, Refused, Setting, split_layers, version
from ..shapes.layers import Layers, State, spread
from .checks import judge, need_columns

ORACLE = ("needed_bytes", "num_blocks", "kv_tokens", "concurrency", "est_max_len", "aligned_block", "fits")
PRINTED = tuple(f"printed_{name}" for name in "needed_gib est_max_len kv_tokens concurrency load_gib block".split())
LOAD = PRINTED[4]
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
    need_columns(columns, "id layers full_layers kv_dtype tp max_len available_gib" + ("" if oracle else " engine"))
    quantities, predict = (ORACLE, _oracle) if oracle else (PRINTED, _printed)
    found = []
    for line in lines:
        predictions, note = predict(line)
        asked = [q for q in quantities if line.text(q)] or [q for q in quantities if q in predictions]
        other = predictions.get("", "not predicted")
        found += [judge(line, quantity, predictions.get(quantity, other), note) for quantity in asked]
    return found


def layers_of(line):
    """The order of the layers, as far as counts tell: full-attention layers evenly spread, every n-th the last."""
    count = lambda name, default=None: line.number(name, default, least=1)
    total = line.number("layers", least=1, most=MOST_LAYERS)
    latent, windows, states = (line.number(name, 0) for name in ("mla_kv_lora", "swa_layers", "linear_layers"))
    full = line.number("full_layers")
    if full + windows + states > total:
        added = "full_layers + swa_layers + linear_layers"
        raise ValueError(f"{added} = {full + windows + states} exceeds layers = {total}")
    if latent:
        first = Layers("latent", latent_elements=latent, rope_elements=line.number("mla_rope"))
    else:
        heads, size = (count(name, None if full else 1) for name in ("kv_heads", "head_dim"))
        first = Layers("full", heads, size, line.number("v_head_dim", size))
    others = []
    if windows:
        size = count("swa_head_dim", first.head_elements)
        window = Layers("window", count("swa_kv_heads", first.kv_heads), size, size, count("sliding_window"))
        others.append((window, windows))
    if states:
        values = count("linear_v_heads"), count("linear_v_dim", 128)
        keys = line.number("linear_k_heads"), count("linear_k_dim", 128)
        state = State(line.text("state_kind", "gdn"), *values, *keys, count("conv_kernel", 4), count("ssm_bytes", 4))
        others.append((Layers("state", state=state), states))
    return spread([(first, full), *others], total)


def setting_of(line, layers, rules):
    """The engine's setting. Empty cells mean the version's default."""
    count = lambda name, default: line.number(name, default, least=1)
    given = lambda name, kind=int: kind(line.number(name)) if line.text(name) else None
    pp, partition, stages = count("pp", 1), line.text("partition").strip('"'), ()
    if pp > 1:
        try:
            stages = split_layers(layers, pp, parse_layers(partition, "partition", pp, layers) if partition else None)
        except ValueError as error:
            raise ValueError(f"pp = {pp}: {error}") from None
    dtype, off = line.text("kv_dtype"), line.text("note").split(":")[0] == OFF and MANAGER not in line
    return Setting(
        rules=rules, ranks=count("tp", 1), stages=stages, kv_dtype=DTYPES.get(dtype, dtype),
        block_tokens=count("block_size", 16), batch_tokens=count("max_num_batched_tokens", 8192),
        context_tokens=count("max_len", 1), in_flight=given("in_flight_batches"), caching=given("prefix_caching", bool),
        mode=line.text("mamba_mode") or None, drafts=line.number("spec_tokens", 0, most=10_000),
        draft_layers=line.number("mtp_layers", 0, most=100), checkpoints=given("ckpt_blocks"),
        packed=line.text("layout").startswith("B"), hybrid=line.number(MANAGER, 0 if off else 1, most=1) == 1)


def _oracle(line):
    try:
        order = layers_of(line)
        setting = setting_of(line, len(order), version(line.text("vllm_version")))
        pool = plan(order, setting, int(line.number("available_gib", whole=False, most=1e6) * GIB))
    except Refused as refusal:
        return {"fits": (0, 0, 0), "": f"refused: {refusal}"}, str(refusal)
    except ValueError as error:
        return {"": str(error)}, ""
    found = {"needed_bytes": pool.needed_bytes, "num_blocks": pool.pool_blocks, "est_max_len": pool.fitting_tokens,
             "aligned_block": pool.block_tokens, "fits": int(pool.fits)}
    if pool.fits:
        found["kv_tokens"] = pool.printed_tokens
    elif not any(map(line.text, ORACLE)):
        found = {"fits": 0}
    found = {name: (exact, exact, exact) for name, exact in found.items()}
    if pool.fits:
        most = pool.concurrency
        found["concurrency"] = most - HALF_MICRO, round(most, 6), most + HALF_MICRO
    return found, "" if setting.hybrid else "hybrid cache manager off"


def candidates(line):
    """The versions that may have printed this: the one named, or those with the pool's form, or all since 0.16."""
    try:
        return [version(line.text("engine_version"))]
    except ValueError:
        form = line.text("pool_form")
        if form not in ("", "old", "new"):
            raise refused("pool_form", form, "it must be old, new or empty") from None
        return [rule for rule in VERSIONS if (0, 16) <= rule.since < (0, 33) and form in ("", rule.printed)]


def _printed(line):
    found = {LOAD: _load(line)}
    if line.text(LOAD) and not any(line.text(q) for q in PRINTED if q != LOAD):
        return found, "range: what loads beside the parameters (0 to 1.4 % in these logs)"
    try:
        vllm, order, pools = line.text("engine").startswith("vllm"), layers_of(line), []
        available = line.number("available_gib", 0.0, whole=False, most=1e6)
        for rules in candidates(line) if vllm else VERSIONS[:1]:
            setting = setting_of(line, len(order), rules)
            if not vllm:
                setting = replace(setting, block_tokens=1)
            pools += [plan(order, setting, max(0.0, available + off) * GIB) for off in (0.0, -HALF_DIGIT, HALF_DIGIT)]
    except ValueError as error:
        return found | {"": str(error)}, ""
    span = lambda values, half=0.0: (min(values) - half, values[0], max(values) + half)
    form, length, room = map(line.text, ("pool_form", "max_len", "available_gib"))
    known = {"printed_block": span([p.block_tokens for p in pools])}
    both = [p.printed_tokens for p in pools] if form != "old" else []
    both += [p.printed_tokens_old for p in pools] if form != "new" else []
    if length:
        known["printed_needed_gib"] = span([p.needed_bytes / GIB for p in pools], HALF_DIGIT)
    if room:
        known["printed_kv_tokens"] = span(both)
    if length and room:
        known["printed_concurrency"] = span([p.concurrency for p in pools], HALF_DIGIT)
        known["printed_est_max_len"] = span([p.fitting_tokens for p in pools])
    return {"": "max_len or available_gib is empty", **found, **known}, ""


def _load(line):
    """Loaded weights on one GPU: parameters times bits over the ranks; a range for tables and buffers on top."""
    try:
        quant = line.text("quant")
        bits = as_real(quant.split()[1]) if quant.startswith("gguf ") else WEIGHT_BITS.get(quant)
        if bits is None:
            return f"quant = {quant[:40]!r} does not say which modules stay in 16 bits"
        size = line.number("params_b", whole=False, most=1e6) * 1e9 * bits / 8 / line.number("tp", 1, least=1) / GIB
        return tuple(size * frac for frac in ends("load", "loaded_frac"))
    except ValueError as error:
        return str(error)
