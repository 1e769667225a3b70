"""Stands in for the parts of vLLM 0.33.0 that need a GPU, so that its own start-up checks run on a machine without one.

`install()` comes before vLLM's first import, `take(card)` after it and once a process: vLLM keeps what it was told.
"""

import os
import sys
import types
from dataclasses import dataclass
from importlib.machinery import ModuleSpec

ENVIRONMENT = {  # read once, when vLLM is imported
    "VLLM_HAS_FLASHINFER_CUBIN": "1",  # FlashInfer counts as usable without nvcc
    "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "CRITICAL",
}
COMPILED = ("_C_stable_libtorch", "_moe_C_stable_libtorch", "_flashmla_C", "_flashmla_extension_C",
            "vllm_flash_attn._vllm_fa2_C", "vllm_flash_attn._vllm_fa3_C")
OPS = ("_C", "_moe_C", "_C_cache_ops", "_flashmla_C")
ASKED = {  # what the compiled part answers for a card of capability n: our rule, not read from it
    "cutlass_scaled_mm_supports_fp8": lambda n: n >= 89,
    "cutlass_scaled_mm_supports_block_fp8": lambda n: n >= 90,
    "cutlass_scaled_mm_supports_fp4": lambda n: n >= 100,
    "cutlass_group_gemm_supported": lambda n: 90 <= n < 120,
    "mxfp4_experts_quant_supported": lambda n: 100 <= n < 120,
}


@dataclass(frozen=True)
class Card:
    """What vLLM asks of a GPU."""

    name: str
    capability: tuple
    memory_bytes: int
    count: int = 1
    processors: int = 100
    nvlink: bool = False


HELD = []  # the Card of this process
LIBRARIES = []  # an operator goes when its library does


def install():
    """Put the stand-ins in place and import what every line needs."""
    os.environ.update(ENVIRONMENT)
    import torch

    torch.version.cuda = "13.0"  # FlashInfer's state kernels ask for 13
    _compiled_modules()
    _cuda(torch)
    _device_tensors(torch)
    import vllm.platforms as platforms
    from vllm.platforms.cuda import NonNvmlCudaPlatform

    platforms._current_platform = _platform(NonNvmlCudaPlatform)()
    _triton()
    _placeholder_operators(torch)
    import vllm.model_executor.models.registry as registry

    registry._run_in_subprocess = lambda function: function()  # a child process would lack the stand-ins
    sys.modules["deep_gemm"] = _Hollow("deep_gemm")  # its compiled part is in the wheel


def take(card):
    """Make `card` the GPU of this process."""
    HELD[:] = [card]
    from vllm.model_executor.layers.quantization.utils import w8a8_utils

    w8a8_utils.CUTLASS_BLOCK_FP8_SUPPORTED = w8a8_utils.cutlass_block_fp8_supported()  # answered once, at import


class _Hollow(types.ModuleType):
    """A module that has every name, and nothing behind it."""

    def __init__(self, name):
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Never(f"{self.__name__}.{name}")


class _Never:
    """An operator, and its variants, that nothing calls in a check."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Never(f"{self._name}.{name}")

    def __call__(self, *_, **__):
        raise RuntimeError(f"{self._name} was called: a check needs what only a GPU can do")


def _compiled_modules():
    """The compiled modules, which vLLM imports for what they register, and the operators that answer yes or no."""
    from torch import library as operators

    for name in COMPILED:
        sys.modules[f"vllm.{name}"] = types.ModuleType(f"vllm.{name}")
    vision = operators.Library("torchvision", "DEF")  # PyPI's torchvision beside a CPU torch has none
    vision.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    vision.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    core, experts = operators.Library("_C", "DEF"), operators.Library("_moe_C", "DEF")
    for name, rule in ASKED.items():
        core.define(f"{name}(int capability) -> bool")
        core.impl(name, rule, "CompositeExplicitAutograd")
    experts.define("moe_permute_unpermute_supported() -> bool")
    experts.impl("moe_permute_unpermute_supported", lambda: True, "CompositeExplicitAutograd")
    LIBRARIES.extend((vision, core, experts))


def _placeholder_operators(torch):
    """Layers keep a reference to operators that nothing calls here. After vLLM's own list of them is imported."""
    import vllm._custom_ops  # noqa: F401

    space = type(torch.ops._C)
    found = space.__getattr__

    def operator(self, name):
        try:
            return found(self, name)
        except AttributeError:
            if self.name not in OPS or name.startswith("__") or "cpu" in name or "onednn" in name:
                raise
            return _Never(f"{self.name}.{name}")

    space.__getattr__ = operator


def _cuda(torch):
    """What torch would say of the card."""
    properties = lambda _=0: types.SimpleNamespace(
        name=HELD[0].name, major=HELD[0].capability[0], minor=HELD[0].capability[1],
        total_memory=HELD[0].memory_bytes, multi_processor_count=HELD[0].processors, is_integrated=False)
    for name, answer in {
            "is_available": lambda: True, "device_count": lambda: HELD[0].count if HELD else 1,
            "current_device": lambda: 0, "get_device_capability": lambda _=0: HELD[0].capability,
            "get_device_properties": properties, "get_device_name": lambda _=0: HELD[0].name,
            "current_stream": lambda _=None: _Stream(), "Stream": _Stream, "Event": _Stream}.items():
        setattr(torch.cuda, name, answer)


class _Stream:
    """A stream or an event that nothing is put on."""

    def __init__(self, *_, **__):
        pass


def _device_tensors(torch):
    """A tensor on a GPU becomes one without storage."""
    from torch.utils import _device

    _device._device_constructors()  # remembered before they are wrapped, or "meta" as default device misses them
    for name in ("empty", "zeros", "ones", "full", "tensor", "arange", "rand", "randn", "randint", "empty_strided",
                 "linspace", "as_tensor", "eye", "zeros_like", "ones_like", "empty_like", "full_like"):
        setattr(torch, name, _without_storage(getattr(torch, name)))


def _without_storage(make):
    def made(*arguments, **options):
        device = options.get("device")
        if isinstance(device, int) or str(device or "").startswith("cuda"):
            options["device"] = "meta"
        return make(*arguments, **options)
    made.__wrapped__ = make
    made.__name__ = make.__name__
    return made


def _platform(base):
    """vLLM's own CUDA platform; what it asks the driver, the Card answers."""
    from vllm.platforms.interface import DeviceCapability

    class Platform(base):
        @classmethod
        def get_device_capability(cls, device_id=0):
            return DeviceCapability(*HELD[0].capability) if HELD else None

        @classmethod
        def device_count(cls):
            return HELD[0].count

        @classmethod
        def is_fully_connected(cls, physical_device_ids):
            return HELD[0].nvlink

        @classmethod
        def is_pin_memory_available(cls):
            return False

        @classmethod
        def import_kernels(cls):
            pass

    return Platform


def _triton():
    """Triton counts as there, or vLLM takes its older runner; its placeholder lacks what Hopper's kernels list."""
    import vllm.triton_utils as triton
    import vllm.triton_utils.importing as importing

    class Config:
        def __init__(self, kwargs=None, num_warps=4, num_stages=2, **_):
            self.kwargs, self.num_warps, self.num_stages = kwargs or {}, num_warps, num_stages

    triton.HAS_TRITON = importing.HAS_TRITON = True
    triton.triton.Config = Config


def groups(ranks, stages, stage):
    """vLLM's groups of processes, as the first of `ranks` in a pipeline stage sees them; nothing is ever sent."""
    from vllm.distributed import parallel_state as state

    class Group(state.GroupCoordinator):
        def __init__(self, name, ranks, rank):
            self.unique_name, self.ranks, self.world_size = f"{name}:{stage}", ranks, len(ranks)
            self.rank, self.local_rank, self.rank_in_group = rank, rank, ranks.index(rank)
            place = ranks.index(rank)
            self.device_group = types.SimpleNamespace(size=lambda: len(ranks), rank=lambda: place)
            self.cpu_group = self.device_group
            self.device_communicator = self.mq_broadcaster = None
            self.use_device_communicator = self.use_custom_op_call = False

        def destroy(self):
            pass

    first = stage * ranks
    beside = list(range(first, first + ranks))
    through = list(range(0, ranks * stages, ranks))
    for name, members in {"_WORLD": list(range(ranks * stages)), "_PP": through, "_TP": beside, "_EP": beside,
                          "_DP": [first], "_DCP": [first], "_PCP": [first]}.items():
        setattr(state, name, Group(name, members, first))
