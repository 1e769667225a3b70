"""Article 1's statements on serving and on what others measured, and what we think of each."""

from ...catalog.assumptions import assumed, ends
from ..plan.assume import ACHIEVED, ENGINE, PROMPT_TOKENS
from .cases import cases
from .measured import FAST, MIDDLE, SLOW, rate, speedup, waits_s
from .rows import table

EAGER = tuple(ends(key, "decode_tokens_per_s")[::2] for key in ("eager-bench", "eager-pair"))  # without, with graphs


def newest(*engines):
    """The rates of plain decoding on two RTX 5060 Ti in one tensor-parallel group, short context, lowest first."""
    return sorted(c.measured for c in cases() if c.setting.startswith("2 × RTX 5060 Ti, TP2") and c.tokens < 1000
                  and c.engine in (engines or (c.engine,)))


def pair_share(card, transport, end=MIDDLE, **more):
    """Efficiency of each of two cards."""
    return speedup(card, transport, end, **more) / 2


def nvlink_gain(without=MIDDLE, with_it=MIDDLE):
    """What a bridge adds to two RTX 3090 over NCCL through host memory: at these ends of the two links."""
    return rate("rtx-3090", "nvlink-bridge", with_it) / rate("rtx-3090", "shm", without) - 1


def lowest():
    """The low end of plain decoding on the pair, over as many tokens as `plan` takes: below it look for a fault."""
    return rate(end=SLOW, gap_s=max(waits_s(ENGINE)), achieved_frac=ACHIEVED[SLOW], context_tokens=PROMPT_TOKENS)


def nvlink_toggles():
    """What a bridge added to two RTX 3090 where somebody ran both ways on one machine, lowest first."""
    return sorted(float(row["ratio_a_over_b"]) - 1 for row in table("which_cases.csv")
                  if (row["way_a"], row["way_b"]) == ("tp2@nvlink-bridge", "tp2@shm"))


OURS = {"read_bytes": assumed("h200-decode").read_bytes, "gap_s": 0}  # two H200
SPREAD = ("the additive model gives it as a result: it falls as the step gets shorter, and with what no second card "
          "shortens: all-reduces, the engine's wait")
VERDICTS = {f"a1.{name}": verdict for name, verdict in {
    "threshold": ("loose", lowest, "a share of a bound, which most public runs of vLLM stay below; ours is the model's "
                                   "low end for vLLM, the pair, 8,192 tokens of context and no drafts"),
    "measured_mtp": ("loose", lambda: newest("vllm")[-1],
                     "plain decoding by vLLM on the same pair reaches as much today, so MTP had given nothing"),
    "scaling_pcie": ("loose", lambda: pair_share("rtx-5060-ti-16gb", "shm"), SPREAD),
    "scaling_nvlink": ("loose", lambda: pair_share("h200", "nvlink-h200", **OURS),
                       SPREAD + "; ours is 27 B in BF16 on two H200, as we measured it"),
    "scaling_2x4090": ("loose", lambda: speedup("rtx-4090", "shm"), SPREAD),
    "nvlink_gain": ("loose", lambda: nvlink_gain(SLOW, FAST),
                    f"one machine's; same-machine toggles run from {100 * nvlink_toggles()[0]:+.0f} % to "
                    f"{100 * nvlink_toggles()[-1]:+.0f} %: it is the difference of two transports. Ours: the most that "
                    "the ranges allow"),
    "graphs_gain_low": ("wrong", lambda: EAGER[0][1] / EAGER[0][0] - 1,
                        "public runs on these cards: 10.8 to 28.4 and 8.2 to 33.5 tokens/s"),
    "graphs_gain_high": ("wrong", lambda: EAGER[1][1] / EAGER[1][0] - 1, "as the row above"),
    "custom_ar_limit": ("holds", 8, "vLLM's default is 8 MiB; vLLM turns the kernel off by itself when its test of "
                                    "peer access fails"),
    "big_gpu_rule": ("loose", lambda: rate(transport="mailbox", end=FAST, gap_s=0, achieved_frac=ACHIEVED[FAST]),
                     "the most that plain decoding on the pair reaches; with MTP public runs on it pass 50"),
}.items()}
