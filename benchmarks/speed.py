"""What the package costs, as ratios: `python benchmarks/speed.py`. Nothing here is a test."""

import subprocess
import sys
import time

import numpy as np

from tpmodel.planner.evidence.article1 import decode_view
from tpmodel.formulas import memory, passes

RUNS = 7


def best_s(work, runs=RUNS):
    """The shortest of several runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def python_s(*arguments):
    return best_s(lambda: subprocess.run([sys.executable, *arguments], capture_output=True, check=True))


def repeated(function, times):
    return lambda: [function() for _ in range(times)]


def report(what, seconds, against, base_s):
    print(f"{what:44} {seconds * 1e3:10.3f} ms   {seconds / base_s:8.2f} x {against}")


def main():
    bare = python_s("-c", "pass")
    report("import tpmodel", python_s("-c", "import tpmodel"), "a bare interpreter", bare)
    report("import every figure and claim",
           python_s("-c", "import tpmodel.book.figures, tpmodel.planner.evidence.claims"), "a bare interpreter", bare)
    report("import numpy", python_s("-c", "import numpy"), "a bare interpreter", bare)
    report("tpmodel claims --json", python_s("-m", "tpmodel", "claims", "--json"), "a bare interpreter", bare)

    v = decode_view(20)
    arguments = [getattr(v, name) for name in passes.pass_s.parameters]
    plain = best_s(repeated(lambda: sum(arguments), 1000)) / 1000
    report("one pass from its three terms, plain Python", plain, "itself", plain)
    report("one pass, checked formula",
           best_s(repeated(lambda: passes.pass_s(*arguments), 1000)) / 1000, "plain", plain)
    report("the same by name, every term found anew",
           best_s(repeated(lambda: decode_view(20).pass_s, 1000)) / 1000, "plain", plain)

    tokens = np.linspace(1, 1e6, 10**6)
    bare_array = best_s(lambda: tokens * 32768.0)
    report("a million KV caches, formula",
           best_s(lambda: memory.kv_cache_bytes(32768, tokens)), "bare NumPy", bare_array)
    report("a million decode steps, formula",
           best_s(lambda: v.extended(gap_s=tokens).pass_s), "bare NumPy product", bare_array)


if __name__ == "__main__":
    main()
