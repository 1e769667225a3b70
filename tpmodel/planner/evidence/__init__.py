"""What others wrote and measured, beside what the formulas give."""
