"""Simulated ranks: the split layers run in NumPy, and every byte that moves between ranks is counted.

    group      N ranks in a ring: collectives, and the ledger of what each moved
    weights    the weights of a layer, whole; random ones by seed
    linear     column and row parallel linear, elementwise functions, the SwiGLU feed-forward
    mixers     attention, gated DeltaNet, one block
    proof      whole against split: equal or not, bytes counted beside bytes by formula
    limits     where an exact split stops being exact

Each layer is one function `f(x, weights, group)`. A plain array is a tensor that every rank holds; a
list is one piece per rank. Weights are given whole: cutting a rank's share out of them is what an
engine does when it loads the checkpoint, and moves nothing between ranks. `Group(1)` is the whole layer.
"""
