"""What exists: GPUs, links, models. Every number has a unit, a kind and a source."""
