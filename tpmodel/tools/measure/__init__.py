"""Numbers of this machine: what its GPUs and their link reach (measure), and catalog entries made from that (fit)."""
