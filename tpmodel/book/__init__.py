"""The book: its figures, the engine that draws them, and what its pages print."""
