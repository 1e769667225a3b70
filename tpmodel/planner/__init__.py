"""The planner: any model on any cards, what it takes and how fast it is, and what supports that."""
