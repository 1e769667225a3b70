"""Model + GPUs + link + split -> memory, time, verdict: the only place where specs meet formulas."""
