"""Numbers of this machine: what its GPUs and their link reach (measure), and catalog entries made from that (fit)."""

SCHEMA = "tpmodel-measure-1"  # of what `measure` writes and `fit` reads
