"""The collectives of one group of ranks, run as a ring in NumPy, every byte counted.

A tensor that lives on N ranks is a list of N arrays, one per rank. A collective takes such a list and
gives one back; between ranks, data moves only inside `Group._ring` and `Group.send`, and both count
what they move. All arithmetic is done in the arrays' own type (float64 in the book); `element_bytes`
is the size that is *accounted*, 2 for BF16.

Bytes each rank puts on the wire, M = the logical tensor, where N divides it (else the chunks are
uneven and the ranks differ by a chunk; the sum over ranks is exact always):

| collective     | M is                           | each rank sends | ring steps |
| all-reduce     | the tensor being summed        | 2 (N-1)/N M     | 2 (N-1)    |
| all-gather     | the full, gathered tensor      | (N-1)/N M       | N-1        |
| reduce-scatter | the full tensor being summed   | (N-1)/N M       | N-1        |
| send           | the tensor sent                | M, the source   | 1          |

A group of one rank moves nothing and records nothing. The functions at the end cut a tensor over ranks.
source : Patarasuk & Yuan 2009, doi:10.1016/j.jpdc.2008.09.002
"""

import operator
from dataclasses import dataclass, field
from itertools import product
from numbers import Integral, Real

import numpy as np

# How a ring's step chooses its chunk, counted from the rank's own, and what the receiver makes of it.
REDUCE_SCATTER = -1, operator.add  # after N-1 steps rank r holds the full sum of chunk r
ALL_GATHER = 0, lambda held, received: received  # rank r starts with its chunk r; after N-1 steps all hold all


@dataclass(frozen=True)
class Call:
    """One collective that ran."""

    kind: str  # all-reduce, all-gather, reduce-scatter or send
    label: str  # what it was for, as the caller named it
    payload_bytes: float  # M, the logical tensor [byte]
    wire_bytes: tuple  # what each rank put on the wire, one number per rank [byte]
    steps: int  # ring steps, each one message latency [1]


@dataclass(frozen=True)
class Group:
    """N ranks in a ring, and the ledger of the calls they made.
    >>> group = Group(ranks=2)
    >>> group.all_reduce([np.array([1.0, 2.0]), np.array([10.0, 20.0])], "down")
    [array([11., 22.]), array([11., 22.])]
    >>> group.calls
    [Call(kind='all-reduce', label='down', payload_bytes=4, wire_bytes=(4, 4), steps=2)]
    """

    ranks: int
    element_bytes: float = 2
    calls: list = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self):
        if not isinstance(self.ranks, Integral) or self.ranks < 1:
            raise ValueError(f"ranks={self.ranks!r}: accepted is a whole number of ranks, 1 or more")
        size = self.element_bytes
        if not isinstance(size, Real) or not 0 < size < float("inf"):
            raise ValueError(f"element_bytes={size!r}: accepted is a finite number of bytes above 0")

    def all_reduce(self, parts, label=""):
        r"""Every rank gets $\sum_r$ parts[r]: a ring reduce-scatter, then a ring all-gather.
        parts : one array per rank, all of one shape
        returns : one array per rank, equal to the last bit
        """
        parts = self._one_per_rank(parts, "all_reduce", same_shape=True)
        chunks = [np.array_split(part.ravel(), self.ranks) for part in parts]
        self._ring("all-reduce", label, parts[0].size, chunks, REDUCE_SCATTER, ALL_GATHER)
        return [np.concatenate(held).reshape(parts[0].shape) for held in chunks]

    def reduce_scatter(self, parts, label="", axis=-1):
        r"""Rank r gets the r-th slice along `axis` of $\sum_r$ parts[r]: half of an all-reduce.
        parts : one array per rank, all of one shape; uneven slices where ranks does not divide it
        """
        parts = self._one_per_rank(parts, "reduce_scatter", same_shape=True)
        chunks = [np.array_split(part, self.ranks, axis) for part in parts]
        self._ring("reduce-scatter", label, parts[0].size, chunks, REDUCE_SCATTER)
        return [held[rank].copy() for rank, held in enumerate(chunks)]

    def all_gather(self, parts, label="", axis=-1):
        """Every rank gets all parts, joined along `axis`.
        parts : one array per rank, equal in shape but for `axis`
        """
        parts = self._one_per_rank(parts, "all_gather")
        chunks = [[part if rank == own else None for rank in range(self.ranks)] for own, part in enumerate(parts)]
        self._ring("all-gather", label, sum(part.size for part in parts), chunks, ALL_GATHER)
        return [np.concatenate(held, axis) for held in chunks]

    def send(self, array, source, target, label=""):
        """`array` of rank `source` arrives at rank `target`, as between two pipeline stages."""
        for name, rank in (("source", source), ("target", target)):
            if not isinstance(rank, Integral) or not 0 <= rank < self.ranks:
                raise ValueError(f"{name}={rank!r}: accepted is a rank from 0 to {self.ranks - 1}")
        if source == target:
            raise ValueError(f"target={target!r}: accepted is a rank other than source={source!r}")
        sent = [0] * self.ranks
        sent[source] = array.size
        self._record("send", label, array.size, sent, 1)
        return array.copy()

    def select(self, kind=None, label=None):
        """The recorded calls of one kind and one label; None takes all."""
        return [c for c in self.calls if kind in (None, c.kind) and label in (None, c.label)]

    def payload_bytes(self, kind=None, label=None):
        """Sum of the logical tensors of those calls [byte]."""
        return sum(call.payload_bytes for call in self.select(kind, label))

    def wire_bytes(self, kind=None, label=None):
        """What each rank put on the wire in those calls, one number per rank [byte]."""
        calls = self.select(kind, label)
        return tuple(sum(call.wire_bytes[rank] for call in calls) for rank in range(self.ranks))

    def _ring(self, kind, label, elements, chunks, *ways):
        """N-1 steps each way, all ranks at once: rank r sends a chunk to rank r + 1; `chunks` change in place."""
        sent = [0] * self.ranks
        for (own, combine), step in product(ways, range(self.ranks - 1)):
            messages = [held[(rank + own - step) % self.ranks] for rank, held in enumerate(chunks)]
            for rank, message in enumerate(messages):
                receiver, index = chunks[(rank + 1) % self.ranks], (rank + own - step) % self.ranks
                receiver[index] = combine(receiver[index], message)
                sent[rank] += message.size
        self._record(kind, label, elements, sent, len(ways) * (self.ranks - 1))

    def _record(self, kind, label, elements, sent, steps):
        if self.ranks > 1:
            wire_bytes = tuple(n * self.element_bytes for n in sent)
            self.calls.append(Call(kind, label, elements * self.element_bytes, wire_bytes, steps))

    def _one_per_rank(self, parts, name, same_shape=False):
        if len(parts) != self.ranks:
            raise ValueError(f"{name}: {len(parts)} parts; accepted is one per rank, {self.ranks}")
        parts = [np.asarray(part) for part in parts]
        shapes = [part.shape for part in parts]
        if same_shape and len(set(shapes)) > 1:
            raise ValueError(f"{name}: parts of shapes {shapes}; accepted is one shape on all ranks")
        return parts


def divided(name, count, parts, parts_name="ranks"):
    """count / parts, a whole number, or an error that names both.
    >>> divided("heads", 24, 2)
    12
    >>> divided("heads", 24, 5)
    Traceback (most recent call last):
    ValueError: heads=24 does not divide over ranks=5; accepted is a multiple of 5
    """
    if count < 1 or parts < 1 or count % parts:
        raise ValueError(f"{name}={count} does not divide over {parts_name}={parts}; accepted is a multiple of {parts}")
    return count // parts


def columns(array, ranks, name="columns"):
    """Equal slices of the last axis, one per rank. Nothing moves: each rank reads its own slice."""
    divided(name, array.shape[-1], ranks)
    return np.split(array, ranks, axis=-1)


def rows(array, ranks, name="rows"):
    """Equal slices of the first axis, one per rank. Nothing moves."""
    divided(name, array.shape[0], ranks)
    return np.split(array, ranks, axis=0)


def agreed(copies):
    """The one array that all ranks hold; an error if they differ in a single bit."""
    if not all(np.array_equal(copies[0], other, equal_nan=True) for other in copies[1:]):
        raise RuntimeError("ranks disagree on a tensor that all of them should hold")
    return copies[0]
