"""What engines printed about their cache, beside our rules: the tables of the page on the engine."""

from functools import cache
from importlib import resources

from ...planner.evidence.checks import check, read_table
from ...planner.evidence.loads import loads
from ...planner.evidence.pools import starts
from .tables import Words, short

QUANTITIES = {"printed_needed_gib": "needed, GiB", "printed_est_max_len": "largest length",
              "printed_kv_tokens": "cache, tokens", "printed_concurrency": "sequences",
              "printed_load_gib": "weights, GiB", "printed_block": "block, tokens"}


@cache
def _checked(file):
    with resources.as_file(resources.files("tpmodel.planner.evidence") / "data" / file) as path:
        return read_table(path)[1], check("kv", path)


def counts(file):
    """The summary of one table of cases."""
    return _checked(file)[1][1]


def _table(caption, keep, noted=False):
    """The rows to keep as texts: the model in place of the case, and for misses what the log's collector noted."""
    table, (rows, _) = _checked("kv_cases.csv")
    lines = {line.text("id"): line for line in table}
    cells = lambda line, row: (
        line.text("model"), QUANTITIES[row.quantity], short(row.predicted), f"{short(row.low)} to {short(row.high)}",
        short(row.measured), *([line.text("note") or row.note or "nothing"] if noted else ()))
    head = ("model", "printed number", "ours", "range", "printed", *(["what is known"] if noted else ()))
    return Words(caption, head, tuple(cells(lines[row.id], row) for row in rows if keep(row)), numbers=(2, 4))


def gate_table():
    """Every gate row of the public logs that could be predicted."""
    return _table("Printed by engines", lambda row: row.use == "gate" and row.status == "ok")


def missed_table():
    """Every row that misses, gate or not, with what is known."""
    return _table("Where we miss", lambda row: row.status == "miss", noted=True)


def log_table(case):
    """The lines of one public log, as vLLM prints them, each beside what our rules give of its inputs."""
    table, (rows, _) = _checked("kv_cases.csv")
    line = next(line for line in table if line.text("id") == case)
    words = {"printed_block": "Setting attention block size to {} tokens",
             "printed_kv_tokens": "GPU KV cache size: {} tokens",
             "printed_concurrency": f"Maximum concurrency for {line.number('max_len'):,} tokens per request: {{}}x",
             "printed_needed_gib": "{} GiB KV cache is needed", "printed_load_gib": "Model loading took {} GiB",
             "printed_est_max_len": "the estimated maximum model length is {}"}
    given = f"Available KV cache memory: {line.text('available_gib')} GiB", "given", ""
    known = [row for row in rows if row.id == case and None not in (row.measured, row.predicted)]
    said = [(words[row.quantity].format(short(row.measured)), short(row.predicted),
             f"{short(row.low)} to {short(row.high)}") for row in known]
    return Words(f"{line.text('model')}: {line.text('source')}", ("the log says", "ours", "range"), (given, *said))


def _known(one):
    """What is known of a row, and its source, as one text."""
    return ": ".join(filter(None, (one.note, one.source)))


def loads_table():
    """Weights as loaded of builds that public logs name, beside ours."""
    cells = lambda one: (one.model, f"{one.printed_gib:.2f}", f"{one.ours_gib:.2f}", f"{100 * one.error:+.1f}",
                         _known(one))
    head = "model", "GiB a GPU", "ours", "off by, %", "what is known, and source"
    return Words("Weights as vLLM loaded them", head, tuple(map(cells, loads())), numbers=(1, 2, 3))


def starts_table():
    """Starts of vLLM whose pool was printed: by article 1's 1.2 GiB, by the parts, and without the row's own source."""
    cells = lambda one: (one.model, f"{one.measured_gib:.2f}", f"{one.before_gib:.2f}", f"{one.parts_gib:.2f}",
                         "{:.2f} to {:.2f}".format(*one.range_gib), f"{one.left_out_gib:.2f}", _known(one))
    head = ("model", "pool, GiB", "by 1.2 GiB", "by the parts", "range", "source left out", "what is known, and source")
    return Words("Pools of public starts", head, tuple(map(cells, starts())), numbers=(1, 2, 3, 5))
