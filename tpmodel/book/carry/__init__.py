"""The planner's own Python, carried over to JavaScript for the page: the same functions, the same answers."""
