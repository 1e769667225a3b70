"""Ways to split a model beside each other, as tables: of a plan, and as people measured two of them."""

from ...formula.units import fixed
from ...planner.evidence.checks import own_table
from .tables import Words


def users_table(found, cards):
    """Every way of a plan on these cards: one user's rate, how many fit, what they get, how many are free."""
    def row(way):
        users, one = way["users"], fixed(way["decode"]["mid"], 1)
        most, free = (f"{users[name]:,}" for name in ("largest_batch", "free_batch"))
        return way["label"], one, most, fixed(users["largest_together"], 1), free

    head = ("way", "one user, tokens/s", "users that fit", "together, tokens/s", "more are free up to")
    return Words(f"Users of {found['context_tokens']:,} tokens each on {cards}", head,
                 tuple(row(way) for way in found["compared"] if way["fits"]), (1, 2, 3, 4))


def pairs(caption, found):
    """Two ways measured against each other on one machine, beside the model's ratio of their speeds."""
    def row(line, found):
        setting = "; ".join(filter(None, (f"{line['model']}, {line['quant']}", line["gpus"], line["link"],
                                          line["engine"], line["workload"])))
        said = ("right" if found.status == "ok" else "wrong") + ", but undecided" * bool(found.note)
        said += "; shown only" * (line["use"] == "report")
        numbers = (fixed(ratio, 2) for ratio in (found.measured, found.low, found.predicted, found.high))
        return (setting, f"{line['way_a']} : {line['way_b']}", *numbers, said, f"{line['id']}, {line['source']}")

    head = ("setting", "ways", "measured", "low", "middle", "high", "side", "row, source")
    return Words(caption, head, tuple(row(*pair) for pair in found), (2, 3, 4, 5))


def against_layers_table():
    """The pairs of tensor parallelism and layers in turn, those that only show among them."""
    found = [pair for name in ("which", "which_report") for table, (rows, _) in [own_table("which", name)]
             for pair in zip(table, rows)]
    alone = lambda way, kind: way.startswith(kind) and "x" not in way.partition("[")[0]
    return pairs("Tensor parallelism over layers in turn, measured and by the model",
                  [(line, row) for line, row in found if alone(line["way_a"], "tp") and alone(line["way_b"], "pp")])
