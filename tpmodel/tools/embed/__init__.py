"""Documents to vectors over two unequal cards, and two sets of vectors compared."""
