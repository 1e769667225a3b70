"""Units and the printing of numbers. GB is 1e9 bytes, GiB is 2**30 bytes."""

import math

KB, MB, GB, TB = 1e3, 1e6, 1e9, 1e12
KIB, MIB, GIB = 2.0**10, 2.0**20, 2.0**30
US, MS, HOUR = 1e-6, 1e-3, 3600.0
TFLOP, GHZ = 1e12, 1e9
DTYPE_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0}  # of one element as it is stored, without scales


def fixed(value, decimals):
    """`value` rounded half up to `decimals` places, as text with thousands separators.

    The page's script prints with the same rule, so that both show the same text.
    What is not finite prints as a dash.
    >>> fixed(44.75, 1), fixed(262144, 0), fixed(-0.04, 1), fixed(float("inf"), 1)
    ('44.8', '262,144', '0.0', '–')
    """
    if not math.isfinite(value):
        return "–"
    scale = 10.0**decimals
    rounded = math.floor(value * scale + 0.5) / scale
    return f"{rounded + 0.0:,.{decimals}f}"


def many(count, thing):
    """A number of things in words.
    >>> many(1, "token"), many(2048, "token"), many(0, "block")
    ('1 token', '2,048 tokens', '0 blocks')
    """
    return f"{count:,.0f} {thing}{'s' * (count != 1)}"
