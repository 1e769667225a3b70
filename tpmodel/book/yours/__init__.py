"""The page “Your model, your cards”: its fields, its answer, and the planner itself carried over to the page."""
