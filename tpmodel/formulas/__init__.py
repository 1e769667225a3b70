"""The formulas: plain arithmetic on numbers with units in their names, no specs, no searches over data."""
