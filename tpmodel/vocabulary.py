"""The one vocabulary: every name a formula may use, with symbol, unit, domain and meaning.

A name's suffix is its unit in SI base units; counts are bare nouns. A parameter or a formula
whose name is not here is refused when it is defined. The book's symbol table is made from this.
"""

import math
from dataclasses import dataclass

DOMAINS = {
    "real": ("a finite number", lambda lo, hi: True),
    ">=0": ("a finite number >= 0", lambda lo, hi: lo >= 0),
    ">0": ("a finite number > 0", lambda lo, hi: lo > 0),
    "[0,1]": ("a number from 0 to 1", lambda lo, hi: lo >= 0 and hi <= 1),
    "(0,1]": ("a number above 0, at most 1", lambda lo, hi: lo > 0 and hi <= 1),
    "[0,1)": ("a number from 0 up to but not 1", lambda lo, hi: lo >= 0 and hi < 1),
    ">=1": ("a finite number >= 1", lambda lo, hi: lo >= 1),
    "int>=0": ("a whole number >= 0", lambda lo, hi: lo >= 0),
    "int>=1": ("a whole number >= 1", lambda lo, hi: lo >= 1),
}


@dataclass(frozen=True)
class Term:
    """One name: its LaTeX symbol, unit (empty for a plain number), domain, and meaning."""

    symbol: str
    unit: str
    domain: str
    meaning: str


NAMES = {
    # counts and shapes
    "ranks": Term("N", "", "int>=1", "GPUs that share one tensor-parallel group"),
    "layers": Term("L", "", "int>=1", "layers of the model"),
    "full_layers": Term(r"L_{\mathrm{full}}", "", "int>=0", "layers with full attention: the ones whose KV cache grows"),
    "intermediate": Term("I", "", "int>=1", "intermediate size of the FFN"),
    "heads": Term("n_q", "", "int>=1", "query heads of one attention layer, before the split"),
    "parameters": Term("p", "", ">0", "parameters that every token is multiplied with"),
    "in_elements": Term("D", "", "int>=1", "input size of a linear layer: rows of its matrix"),
    "out_elements": Term("F", "", "int>=1", "output size of a linear layer: columns of its matrix"),
    "hidden": Term("H", "", "int>=1", "hidden size: elements of one token's activation"),
    "vocabulary": Term("Y", "", "int>=1", "tokens in the vocabulary: rows of the embedding table"),
    "idle_parameters": Term(r"p_{\mathrm{idle}}", "", ">=0", "parameters that plain text decoding does not read: vision tower, MTP layer"),
    "state_layers": Term(r"L_{\mathrm{state}}", "", "int>=0", "layers with a recurrent state in place of a KV cache"),
    "value_heads": Term(r"n_v", "", "int>=1", "value heads of one state layer, before the split"),
    "key_elements": Term("d_k", "", "int>=1", "elements of a key head of a state layer"),
    "value_elements": Term("d_v", "", "int>=1", "elements of a value head of a state layer"),
    "state_element_bytes": Term("b_s", "byte", ">0", "bytes of one element of the recurrent state (2 for BF16, 4 for FP32)"),
    "kv_heads": Term(r"n_{\mathrm{kv}}", "", "int>=1", "key/value heads of one attention layer, before the split"),
    "head_elements": Term("d", "", "int>=1", "elements of one attention head"),
    "element_bytes": Term("b", "byte", ">0", "bytes of one activation element (2 for BF16)"),
    "kv_element_bytes": Term(r"b_{\mathrm{kv}}", "byte", ">0", "bytes of one KV-cache element (2 for BF16, 1 for FP8)"),
    # lengths
    "tokens": Term("T", "token", ">=0", "tokens that pass through the model together (1 in plain decode)"),
    "context_tokens": Term("c", "token", ">=0", "tokens already in the KV cache"),
    "native_tokens": Term(r"c_{\mathrm{native}}", "token", "int>=1", "context length the model was trained for"),
    # communication
    "message_bytes": Term("M", "byte", ">=0", "the tensor that one collective works on, as one GPU holds it"),
    "link_bytes_per_s": Term("B", "byte/s", ">0", "bandwidth of the link between GPUs, one direction, as achieved"),
    "link_latency_s": Term(r"\alpha", "s", ">=0", "time of one hop of a collective with nothing to carry"),
    "allreduce_latency_s": Term(r"\alpha_N", "s", ">=0", "time of one whole all-reduce with almost nothing to carry"),
    "allreduces": Term("n_{ar}", "", ">=0", "all-reduces in one pass through the model"),
    "allreduce_payload_bytes": Term("M_T", "byte", ">=0", "payload of one all-reduce for T tokens"),
    "allreduce_wire_bytes": Term("V", "byte", ">=0", "bytes that each GPU sends in one ring all-reduce"),
    "allreduce_s": Term("t_{ar}", "s", ">=0", "time of one all-reduce"),
    "ring_latency_s": Term(r"\alpha_N^{\mathrm{ring}}", "s", ">=0", "latency of a ring all-reduce from the latency of a hop"),
    "communication_s": Term(r"t_{\mathrm{comm}}", "s", ">0", "all-reduce time of one pass"),
    "comm_ceiling_tokens_per_s": Term(r"r_{\mathrm{comm}}", "token/s", ">=0", "decode rate if only the all-reduces took time"),
    "gather_wire_bytes": Term("V_g", "byte", ">=0", "bytes that each GPU sends in one ring all-gather or reduce-scatter"),
    "tree_latency_s": Term(r"\alpha_N^{\mathrm{tree}}", "s", ">=0", "latency of a tree all-reduce from the latency of a hop"),
    "levels": Term(r"\ell", "", "int>=0", "levels of a tree over the GPUs: the logarithm of their number to base 2, rounded up"),
    "megatron_wire_bytes": Term(r"V_{\mathrm{col,row}}", "byte", ">=0", "bytes each GPU sends for one FFN, column split then row split"),
    "naive_a_wire_bytes": Term(r"V_{\mathrm{col,col}}", "byte", ">=0", "bytes each GPU sends for one FFN, column split twice"),
    "naive_b_wire_bytes": Term(r"V_{\mathrm{row,row}}", "byte", ">=0", "bytes each GPU sends for one FFN, row split twice"),
    "shard_bytes": Term("w", "byte", ">0", "one GPU's share of a weight matrix"),
    # prefill
    "chunk_tokens": Term("C", "token", ">0", "tokens of a prompt that pass through the model together"),
    "chunks": Term("m", "", ">=0", "passes that a prompt takes"),
    "flop_per_s": Term("R", "FLOP/s", ">0", "arithmetic rate of one GPU by its data sheet, dense, in the format of the layer"),
    "attention_flop_per_s": Term(r"R_a", "FLOP/s", ">0", "arithmetic rate of one GPU in the format of attention (BF16)"),
    "mfu_frac": Term(r"\mu", "", "(0,1]", "fraction of that rate that a real kernel reaches"),
    "linear_flop": Term(r"X_{\mathrm{lin}}", "FLOP", ">=0", "arithmetic of the linear layers on one GPU"),
    "attention_flop": Term(r"X_{\mathrm{att}}", "FLOP", ">=0", "arithmetic of causal attention on one GPU"),
    "linear_s": Term(r"t_{\mathrm{lin}}", "s", ">=0", "time of the linear layers"),
    "attention_s": Term(r"t_{\mathrm{att}}", "s", ">=0", "time of attention"),
    "prefill_communication_s": Term(r"t_{\mathrm{pcomm}}", "s", ">=0", "all-reduce time of a whole prompt"),
    "prefill_s": Term(r"t_{\mathrm{pre}}", "s", ">0", "time of a whole prompt, nothing overlapped"),
    "prefill_share_frac": Term(r"\sigma", "", "[0,1]", "share of the all-reduces in the time of a prompt"),
    # speculative decoding
    "drafts": Term("K", "", "int>=0", "tokens drafted a round"),
    "acceptance_frac": Term("a", "", "[0,1)", "chance that a drafted token is accepted"),
    "round_tokens": Term("e", "token", ">=1", "tokens confirmed a round, on average"),
    "draft_allreduces": Term("n_d", "", ">=0", "all-reduces of one draft step"),
    "round_allreduces": Term("n_r", "", ">=0", "all-reduces of one round: its verify pass and its drafts"),
    "allreduces_per_confirmed_token": Term("n_c", "", ">=0", "all-reduces per confirmed token"),
    # decode
    "read_bytes": Term("W", "byte", ">0", "weights that one step reads, all GPUs together"),
    "memory_bytes_per_s": Term(r"B_{\mathrm{mem}}", "byte/s", ">0", "memory bandwidth of one GPU by its data sheet"),
    "achieved_frac": Term(r"\eta", "", "(0,1]", "fraction of the data-sheet bandwidth that a real kernel reaches"),
    "weight_read_s": Term("t_w", "s", ">=0", "time to read the weights once"),
    "kv_read_s": Term(r"t_{\mathrm{kv}}", "s", ">=0", "time to read the KV cache once"),
    "decode_s": Term("t", "s", ">0", "time of one decode step, nothing overlapped"),
    "decode_overlapped_s": Term(r"t_{\min}", "s", ">0", "time of one decode step if the all-reduces hid completely"),
    "decode_tokens_per_s": Term("r", "token/s", ">0", "decode rate of one stream, nothing overlapped"),
    "decode_bound_tokens_per_s": Term("r_w", "token/s", ">0", "decode rate if only the weight read took time"),
    "bound_frac": Term(r"\varphi", "", "[0,1]", "decode rate as a fraction of the weight-read bound"),
    # memory
    "kv_bytes_per_token": Term("k", "byte/token", ">0", "KV cache of one token on one GPU"),
    "kv_cache_bytes": Term("K", "byte", ">=0", "KV cache of one sequence on one GPU"),
    "vram_bytes": Term("G", "byte", ">0", "memory of one GPU"),
    "utilisation_frac": Term("u", "", "(0,1]", "fraction of the memory that the engine may take"),
    "weights_bytes": Term(r"W_{\mathrm{file}}", "byte", ">0", "weights of the model, all GPUs together"),
    "state_bytes": Term("S", "byte", ">=0", "recurrent state of one sequence on one GPU"),
    "embedding_bytes": Term("E", "byte", ">=0", "the embedding table: one row of it is read per token"),
    "used_bytes": Term(r"G_{\mathrm{used}}", "byte", ">=0", "memory in use on one GPU"),
    "overhead_bytes": Term("O", "byte", ">=0", "memory of one GPU for CUDA graphs, activations and buffers"),
    "budget_bytes": Term("U", "byte", ">0", "memory that the engine may take on one GPU"),
    "kv_pool_bytes": Term("P", "byte", "real", "memory left for the KV cache on one GPU; negative when the weights do not fit"),
    "pool_tokens": Term(r"c_{\mathrm{pool}}", "token", ">=0", "tokens whose KV cache fits in the pool"),
    "max_context_tokens": Term(r"c_{\max}", "token", ">=0", "largest context: what fits, at most the native length"),
}

RESERVED = frozenset(
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if import in instanceof let new null return static super switch this throw true try typeof var void "
    "while with yield await eval arguments".split()
)


def term(name):
    """The Term of `name`; an unknown name is an error that says where to add it."""
    if name not in NAMES:
        raise NameError(f"{name!r} is not in tpmodel/vocabulary.py: add it there with symbol, unit, domain and meaning")
    return NAMES[name]


def accepted(name):
    """What the parameter `name` accepts, in words."""
    return DOMAINS[term(name).domain][0]


def allows_zero(name):
    """Whether zero lies in the domain of `name`."""
    return DOMAINS[term(name).domain][1](0.0, 0.0)


def assumptions(name):
    """What SymPy may assume of the symbol `name`."""
    domain = term(name).domain
    if domain == "real":
        return {"real": True}
    return {"nonnegative" if allows_zero(name) else "positive": True}


def refuse(name, value):
    """The ValueError for a bad `value` of `name`: name, unit, value, what is accepted."""
    unit = f" [{NAMES[name].unit}]" if NAMES[name].unit else ""
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return ValueError(f"{name}{unit} = {shown} is not accepted: {NAMES[name].meaning}; it must be {accepted(name)}")


def check(name, value):
    """`value` as a float (or a float64 array) if it lies in the domain of `name`, else ValueError.

    >>> check("ranks", 2)
    2.0
    >>> check("ranks", 1.5)
    Traceback (most recent call last):
    ...
    ValueError: ranks = 1.5 is not accepted: GPUs that share one tensor-parallel group; it must be a whole number >= 1
    """
    domain = NAMES[name].domain
    inside = DOMAINS[domain][1]
    kind = type(value)
    if kind is float or kind is int:
        try:
            number = float(value)
        except OverflowError:
            raise refuse(name, value) from None
        whole = domain[:3] != "int" or number == math.floor(number) if math.isfinite(number) else False
        if not (whole and inside(number, number)):
            raise refuse(name, value)
        return number
    if hasattr(value, "dtype") and hasattr(value, "astype"):
        if value.dtype.kind not in "iuf" or value.size == 0:
            raise refuse(name, value)
        array = value.astype("float64")
        lo, hi = float(array.min()), float(array.max())
        whole = domain[:3] != "int" or bool((array % 1 == 0).all()) if math.isfinite(lo) and math.isfinite(hi) else False
        if not (whole and inside(lo, hi)):
            worst = next((v for v in array.flat if not _single(domain, float(v))), lo)
            raise refuse(name, float(worst))
        return array if array.ndim else float(array)
    raise refuse(name, value)


def _single(domain, number):
    if not math.isfinite(number):
        return False
    return (domain[:3] != "int" or number % 1 == 0) and DOMAINS[domain][1](number, number)


for _name in NAMES:
    if _name in RESERVED:
        raise NameError(f"{_name!r} is a reserved word of JavaScript and cannot be a name of the vocabulary")
