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
    largest_batch: int  # sequences of this context that fit
    largest_together: float
    free_batch: int  # up to here a step reads longer than it computes, and all fit
    ends_by: str  # what comes then

    document = asdict

    @property
    def words(self):
        """In one line."""
        said = [f"users: up to {self.largest_batch:,} fit, {self.largest_together:,.1f} tokens/s together",
                f"more are free up to {self.free_batch:,}: then {self.ends_by}"]
        if self.batch > 1 and self.together:
            said.insert(0, f"a batch of {self.batch:,}: {self.together:,.1f} tokens/s together, {self.each:,.1f} each")
        return "; ".join(said)


def users(config, placed, link, job, batch, most, confirmed, full=False):
    """The Users of a way whose `job(share)` is a step of so many sequences, each of which confirms so many tokens;
    `full` where --max-num-seqs and not the cache stops more."""
    def rate(sequences):
        return sequences * confirmed / one_pass.seconds(config, placed, link, job(placed.share(sequences)), MID)

    def computes(sequences):
        v = one_pass.view(config, placed, link, job(placed.share(sequences)), MID)
        return v.linear_s + v.attention_s > v.weight_read_s + v.kv_read_s

    free = bisect_right(range(1, most + 1), False, key=computes)
    here = rate(batch) if batch <= most else None
    return Users(batch, here, here and here / batch, most, rate(most) if most else None, free,
                 COMPUTING if free < most else FULL if full else CACHE)
