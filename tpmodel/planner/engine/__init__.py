"""How vLLM allots memory: pages, blocks, groups, and what changed between its versions."""
