"""What exists: GPUs, links, and what is assumed where nobody measured. Every number has a unit, a kind and a source."""
