"""vLLM 0.33.0's own start-up checks, without a GPU, on the lines that `tpmodel plan` prints. Run by `make vllm-lines`.

Each line must be accepted, and for the same bytes of KV cache vLLM must count the plan's blocks and tokens. What the
plan refuses vLLM must refuse; and a line altered by hand where and as it must.
"""

from functools import lru_cache
from importlib.util import find_spec

import pytest
import vllm_folders
import vllm_lines
from conftest import missing
from vllm_standins import Card

from tpmodel.catalog.gpus import gpu
from tpmodel.planner.engine.starts import capability
from tpmodel.planner.plan import build
from tpmodel.planner.plan.line import CACHE_FLAGS
from tpmodel.planner.plan.plan import make
from tpmodel.planner.plan.values import Ask
from tpmodel.planner.shapes.models import shapes

pytestmark = [pytest.mark.vllm_lines, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # torch's own
TI = "rtx-5060-ti-16gb"
# Settings that the plan refuses, and the words in which vLLM refuses the line that it would have been.
NO_FP8 = "FP8 KV cache is not supported by the {} backend on {}); native FP8 (fp8e4nv) requires SM89+."
REFUSED = [
    ("qwen3-8b", ["rtx-3090"], "one", dict(kv_dtype="fp16"), "config",
     'kv_cache_dtype="float16" is incompatible with dtype="bfloat16".'),
    ("qwen3-8b", ["rtx-2080-ti"] * 2, "tp", dict(kv_dtype="fp8"), "build",
     NO_FP8.format("Triton attention", "GeForce RTX 2080 Ti (compute capability 7.5")),
    ("qwen3-8b", ["rtx-3090"], "one", dict(kv_dtype="fp8_per_token_head"), "build",
     NO_FP8.format("Triton attention", "GeForce RTX 3090 (compute capability 8.6")),
    ("gpt-oss-20b", ["rtx-3090"], "one", dict(kv_dtype="fp8"), "build",
     NO_FP8.format("Triton attention", "GeForce RTX 3090 (compute capability 8.6")),
    ("gpt-oss-20b", ["rtx-5090"], "one", dict(kv_dtype="nvfp4"), "build",
     "FLASHINFER: [fa2 prefill misreads an NVFP4 KV cache at head_size 64]"),
    ("gpt-oss-20b", ["h200"] * 16, "tp", {}, "build", "integer modulo by zero"),
    ("deepseek-v3", ["a100-80gb"] * 16, "tp", dict(kv_dtype="fp8"), "build",
     NO_FP8.format("Triton MLA", "A100 80 GB SXM (compute capability 8.0")),
    ("deepseek-v3", ["h200"] * 8, "tp", dict(kv_dtype="fp8_ds_mla"), "build",
     "FLASH_ATTN_MLA: [kv_cache_dtype not supported], FLASHMLA: [kv_cache_dtype not supported]"),
    ("deepseek-v3", ["h100-sxm"] * 32, "tp", {}, "build",
     "Weight input_size_per_partition = 576 is not divisible by weight quantization block_k = 128."),
]

# Builds and cards that the plan refuses; vLLM is asked with a line of our own.
NO_BUILD = [
    ("gpt-oss-20b", ["t4"], {}, "config", "Minimum capability: 80. Current capability: 75."),
    ("qwen3-8b", ["v100-pcie-32gb"], dict(quant="awq"), "config", "Minimum capability: 75. Current capability: 70."),
    ("qwen3-8b", ["v100-pcie-32gb"], dict(quant="fp8"), "config", "Minimum capability: 75. Current capability: 70."),
    ("qwen3-32b", ["rtx-3090"] * 16, dict(quant="awq"), "build", "is not aligned with the quantized weight shape"),
    ("qwen3-30b-a3b", ["rtx-3090"] * 4, dict(quant="fp8-block", repository="me/mine"), "build", "No FP8 MoE backend"),
    ("qwen3-8b", ["rtx-3090"] * 3, dict(quant="awq"), "config", "must be divisible by tensor parallel size (3)"),
]

EIGHT = "qwen3-8b", ["h200"], "one", {}
PAIR = "qwen3-8b", [TI] * 2, "tp", dict(kv_dtype="fp8", context=16384, batch=8)
TURING, LATENT = ("qwen3-8b", ["rtx-2080-ti"] * 2, "tp", {}), ("deepseek-v3", ["h200"] * 8, "tp", {})
STAGES = "llama-3.1-70b", ["a100-80gb"] * 2, "pp", dict(layers=(42, 38))
HYBRID = "qwen3.8-27b-nvfp4", [TI] * 2, "tp", dict(kv_dtype="fp8", context=65536, batch=2)
SAME = [
    HYBRID,
    ("qwen3.8-27b-nvfp4", [TI] * 2, "tp", dict(kv_dtype="fp8", context=65536)),
    ("qwen3.8-27b-nvfp4", ["rtx-5080", TI], "pp", dict(kv_dtype="fp8", context=32768)),
    ("qwen3.6-27b-nvfp4", ["rtx-5090"], "one", {}),
    ("qwen3-8b", ["a100-80gb"], "one", dict(batch=4096)),
    ("qwen3.5-27b", ["rtx-3090"] * 4, "tp", dict(context=32768, batch=4)),
    ("qwen3.5-27b", ["a100-80gb"] * 2, "tp", dict(context=32768)),
    ("qwen3.8-27b-fp8", ["rtx-4090"] * 2, "tp", dict(context=32768, batch=4)),
    ("qwen3.8-27b-fp8", ["l40s"] * 2, "tp", dict(context=32768, batch=4, mtp=1)),
    ("qwen3.8-27b-nvfp4", ["rtx-4090"] * 2, "pp", dict(context=32768, batch=2, mtp=1)),
    ("qwen3.8-27b-nvfp4", ["a100-40gb"], "one", dict(context=32768, batch=2)),
    ("qwen3.8-27b-nvfp4", [TI] * 2, "tp", dict(kv_dtype="fp8", batch=2)),
    ("qwen3.8-27b-nvfp4", ["rtx-5090"], "one", dict(kv_dtype="fp8", mtp=1, batch=2)),
    ("llama-3.1-8b", ["rtx-5080", TI], "tp", {}),
    ("deepseek-v3", ["rtx-pro-6000"] * 8, "tp", {}),
    ("deepseek-v3", ["h200"] * 8, "tp", dict(kv_dtype="fp8")),
    ("deepseek-v3", ["b200"] * 8, "tp", {}),
    ("deepseek-v3", ["b200"] * 8, "tp", dict(kv_dtype="fp8", mtp=1)),
    ("deepseek-v3", ["b200"] * 8, "pp", {}),
    ("qwen3.8-27b-nvfp4", [TI] * 2, "tp", dict(kv_dtype="fp8", context=16384, batch=2, mtp=2)),
    ("qwen3.8-27b-nvfp4", [TI] * 2, "pp", dict(kv_dtype="fp8", context=32768, batch=2)),
    ("qwen3.8-27b-nvfp4", ["rtx-pro-6000"], "one", {}),
    ("qwen3.8-27b-nvfp4", ["rtx-pro-6000"], "one", dict(kv_dtype="fp8", context=131072, batch=8, mtp=3)),
    ("qwen3.8-27b-nvfp4", ["rtx-5090"], "one", dict(kv_dtype="nvfp4", context=32768, batch=2)),
    ("qwen3.8-27b-nvfp4", ["h200"], "one", dict(kv_dtype="fp8", context=65536)),
    ("qwen3.6-27b-nvfp4", [TI] * 2, "tp", dict(context=16384, batch=2)),
    ("qwen3.6-27b-nvfp4", ["rtx-5090"], "one", dict(context=32768, batch=2, mtp=1)),
    ("qwen3.8-27b-fp8", ["h200"], "one", dict(context=32768, batch=4)),
    ("qwen3.8-27b-fp8", ["h100-sxm"] * 2, "pp", dict(context=65536, batch=4, mtp=2)),
    ("qwen3.8-27b-fp8", ["h100-sxm"] * 8, "tp", dict(context=65536, batch=16)),
    ("qwen3.8-27b", ["b200"], "one", dict(context=65536, batch=16)),
    ("qwen3.8-27b", [TI] * 2, "tp+offload", dict(context=4096)),
    ("qwen3.5-27b", ["h200"], "one", dict(mtp=1)),
    ("qwen3.5-27b", ["rtx-5090"] * 2, "tp", dict(context=4096, batch=2, mtp=1)),
    ("qwen3-32b", ["rtx-3090"] * 4, "pp", dict(context=8192)),
    ("qwen3-32b", ["rtx-5090"] * 4, "tp", dict(kv_dtype="fp8", context=32768, batch=4)),
    ("qwen3-32b", ["rtx-4090"] * 2, "tp+offload", {}),
    EIGHT,
    PAIR,
    ("qwen3-8b", ["rtx-3090"], "one", dict(kv_dtype="fp8")),
    ("qwen3-8b", ["rtx-3090"], "one", dict(kv_dtype="int8_per_token_head")),
    ("qwen3-8b", ["rtx-4090"], "one", dict(kv_dtype="fp8_per_token_head")),
    ("qwen3-8b", ["h200"], "one", dict(kv_dtype="fp8_e5m2")),
    ("qwen3-8b", ["b200"], "one", dict(kv_dtype="nvfp4")),
    ("qwen3-8b", ["dgx-spark"], "one", {}),
    TURING,
    ("qwen3-8b", ["rtx-3060-12gb"], "offload", dict(context=8192)),
    ("qwen3-4b", [TI] * 2, "pp", dict(layers=(20, 16))),
    ("qwen3-4b", [TI] * 2, "tp", dict(kv_dtype="nvfp4")),
    ("qwen3-4b", ["rtx-3060-12gb"] * 3, "pp", {}),
    ("qwen2.5-32b", ["l40s"] * 2, "tp", {}),
    ("qwen2.5-32b", ["a100-80gb"] * 2, "pp", {}),
    ("mistral-7b", ["l4"], "one", {}),
    ("mistral-7b", ["rtx-3060-12gb"], "offload", dict(context=8192)),
    ("qwen3-30b-a3b", ["l40s"] * 2, "pp", {}),
    ("qwen3-30b-a3b", ["a100-80gb"] * 4, "tp", {}),
    ("qwen3-30b-a3b", ["rtx-5090"] * 2, "tp+offload", dict(context=8192)),
    ("llama-3.1-8b", ["l4"] * 2, "tp", {}),
    ("llama-3.1-8b", ["rtx-3090"], "one", dict(reserve_gib="2")),
    STAGES,
    ("llama-3.1-70b", ["h200"] * 8, "tp", dict(kv_dtype="fp8", context=32768, batch=64)),
    ("mixtral-8x7b", ["h200"] * 2, "tp", dict(kv_dtype="fp8")),
    ("mixtral-8x7b", ["l40s"] * 4, "pp", {}),
    ("gpt-oss-20b", ["rtx-3090"], "one", {}),
    ("gpt-oss-20b", ["rtx-4090"], "one", dict(kv_dtype="fp8")),
    ("gpt-oss-20b", ["a100-80gb"], "one", dict(batch=8)),
    ("gpt-oss-20b", [TI] * 2, "pp", {}),
    ("gpt-oss-20b", ["b200"] * 2, "tp", {}),
    ("gpt-oss-20b", ["rtx-3060-12gb"], "offload", dict(context=4096)),
    ("deepseek-v3", ["h200"] * 8, "tp", dict(mtp=1)),
    ("deepseek-v3", ["h200"] * 16, "pp", dict(mtp=1)),
    ("deepseek-v3", ["a100-80gb"] * 16, "tp", {}),
    ("llama-3.1-8b", ["rtx-3090"] * 4, "tp2xpp2", dict(layers=(15, 17))),
    ("qwen3-30b-a3b", ["l40s"] * 8, "tp4xpp2", dict(batch=16, context=8192)),
    ("qwen3-8b", ["rtx-4090"] * 2, "replicas", dict(batch=16, context=4096)),
    ("qwen3-32b", ["rtx-5090"] * 8, "replicas2xtp4", dict(context=8192)),
    ("gpt-oss-20b", ["rtx-4090"] * 2, "replicas", {}),
    ("qwen3-32b", ["rtx-3060-12gb"] * 4, "pp+offload", dict(context=4096)),
    ("nemotron-3-embed-8b", [TI] * 2, "pp", dict(layers=(20, 14))),
    ("nemotron-3-embed-8b", ["rtx-4090"], "one", {}),
    ("qwen3-next-80b-a3b", ["h200"] * 2, "tp", dict(context=8192)),
    ("qwen3.5-35b-a3b", ["h200"] * 2, "pp", dict(context=8192)),
    ("qwen3.5-9b", ["rtx-5090"] * 2, "tp", dict(context=4096)),
    ("llama-4-scout", ["h200"] * 8, "tp", dict(context=8192)),
    ("gemma-3-12b", ["rtx-5090"] * 2, "tp", dict(context=4096)),
    ("gemma-2-9b", ["rtx-5090"] * 2, "pp", dict(context=4096)),
    ("gemma-4-31b", ["h200"] * 2, "tp", dict(context=8192)),
    ("ministral-3-8b", ["rtx-3090"] * 2, "tp", dict(context=4096)),
    ("glm-4.5-air", ["h200"] * 8, "tp", dict(context=8192)),
    ("glm-4-32b", ["h200"] * 2, "pp", dict(context=8192)),
    ("glm-4.7-flash", ["h200"] * 2, "tp", dict(context=8192)),
    ("deepseek-v2-lite", ["rtx-5090"] * 2, "tp", dict(context=4096)),
    ("nemotron-3-nano-30b-a3b", ["h200"] * 2, "tp", dict(context=8192)),
    ("phi-4", ["rtx-3090"] * 2, "tp", dict(context=4096)),
    ("seed-oss-36b", ["h200"] * 2, "pp", dict(context=8192)),
    ("hunyuan-a13b", ["h200"] * 2, "tp", dict(context=8192)),
    ("qwen3-30b-a3b", ["rtx-3090"] * 4, "tp", dict(quant="awq")),
    ("qwen3-30b-a3b", ["rtx-3090"] * 4, "tp", dict(quant="fp8-block")),
    ("qwen3-30b-a3b", ["rtx-4090"] * 4, "tp", dict(quant="fp8-block", repository="me/mine")),
    ("qwen3-8b", ["t4"], "one", dict(quant="awq", context=8192)),
    ("qwen3-32b", ["rtx-3090"] * 2, "tp", dict(quant="awq")),
    ("qwen3-32b", ["rtx-3090"] * 2, "pp", dict(quant="gptq")),
    ("qwen3-30b-a3b", ["rtx-4090"], "one", dict(quant="awq")),
    ("qwen3-30b-a3b", ["rtx-3090"] * 2, "tp", dict(quant="fp8")),
    ("qwen3-8b", ["rtx-2080-ti"] * 2, "tp", dict(quant="fp8", context=16384)),
    ("qwen3-32b", ["rtx-5090"] * 2, "tp", dict(quant="fp8-block")),
    ("qwen3-32b", ["h100-nvl"], "one", dict(quant="fp8-block", repository="Qwen/Qwen3-32B-FP8", weights_gib=31.5)),
    ("qwen3-32b", ["rtx-5090"], "one", dict(quant="nvfp4", context=16384)),
    ("qwen3-30b-a3b", ["rtx-5090"] * 2, "pp", dict(quant="nvfp4")),
    ("qwen3-8b", ["rtx-4090"], "one", dict(quant="mxfp4")),
    ("qwen3-8b", ["t4"], "one", dict(quant="mxfp4", context=8192)),
    ("qwen3-30b-a3b", ["rtx-5090"], "one", dict(quant="mxfp4")),
    ("qwen3.5-27b", ["rtx-5090"] * 2, "tp", dict(quant="mxfp4", context=32768, batch=2)),
    ("qwen3.5-27b", ["rtx-5090"] * 2, "tp", dict(quant="fp8", context=32768, batch=2, text_only=True, mtp=1)),
    ("qwen3.5-27b", ["rtx-3090"] * 2, "tp", dict(quant="awq", context=32768, batch=2, text_only=True)),
    ("qwen3.8-27b-nvfp4", ["rtx-4090-48gb"], "one", dict(max_num_seqs=4, max_num_batched_tokens=4096, text_only=True)),
]

# Good lines, altered by hand: the setting, what in its line (None: at its end) is replaced by what, and the refusal.
ALTERED = [
    (EIGHT, "--max-model-len", "--max-length", "parse", "unrecognized arguments: --max-length 40960"),
    (EIGHT, None, "--speculative-config '{method: mtp}'", "parse", "argument --speculative-config"),
    (EIGHT, None, "--kv-cache-dtype fp7", "config", "Invalid kv_cache_dtype"),
    (LATENT, "size 8", "size 3", "config", "attention heads (128) must be divisible by tensor parallel size (3)."),
    (PAIR, "size 2", "size 4", "config", "World size (4) is larger than the number of available GPUs (2)"),
    (EIGHT, "40960", "65536", "config", "max_model_len (65536) is greater than the derived max_model_len"),
    (PAIR, "seqs 8", "seqs 4096", "config", "(2048) must be greater than or equal to max_num_seqs (4096)."),
    (EIGHT, None, """--speculative-config '{"method": "mtp", "num_speculative_tokens": 1}'""", "config",
     "Unsupported speculative method: 'mtp'"),
    (EIGHT, "0.92", "1.2", "config", "gpu_memory_utilization"),
    (TURING, None, "--dtype bfloat16", "worker",
     "Bfloat16 is only supported on GPUs with compute capability of at least 8.0."),
    (STAGES, "42,38", "42,37", "build", "sum(partitions)=79 does not match num_hidden_layers=80."),
    (LATENT, None, "--kv-cache-dtype fp8 --attention-backend FLASH_ATTN_MLA", "build", "kv_cache_dtype not supported"),
    (("qwen3-4b", ["rtx-3060-12gb"], "one", dict(context=16384)), "16384", "40960", "plan", "GiB KV cache is needed"),
    (HYBRID, "seqs 2", "seqs 2000", "graphs", "max_num_seqs (2000) exceeds available Mamba cache blocks ("),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Where the model folders go; vLLM is imported, its GPU stood in for."""
    if find_spec("vllm") is None:
        missing("no vLLM in this Python: run `make vllm-lines`")
    vllm_lines.prepare()
    return tmp_path_factory.mktemp("models")


@lru_cache(maxsize=None)
def planned(model, gpus, way, fields):
    """The plan of a setting."""
    made = make(Ask(model, gpus, way, **dict(fields)))
    assert made.command, (made.best.label, made.verdict)
    return made


def plan_of(model, gpus, way, fields):
    return planned(model, tuple(gpus), way, tuple(fields.items()))


def card(made, count=None):
    """The GPU that vLLM is told of: the first, as many as there are."""
    first = made.machine.cards[0]
    sm = divmod(round(10 * capability(first)), 10)
    return Card(first.name, sm, int(first.values().get("reported_bytes", first.vram_bytes)),
                count or len(made.machine.cards))


def asked(made, folders, line=None, count=None):
    """What vLLM says of the plan's line, or of another, for the plan's own bytes of KV cache on every stage."""
    placed, folder = made.best.placement, folders / made.ask.model
    pool_bytes = max(0.0, min(memory["kv_pool_bytes"] for memory in made.best.memories))
    pools = [pool_bytes] * len(placed.layers)
    ready = made.ask.quant if build.loading(made.ask) is None else None
    written = vllm_folders.write(made.ask.model, folder / (ready or "plain"), ready)
    return vllm_lines.said(line or made.command, written, card(made, count), pools)


def counted(pool):
    return {"blocks": pool.pool_blocks, "tokens": pool.printed_tokens}


def accepted(found, made):
    """vLLM's blocks and tokens of a line that it must accept as the model that it is."""
    assert "refused" not in found, (made.command, found)
    assert (found["runner"], found["architecture"]) == vllm_folders.built_as(made.ask.model)
    return {key: found[key] for key in ("blocks", "tokens")}


@pytest.mark.parametrize("setting", SAME, ids=str)
def test_vllm_accepts_the_line_and_counts_as_the_plan_does(folders, setting):
    made = plan_of(*setting)
    assert accepted(asked(made, folders), made) == counted(made.best.pool), made.command


@pytest.mark.parametrize("setting", REFUSED, ids=str)
def test_what_the_plan_refuses_vllm_refuses_too(folders, setting):
    """The line of a setting that is accepted, given the format of the cache or the ranks that are not."""
    model, gpus, way, fields, step, words = setting
    with pytest.raises(ValueError, match="is not accepted"):
        make(Ask(model, tuple(gpus), way, **fields))
    if fields:
        made = plan_of(model, gpus, way, {})
        line = f"{made.command} --kv-cache-dtype {CACHE_FLAGS.get(fields['kv_dtype'], fields['kv_dtype'])}"
    else:
        made = plan_of(model, gpus[::2], way, {})
        line = made.command.replace(f"size {len(gpus) // 2}", f"size {len(gpus)}")
    found = asked(made, folders, line, len(gpus))
    assert found.get("step") == step and words in found["refused"], (line, found)


@pytest.mark.parametrize("setting", NO_BUILD, ids=str)
def test_a_build_that_the_plan_refuses_vllm_refuses_too(folders, setting):
    model, gpus, fields, step, words = setting
    with pytest.raises(ValueError, match="is not accepted"):
        make(Ask(model, tuple(gpus), "tp" if len(gpus) > 1 else "one", **fields))
    one, ask = gpu(gpus[0]), Ask(model, tuple(gpus), **fields)
    ready = None if build.loading(ask) else ask.quant
    folder = vllm_folders.write(model, folders / model / (ready or "plain"), ready)
    loaded = " ".join(build.flags(ask))
    line = f"vllm serve {model} --max-model-len 4096 --tensor-parallel-size {len(gpus)} {loaded}"
    sm = divmod(round(10 * capability(one)), 10)
    found = vllm_lines.said(line, folder, Card(one.name, sm, int(one.vram_bytes), len(gpus)), [8 * 2**30])
    assert found.get("step") == step and words in found["refused"], (line, found)


@pytest.mark.parametrize("altered", ALTERED, ids=str)
def test_a_line_altered_by_hand_is_refused_where_and_as_it_must(folders, altered):
    setting, old, new, step, words = altered
    made = plan_of(*setting)
    assert old is None or old in made.command
    found = asked(made, folders, f"{made.command} {new}" if old is None else made.command.replace(old, new))
    assert found.get("step") == step and words in found["refused"], found


def test_every_shape_every_way_and_every_family_of_cards_is_tried():
    tried = [setting[:4] for setting in SAME + REFUSED]
    assert {shapes()[model]["model_type"] for model, *_ in tried} == set(vllm_folders.CLASSES)
    assert {way for _, _, way, _ in tried} == {"one", "tp", "pp", "offload", "tp+offload", "pp+offload", "replicas",
                                               "tp2xpp2", "tp4xpp2", "replicas2xtp4"}
    assert {capability(gpu(key)) for _, gpus, _, _ in tried for key in gpus} == {7.5, 8, 8.6, 8.9, 9, 10, 12, 12.1}
