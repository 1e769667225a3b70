"""Many users: what a batch gives together and each, how many fit, and up to how many more are free."""

from bisect import bisect_right
from dataclasses import asdict, dataclass

from . import one_pass
from .assume import MID

COMPUTING, CACHE = "the pass turns to computing", "the cache runs out"
FULL = "the line takes no more at once"


@dataclass(frozen=True)
class Users:
    """Rates in tokens/s; None where the batch, or not one sequence, fits."""

    batch: int
    together: float
    each: float
    largest_batch: int  # sequences of this context that fit, with the engine started for so many
    largest_together: float
    free_batch: int  # up to here a step reads longer than it computes, and all fit
    ends_by: str  # what comes then
    line_batch: int  # sequences of this context that the printed line takes at once
    line_together: float
    context_tokens: int  # of each

    document = asdict

    @property
    def words(self):
        """In one line: what the printed line takes; what `--batch` would make of it."""
        said, together = [], lambda rate: f"{rate:,.1f} tokens/s together"
        if self.batch > 1 and self.together:
            said.append(f"a batch of {self.batch:,}: {together(self.together)}, {self.each:,.1f} each")
        elif self.line_batch:
            said.append(f"users: the line takes {self.line_batch:,} at once, {together(self.line_together)}")
        if self.largest_batch > self.line_batch:
            n = self.largest_batch
            said.append(f"with `--batch {n}` {n:,} {'fits' if n == 1 else 'fit'}, {together(self.largest_together)}")
        return "; ".join([*said, f"more are free up to {self.free_batch:,}: then {self.ends_by}"])


def users(config, placed, link, job, batch, most, line, confirmed, tokens, full=False):
    """The Users of a way whose `job(share)` is a step of so many sequences, each of which confirms so many tokens;
    `full` where --max-num-seqs and not the cache stops more. The printed line takes `line` of them."""
    def rate(sequences):
        return sequences * confirmed / one_pass.seconds(config, placed, link, job(placed.share(sequences)), MID)

    def computes(sequences):
        v = one_pass.view(config, placed, link, job(placed.share(sequences)), MID)
        return v.linear_s + v.attention_s > v.weight_read_s + v.kv_read_s

    free = bisect_right(range(1, most + 1), False, key=computes)
    here = rate(batch) if batch <= most else None
    return Users(batch, here, here and here / batch, most, rate(most) if most else None, free,
                 COMPUTING if free < most else FULL if full else CACHE, line, rate(line) if line else None, tokens)
