"""Linear layers cut over ranks, and the feed-forward made of them.

Two cuts of y = x W, W of shape (in, out):
- by columns: every rank has all of x and some columns; it gets those columns of y, finished. No traffic.
- by rows: every rank has some columns of x and the same rows of W; it gets all of y, but only a partial
  sum of it: an all-reduce, before anything that is not linear.

A nonlinearity may run on finished columns, never on partial sums: silu(a + b) != silu(a) + silu(b).
"""

import numpy as np

from .group import agreed, columns, divided, rows


def column_parallel(x, weight, group, bias=None):
    """Each rank's finished columns of x W + b; moves nothing.
    x : (tokens, in), on every rank; weight : (in, out); bias : (out,), cut as the columns are
    returns : list of (tokens, out / ranks)
    """
    pieces = [x @ part for part in columns(weight, group.ranks)]
    if bias is None:
        return pieces
    return [piece + part for piece, part in zip(pieces, columns(bias, group.ranks))]


def row_parallel(pieces, weight, group, bias=None, label="row parallel"):
    r"""$\sum_r x_r W_r + b$: one all-reduce of tokens x out.
    pieces : list of (tokens, in / ranks); weight : (in, out)
    bias : (out,), added by rank 0 alone: on every rank it would arrive `ranks` times
    returns : (tokens, out), on every rank
    """
    partial = [piece @ part for piece, part in zip(pieces, rows(weight, group.ranks), strict=True)]
    if bias is not None:
        partial[0] = partial[0] + bias
    return agreed(group.all_reduce(partial, label))


def swiglu(x, weights, group):
    r"""$(\mathrm{silu}(x W_g) \odot x W_u) W_d$, Megatron's way: gate and up by columns, down by rows.
    traffic : one all-reduce of tokens x hidden
    needs : ranks divides intermediate
    source : Shoeybi et al. 2019, arXiv:1909.08053
    """
    divided("intermediate", weights.gate.shape[1], group.ranks)
    gate, up = (column_parallel(x, matrix, group) for matrix in (weights.gate, weights.up))
    inner = [silu(g) * u for g, u in zip(gate, up)]
    return row_parallel(inner, weights.down, group, label="down")


def swiglu_naive_a(x, weights, group):
    """The same, all three by columns: each of the two products must be gathered.
    traffic : all-gather of tokens x intermediate (gate times up is formed before, so once, not
        twice), then all-gather of tokens x hidden, without which no rank has its whole output
    needs : ranks divides intermediate and hidden
    """
    gate, up = (column_parallel(x, matrix, group) for matrix in (weights.gate, weights.up))
    inner = agreed(group.all_gather([silu(g) * u for g, u in zip(gate, up)], "intermediate"))
    return agreed(group.all_gather(column_parallel(inner, weights.down, group), "hidden"))


def swiglu_naive_b(x, weights, group):
    """The same, gate and up by rows: their partial sums must be added up before silu.
    traffic : all-reduce of tokens x 2 intermediate, then all-reduce of tokens x hidden
    needs : ranks divides hidden and intermediate
    """
    gate_up = np.concatenate([weights.gate, weights.up], axis=1)
    both = row_parallel(columns(x, group.ranks, "hidden"), gate_up, group, label="gate and up")
    gate, up = np.split(both, 2, axis=-1)
    inner = columns(silu(gate) * up, group.ranks, "intermediate")
    return row_parallel(inner, weights.down, group, label="down")


def swiglu_naive_b_scatter(x, weights, group):
    """The best that row-first can do: a rank needs only its own slice of the two sums.
    traffic : reduce-scatter of tokens x 2 intermediate, then all-reduce of tokens x hidden
    needs : ranks divides hidden and intermediate
    """
    divided("intermediate", weights.gate.shape[1], group.ranks)
    shards = zip(columns(x, group.ranks, "hidden"), rows(weights.gate, group.ranks), rows(weights.up, group.ranks))
    partial = [np.stack([piece @ gate, piece @ up]) for piece, gate, up in shards]
    inner = [silu(gate) * up for gate, up in group.reduce_scatter(partial, "gate and up")]
    return row_parallel(inner, weights.down, group, label="down")


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    """The tanh form. It does not pass through a sum:
    >>> print(f"{gelu(1.0 + -1.0):.3f} {gelu(1.0) + gelu(-1.0):.3f}")
    0.000 0.682
    """
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
