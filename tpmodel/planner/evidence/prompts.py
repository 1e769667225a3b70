"""Whole prompts on article 1's cards: public times, and the model's time for the same prompt."""

from dataclasses import dataclass

from .articles import GPU, setting
from .rows import typed

PROMPT = {"tokens": "pass_tokens", "context_tokens": "mean_context_tokens"}
"""A pass of a prompt as a view asks for it: its tokens, and what the cache holds, both on average."""
PROFILE_PERCENT = {"attention": 60, "allreduces": 16.5, "products": 14.2}
"""Shares of the pass over 98,304 tokens of the series `length`, from its author's profile; attention "60 % or more"."""


def prompt(tokens, **more):
    """A prompt of article 1's model on its cards: one pass, FP4 at the full rate, the article's link."""
    return setting(PROMPT, **{"prompt_tokens": tokens, "chunk_tokens": tokens, "flop_per_s": GPU.fp4_flop_per_s,
                              "kv_element_bytes": 1} | more)


@dataclass(frozen=True)
class Point:
    """One public measurement: a prompt of `tokens` took `seconds` until its first token."""

    series: str
    chunk_tokens: int
    tokens: int
    seconds: float


def points(series):
    """The points of one series: `length` (one machine, growing prompts) or `chunk` (one prompt, other chunks).

    >>> [point.tokens for point in points("length")]
    [8192, 32768, 65536, 98304, 131072]
    """
    return tuple(point for point in typed(Point, "prompts.csv") if point.series == series)


def same(point, **more):
    """The model's parts of the prompt of a public point, in its chunks; arguments as in `prompt`."""
    return prompt(point.tokens, chunk_tokens=point.chunk_tokens, **more)


def misfit_s(point, **more):
    """The model's time of that prompt less the measured one, in s; SymPy solves for what makes it vanish.

    The arithmetic sets the pace: at none of the points do the reads take longer.
    """
    v = same(point, **more)
    return v.given(busy_s=v.linear_s + v.attention_s).prefill_s - point.seconds
