"""What vLLM 0.33.0 itself says of a printed `vllm serve` line: its parser, configuration, model layers, KV plan.

`said(line, folder, card, pool_bytes)` runs these steps in a process of its own, without weights and without a GPU:

parse   the words of the line
config  vLLM's whole configuration
worker  the card: its formats, its free memory
build   the model of each pipeline stage, without storage
block   tokens of a block, and what each layer keeps
plan    groups, blocks and the longest context of the pool
graphs  which CUDA graphs the pool allows
"""

import contextlib
import copy
import io
import itertools
import multiprocessing
import os
import shlex
import traceback
from types import SimpleNamespace

import vllm_standins

# How vLLM refuses: pydantic's are ValueErrors, and it divides by zero where ranks outnumber the KV heads of gpt-oss.
# Whatever else is raised is a fault of the test.
REFUSALS = (ValueError, AssertionError, NotImplementedError, ZeroDivisionError, SystemExit)


def prepare():
    """The stand-ins, and the imports that all lines share."""
    vllm_standins.install()
    import vllm.entrypoints.cli.serve  # noqa: F401
    import vllm.v1.core.kv_cache_planning  # noqa: F401
    import vllm.v1.core.single_type_kv_cache_manager  # noqa: F401
    import vllm.v1.worker.gpu.attn_utils  # noqa: F401


def said(line, folder, card, pool_bytes):
    """{"runner", "architecture", "blocks", "block_tokens", "tokens", "layout"}, or {"step", "refused"}; in a fork.

    folder : takes the place of the model's name in the line
    pool_bytes : of the KV cache, of each pipeline stage
    """
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)
    child = fork.Process(target=_answer, args=(there, line, folder, card, pool_bytes))
    child.start()
    there.close()
    try:
        answer = here.recv()
    except EOFError:
        answer = {"broken": "the process ended without an answer"}
    child.join()
    if "broken" in answer:
        raise RuntimeError(f"{line}\n{answer['broken']}")
    return answer


def _answer(pipe, line, folder, card, pool_bytes):
    at = []
    printed = io.StringIO()
    try:
        vllm_standins.take(card)
        with contextlib.redirect_stderr(printed):
            answer = _steps(at, line, folder, pool_bytes)
    except REFUSALS as error:
        answer = {"step": at[-1], "refused": printed.getvalue() if isinstance(error, SystemExit) else str(error)}
    except BaseException:
        answer = {"broken": f"{at}: {traceback.format_exc()}"}
    pipe.send(answer)


def _steps(at, line, folder, pool_bytes):
    at.append("parse")
    arguments = parsed(line, folder)
    at.append("config")
    from vllm.usage.usage_lib import UsageContext

    config = arguments.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
    at.append("worker")
    worker(config)
    at.append("build")
    stages, architecture = built(config)
    at.append("block")
    specs, layouts = cached(stages)
    at.append("plan")
    pools, plan = planned(config, specs, layouts, pool_bytes)
    at.append("graphs")
    from vllm.config import set_current_vllm_config

    for stage, pool in zip(stages, pools):
        with set_current_vllm_config(stage):
            graphs(stage, pool)
    kept = config.cache_config
    return {"runner": config.model_config.runner_type, "architecture": architecture, "blocks": plan.num_blocks,
            "block_tokens": kept.block_size, "tokens": kept.kv_cache_size_tokens, "layout": kept.kv_cache_layout}


def parsed(line, folder):
    """The words of the line as vLLM's own arguments; those of the environment go there."""
    from vllm import AsyncEngineArgs
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    words = shlex.split(line)
    named = list(itertools.takewhile(lambda word: "=" in word, words))
    os.environ.update(word.split("=", 1) for word in named)
    words = words[len(named):]
    assert words[:2] == ["vllm", "serve"], words
    parser, serve = FlexibleArgumentParser(), ServeSubcommand()
    commands = parser.add_subparsers(required=True, dest="subparser")
    serve.subparser_init(commands)
    found = parser.parse_args(["serve", str(folder), *words[3:]])
    serve.validate(found)
    found.model = found.model_tag
    return AsyncEngineArgs.from_cli_args(found)


def worker(config):
    """What a worker asks before it loads anything; all of the card's memory is free."""
    from vllm.platforms import current_platform
    from vllm.v1.worker.utils import request_memory

    current_platform.check_if_supports_dtype(config.model_config.dtype)
    total = current_platform.get_device_total_memory()
    request_memory(SimpleNamespace(total_memory=total, free_memory=total, device_="cuda:0"), config.cache_config)


def built(config):
    """(each stage's configuration with its layers, the model's class): of its first rank, without storage."""
    import torch
    from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.config import get_layers_from_vllm_config, set_current_vllm_config
    from vllm.utils.torch_utils import set_default_torch_dtype

    parallel = config.parallel_config
    stages, name = [], None
    for i in range(parallel.pipeline_parallel_size):
        stage = config if parallel.world_size == 1 else copy.deepcopy(config)
        vllm_standins.groups(parallel.tensor_parallel_size, parallel.pipeline_parallel_size, i)
        stage.parallel_config.rank = i * parallel.tensor_parallel_size
        layers = lambda: get_layers_from_vllm_config(stage, AttentionLayerBase)
        with set_default_torch_dtype(stage.model_config.dtype), torch.device("meta"), set_current_vllm_config(stage):
            name = type(initialize_model(stage)).__name__
            drafting = stage.speculative_config
            if drafting and i == parallel.pipeline_parallel_size - 1:
                own = set(layers())
                initialize_model(drafting.apply_draft_overrides(stage), model_config=drafting.draft_model_config)
                for layer in layers().keys() - own:
                    layers()[layer].is_draft_layer = True
        stages.append(stage)
    return stages, name


def cached(stages):
    """(what each layer keeps, the layouts that its kernels take), of each rank; tokens of a block are settled first."""
    from vllm.platforms import current_platform
    from vllm.v1.attention.backends.utils import get_supported_kv_cache_layouts
    from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec
    from vllm.v1.worker.worker_base import get_current_attn_backends

    specs, layouts = [], []
    for stage in stages:
        current_platform.update_block_size_for_backend(stage)
        ranks = stage.parallel_config.tensor_parallel_size
        specs += [get_kv_cache_spec(stage)] * ranks
        found = get_supported_kv_cache_layouts(get_current_attn_backends(stage))
        layouts += [[layout.name for layout in found]] * ranks
    return specs, layouts


def planned(config, specs, layouts, pool_bytes):
    """(the KV plan of the first rank of each stage, the scheduler's), in the order of vLLM's engine core."""
    from vllm.v1.attention.backends.utils import resolve_kv_cache_layout
    from vllm.v1.core import kv_cache_planning as planning
    from vllm.v1.core import kv_cache_utils as utils
    from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs

    register_all_kvcache_specs(config)
    ranks = config.parallel_config.tensor_parallel_size
    layout = resolve_kv_cache_layout(config, layouts, [spec for of_rank in specs for spec in of_rank.values()])
    groups = planning.get_global_kv_cache_groups(config, specs)
    config.adjust_dcp_kv_cache_interleave_size(groups)
    room = [int(pool) for pool in pool_bytes for _ in range(ranks)]
    pools = planning.get_kv_cache_configs(config, specs, room, groups)
    for pool in pools:
        pool.kv_cache_layout = layout.name
    plan = utils.generate_scheduler_kv_cache_config(pools)
    config.cache_config.num_gpu_blocks = plan.num_blocks
    config.cache_config.block_size = min(group.kv_cache_spec.block_size for group in plan.kv_cache_groups
                                         if group.kv_cache_spec.prefix_cacheable)
    utils.update_kv_cache_capacity(config, plan)
    config.validate_block_size()
    utils.resolve_kv_cache_block_sizes(plan, config)
    return pools[::ranks], plan


def graphs(stage, pool):
    """The CUDA graphs that the stage's attention and its pool allow, as its model runner asks."""
    from vllm.config import get_layers_from_vllm_config
    from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
    from vllm.v1.attention.backend import AttentionCGSupport

    least, by = AttentionCGSupport.ALWAYS, None
    layers = get_layers_from_vllm_config(stage, AttentionLayerBase)
    for group in pool.kv_cache_groups:
        for name in group.layer_names:
            spec = getattr(group.kv_cache_spec, "kv_cache_specs", {}).get(name, group.kv_cache_spec)
            backend = layers[name].get_attn_backend()
            support = backend.get_builder_cls().get_cudagraph_support(stage, spec)
            if support.value < least.value:
                least, by = support, backend.__name__
    drafts = stage.speculative_config.num_speculative_tokens if stage.speculative_config else 0
    stage.compilation_config.resolve_cudagraph_mode_and_sizes(
        least, by, 1 + drafts, use_v2_model_runner=True, kv_cache_config=pool,
        max_num_reqs=stage.scheduler_config.max_num_seqs)
