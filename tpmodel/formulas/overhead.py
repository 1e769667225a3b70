"""What an engine takes of one GPU beside weights and cache, part by part, as it measures itself at its start."""

from ..formula import formula, ops

STREAMS = 2  # of the hidden size: the residual and what a module reads


@formula
def forward_bytes(batch_tokens, hidden, widest_elements, ranks, element_bytes):
    r"""Activations of the profile run: the residual, a module's input, and what its widest module holds at once.
    limits : attention is left out of that run; a compiled graph may keep less.
    source : vLLM 0.33, profile_run; elements counted from the module's matrices
    >>> forward_bytes(2048, 5120, 52224, 1, 2) / 2**20
    244.0
    """
    return element_bytes * batch_tokens * (STREAMS * hidden + widest_elements / ranks)


@formula
def sampler_bytes(sequences, vocabulary, sampler_element_bytes):
    r"""Logits of one row for each sequence and the copies that sampling makes of them.
    limits : every GPU of the last stage holds the whole vocabulary.
    source : vLLM 0.33, _dummy_sampler_run
    >>> sampler_bytes(256, 248320, 14) / 2**20
    848.75
    """
    return sequences * vocabulary * sampler_element_bytes


@formula
def vision_bytes(patches, vision_hidden, vision_widest, ranks, element_bytes, pixel_elements, pixel_bytes):
    r"""Activations of the vision tower on its largest input: two streams, its widest matrix products, the pixels.
    limits : pixels stay whole, in FP32 and as a copy in 16 bits; the tower is split as the model is.
    source : vLLM 0.33, profile_encoder_cache
    >>> vision_bytes(65536, 1152, 8608, 2, 2, 1536, 6) / 2**20
    1402.0
    """
    streams = element_bytes * (STREAMS * vision_hidden + vision_widest / ranks)
    return patches * (streams + pixel_elements * pixel_bytes)


@formula
def workspace_bytes(batch_tokens, experts_read, hidden, expert_intermediate, ranks, element_bytes):
    r"""The workspace of the experts' kernels, which is kept: both products of every token with each of its experts.
    limits : Triton and Marlin kernels; others need less.
    source : vLLM 0.33, workspace_shapes of its fused experts
    >>> workspace_bytes(64000, 8, 2304, 1024, 2, 2) / 1e9
    4.718592
    """
    inner = expert_intermediate / ranks
    elements = ops.maximum(inner, hidden) + ops.maximum(2 * inner, hidden)
    return element_bytes * batch_tokens * experts_read * elements


@formula
def counts_bytes(sequences, vocabulary, counter_bytes):
    r"""Counters of words for penalties, which are kept for every sequence that may run.
    limits : on GPUs of the last stage.
    source : vLLM 0.33, PenaltiesState
    >>> counts_bytes(256, 2**17, 4 + 1 / 8) / 2**20
    132.0
    """
    return sequences * vocabulary * counter_bytes


@formula
def graph_bytes(graph_sizes, stage_layers, graph_piece_bytes):
    r"""CUDA graphs: each size of a batch is captured in one piece a layer, and one more.
    limits : what the engine expects and takes off; what they take in the end differs.
    source : fits what vLLM's logs estimate for 2 and for 51 sizes
    >>> graph_bytes(51, 64, 2**19) / 2**30
    1.61865234375
    """
    return graph_sizes * (stage_layers + 1) * graph_piece_bytes


@formula
def peak_bytes(forward_bytes, compile_bytes, sampler_bytes, vision_bytes):
    r"""The largest of three: activations, with what compiling takes beside them, sampler and tower do not meet.
    limits : the tower's output, which outlives it, is left out.
    source : vLLM 0.33: the peak of the profile run is taken off
    >>> peak_bytes(3.0, 0.5, 5.0, 4.0)
    5.0
    """
    return ops.maximum(ops.maximum(forward_bytes + compile_bytes, sampler_bytes), vision_bytes)


@formula
def parts_bytes(peak_bytes, buffers_bytes, padding_bytes, workspace_bytes, counts_bytes, graph_bytes):
    r"""What the engine takes beside weights and cache: the peak, what is kept, and the graphs.
    limits : CUDA's context and NCCL's buffers stand beside it: they were taken before the engine counted.
    source : vLLM 0.33, determine_available_memory
    >>> parts_bytes(5.0, 1.0, 0.5, 0.25, 0.125, 2.0)
    8.875
    """
    return peak_bytes + buffers_bytes + padding_bytes + workspace_bytes + counts_bytes + graph_bytes
