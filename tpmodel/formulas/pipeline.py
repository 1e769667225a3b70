"""Batches of documents through two cards: the pipeline, tensor parallelism on unequal cards, and offload.

Speeds of arithmetic, not of memory reads: thousands of tokens pass together and the weights are read once for all.
"""

from ..formula import formula, ops
from .passes import FLOP_PER_MULTIPLY_ADD, SCORES_AND_VALUES

HANDED_OVER = 2  # vLLM sends two tensors between stages: the layer's output and the residual stream


@formula
def layer_flop(layer_parameters, sequence_tokens, heads, head_elements):
    r"""Arithmetic of one layer for one token that attends to its whole document.
    limits : attention in both directions, as embedding models have it; a causal one does half of the second term.
    source : two operations per parameter and token; Dao et al. 2022, arXiv:2205.14135
    >>> layer_flop(layer_parameters=100, sequence_tokens=10, heads=2, head_elements=3)
    440.0
    """
    attention = FLOP_PER_MULTIPLY_ADD * SCORES_AND_VALUES * sequence_tokens * heads * head_elements
    return FLOP_PER_MULTIPLY_ADD * layer_parameters + attention


@formula
def stage_s(stage_layers, layer_flop, tokens, flop_per_s, mfu_frac):
    r"""Arithmetic of one GPU for one batch.
    limits : batches large enough that arithmetic and not the weight read sets the pace.
    source : a quotient
    >>> stage_s(stage_layers=10, layer_flop=4e8, tokens=1000, flop_per_s=50e12, mfu_frac=0.8)
    0.1
    """
    return stage_layers * layer_flop * tokens / (mfu_frac * flop_per_s)


@formula
def transfer_s(message_bytes, link_bytes_per_s):
    r"""Time to hand one batch to the next stage.
    limits : two tensors, as vLLM sends them; an engine that adds them first sends half.
    source : vLLM, IntermediateTensors: hidden_states and residual
    >>> transfer_s(message_bytes=64e6, link_bytes_per_s=4e9)
    0.032
    """
    return HANDED_OVER * message_bytes / link_bytes_per_s


@formula
def handover_s(allreduce_latency_s, transfer_s):
    r"""Time from one stage to the next: the link's start, then the bytes.
    limits : the start is that of an all-reduce between two GPUs over the same link.
    source : the sum of the two
    >>> handover_s(allreduce_latency_s=0.25, transfer_s=0.5)
    0.75
    """
    return allreduce_latency_s + transfer_s


@formula
def pipeline_s(first_s, last_s, handover_s, batches):
    r"""Time of one batch in a pipeline of two: the slower stage, the hand-over, a share of fill and drain.
    returns : t_pp; towards max(t_1, t_2) + t_h in a long run, t_1 + t_2 + t_h with one batch
    limits : equal batches; a hand-over that overlaps with nothing; pipeline_overlapped_s is the lower end.
    source : Huang et al. 2019, arXiv:1811.06965, the pipeline's bubble
    >>> pipeline_s(first_s=3, last_s=4, handover_s=1, batches=3)
    6.0
    """
    return ops.maximum(first_s, last_s) + handover_s + ops.minimum(first_s, last_s) / batches


@formula
def pipeline_overlapped_s(first_s, last_s, handover_s, batches):
    r"""Time of one batch if the hand-over hid behind the stages: the longest of three, a share of fill and drain.
    returns : the lower end
    limits : the link is free while both stages work.
    source : the largest of the three
    >>> pipeline_overlapped_s(first_s=3, last_s=4, handover_s=1, batches=3)
    5.0
    """
    return ops.maximum(ops.maximum(first_s, last_s), handover_s) + ops.minimum(first_s, last_s) / batches


@formula
def run_s(passes, longest_s, stages_s, handover_s, stages):
    r"""Time of m passes, one behind the other, through p stages.
    returns : a steady pace, and once the way in and out; one pass takes all stages in turn
    limits : equal passes.
    source : Huang et al. 2019, arXiv:1811.06965, the pipeline's bubble
    >>> [run_s(passes, longest_s=4, stages_s=7, handover_s=1, stages=2) for passes in (1, 3)]
    [8.0, 18.0]
    """
    return passes * (longest_s + handover_s) + (stages_s - longest_s) + ops.maximum(0, stages - 2) * handover_s


@formula
def copy_s(offloaded_layers, layer_bytes, copy_bytes_per_s):
    r"""Time to copy the offloaded layers in, once a pass.
    limits : whatever the size of the batch.
    source : a quotient
    >>> copy_s(offloaded_layers=10, layer_bytes=0.4e9, copy_bytes_per_s=8e9)
    0.5
    """
    return offloaded_layers * layer_bytes / copy_bytes_per_s


@formula
def offload_s(stage_s, copy_s):
    r"""Time of one batch on one GPU with offloaded layers, nothing overlapped.
    returns : t_off; the larger of the two if the copies hid completely
    limits : copies from memory that is not pinned wait for the host.
    source : the sum of the two
    >>> offload_s(stage_s=2, copy_s=0.5)
    2.5
    """
    return stage_s + copy_s


@formula
def tokens_per_s(tokens, pass_s):
    r"""Tokens in a second.
    limits : without reading, tokenising, or turning vectors into lists.
    source : a quotient
    >>> tokens_per_s(tokens=8000, pass_s=2)
    4000.0
    """
    return tokens / pass_s


@formula
def documents_per_s(tokens_per_s, sequence_tokens):
    r"""Documents in a second.
    limits : documents of one length.
    source : a quotient
    >>> documents_per_s(tokens_per_s=5100, sequence_tokens=510)
    10.0
    """
    return tokens_per_s / sequence_tokens


@formula
def slowest_s(first_layers, layers, first_flop_per_s, last_flop_per_s):
    r"""Time of the slower of two stages, for one FLOP a layer.
    returns : what a long run is paced by, up to the layer's arithmetic
    limits : equal layers.
    source : the larger of the two
    >>> slowest_s(first_layers=3, layers=5, first_flop_per_s=1, last_flop_per_s=1)
    3.0
    """
    return ops.maximum(first_layers / first_flop_per_s, (layers - first_layers) / last_flop_per_s)


@formula
def balance_layers(layers, first_flop_per_s, last_flop_per_s):
    r"""Layers on the first GPU that make both stages equally long.
    returns : L*, seldom whole
    limits : equal layers.
    source : L_1 / R_1 = (L - L_1) / R_2
    >>> balance_layers(layers=30, first_flop_per_s=2, last_flop_per_s=1)
    20.0
    """
    return layers * first_flop_per_s / (first_flop_per_s + last_flop_per_s)


@formula
def best_first_layers(layers, first_flop_per_s, last_flop_per_s, least_layers, most_layers):
    r"""The better of the two whole numbers beside the balance, held to what both GPUs can take.
    returns : the layers that make the slower stage fastest
    limits : equal layers, a long run; least_layers <= most_layers.
    source : the slower stage falls up to the balance and rises behind it
    >>> best_first_layers(34, 2.38, 1, 1, 33), best_first_layers(34, 2.38, 1, 1, 20)
    (24.0, 20.0)
    """
    below = ops.floor(balance_layers(layers, first_flop_per_s, last_flop_per_s))
    a = ops.minimum(ops.maximum(below, least_layers), most_layers)
    b = ops.minimum(ops.maximum(below + 1, least_layers), most_layers)
    first = slowest_s(a, layers, first_flop_per_s, last_flop_per_s)
    return ops.where(first <= slowest_s(b, layers, first_flop_per_s, last_flop_per_s), a, b)


@formula
def meeting_bytes_per_s(allreduces, message_bytes, first_s, last_s, even_s, batches):
    r"""Link bandwidth at which two cards are equally fast either way: tensor parallelism wins above it.
    returns : B*; 0 where the pipeline wins over any link, since its arithmetic alone is no longer
    limits : two cards, nothing overlapped, no latency.
    source : pass_s = pipeline_s solved for the bandwidth
    >>> meeting_bytes_per_s(allreduces=10, message_bytes=1e9, first_s=2, last_s=2, even_s=2, batches=4)
    16000000000.0
    """
    gap = ops.maximum(first_s, last_s) + ops.minimum(first_s, last_s) / batches - even_s
    moved = (allreduces - HANDED_OVER) * message_bytes
    return ops.where(gap > 0, moved / ops.where(gap > 0, gap, even_s), 0)
