"""Weights from the shapes up: what each GPU holds when layers are shared, dealt out, or left in main memory."""

from ..formula import formula, ops

FFN_MATRICES = 3  # gate, up, down
NORMS = 2  # two vectors of the hidden size a layer


@formula
def layer_parameters(hidden, intermediate, heads, kv_heads, head_elements):
    r"""Parameters of one layer: attention, a gated FFN and two norms.
    returns : p_l; a token is multiplied with all of it but the norms
    limits : grouped-query attention, a dense gated FFN, no biases.
    source : Touvron et al. 2023, arXiv:2307.09288, the shape of Llama 2
    >>> layer_parameters(hidden=4096, intermediate=14336, heads=32, kv_heads=8, head_elements=128)
    218112000.0
    """
    attention = 2 * hidden * heads * head_elements + 2 * hidden * kv_heads * head_elements
    return attention + FFN_MATRICES * hidden * intermediate + NORMS * hidden


@formula
def layer_bytes(layer_parameters, element_bytes):
    r"""Weights of one layer.
    limits : one format for all of it, no scales.
    source : a product
    >>> layer_bytes(layer_parameters=218112000, element_bytes=2) / 2**30 > 0.406
    True
    """
    return layer_parameters * element_bytes


@formula
def stage_bytes(stage_layers, layer_bytes, tables, embedding_bytes, loaded_extra_bytes):
    r"""Weights of one GPU that holds whole layers.
    returns : W_s, as an engine prints it when it has loaded
    limits : equal layers.
    source : the sum of the three
    >>> stage_bytes(20, 0.40625 * 2**30, 1, 2**30, 0.125 * 2**30) / 2**30
    9.25
    """
    return stage_layers * layer_bytes + tables * embedding_bytes + loaded_extra_bytes


@formula
def tp_rank_bytes(layers, layer_bytes, tables, embedding_bytes, loaded_extra_bytes, ranks):
    r"""Weights of one GPU under tensor parallelism.
    limits : the norms are kept whole on each GPU, which is not counted.
    source : Shoeybi et al. 2019, arXiv:1909.08053, section 3
    >>> tp_rank_bytes(34, 0.40625 * 2**30, 1, 2**30, 0, 2) / 2**30
    7.40625
    """
    return (layers * layer_bytes + tables * embedding_bytes) / ranks + loaded_extra_bytes


@formula
def offloaded_layers(offload_bytes, layer_bytes, layers):
    r"""Layers that live in main memory.
    limits : vLLM moves whole tensors until the budget is reached; what is small behind the last large one is left out.
    source : vLLM, the offloader of cpu_offload_gb
    >>> offloaded_layers(offload_bytes=4 * 2**30, layer_bytes=0.40625 * 2**30, layers=34)
    10.0
    """
    return ops.minimum(layers, ops.ceil(offload_bytes / layer_bytes))


@formula
def usable_bytes(reported_bytes, utilisation_frac, reserve_bytes):
    r"""Memory the engine can take on one GPU.
    limits : vLLM refuses to start where u G_rep is the larger of the two.
    source : the smaller of what it may and what it can
    >>> usable_bytes(16 * 2**30, 0.75, 2 * 2**30) / 2**30
    12.0
    """
    return ops.minimum(utilisation_frac * reported_bytes, reported_bytes - reserve_bytes)


@formula
def room_layers(usable_bytes, layer_bytes, tables, embedding_bytes, loaded_extra_bytes, overhead_bytes):
    r"""Layers that fit on one GPU: what is left beside tables, extra and overhead, in whole layers.
    limits : no KV cache, so for embedding; a cache comes on top.
    source : stage_bytes solved for its layers
    >>> room_layers(9.5 * 2**30, 2**30, 1, 2**30, 0, 2**30)
    7.0
    """
    left = usable_bytes - stage_bytes(0, layer_bytes, tables, embedding_bytes, loaded_extra_bytes) - overhead_bytes
    return ops.floor(ops.maximum(0, left) / layer_bytes)
