"""The command line. Bad input is one line on stderr and exit 2; a check that misses its target is exit 1."""

import argparse
import json
import os
import signal
import sys
import threading
from contextlib import contextmanager
from functools import partial

from .. import __version__, inputs
from ..planner.plan import command as plan
from . import address
from .embed import embed, embed_diff
from .measure import command as measuring

LONGEST = 600  # characters of an error


class Parser(argparse.ArgumentParser):
    """argparse, with one line per error that says what is accepted."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.register("type", int, partial(_read, inputs.as_whole, "a whole number of at most 18 digits"))
        self.register("type", float, partial(_read, inputs.as_real, f"a number, below {inputs.MOST:g}"))

    def error(self, message):
        raise SystemExit(_ended(self.prog, message, 2))


def _read(reader, wanted, text):
    value = reader(text)
    if value is None:  # argparse names the flag
        raise argparse.ArgumentTypeError(f"{inputs.shown(text)} is not accepted: it must be {wanted}")
    return value


def _number(value):
    return "" if value is None else f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:,.4g}"


def claims(args):
    """Every number of the articles, recomputed."""
    from ..planner.evidence.claims import findings, summary
    found = findings()
    if args.json:
        print(json.dumps({"claims": [finding.json() for finding in found]}, allow_nan=False))
    else:
        print(f"{'id':26} {'article':>11} {'computed':>11} {'ours':>11} unit     status    verdict  note")
        for f in found:
            numbers = " ".join(f"{_number(n):>11}" for n in (f.article, f.computed, f.book_value))
            note = f.note
            if f.status == "predicted":
                note = f"{f.error_frac:+.1%}, range {_number(f.low)} to {_number(f.high)}; {f.note}"
            print(f"{f.id:26} {numbers} {f.unit:8} {f.status:9} {f.verdict:8} {note}".rstrip("; "))
        print(summary(found))
    return int(any(f.status == "miss" for f in found))


def check(args):
    """Predicted beside measured, for a table with the columns of the project's measured data. Exit 1 when a counted row
    misses or none could be compared."""
    from ..planner.evidence.checks import check as run
    rows, summary = run(args.kind, args.file)
    if args.json:
        print(json.dumps({"rows": [row.json() for row in rows], "summary": summary}, allow_nan=False))
    else:
        heads = " ".join(f"{head:>13}" for head in ("predicted", "low", "high", "measured"))
        print(f"{'id':8} {'quantity':20} {heads} use     status   note")
        for row in rows:
            numbers = " ".join(f"{_number(n):>13}" for n in (row.predicted, row.low, row.high, row.measured))
            print(f"{row.id:8} {row.quantity:20} {numbers} {row.use:7} {row.status:8} {row.note}".rstrip())
        for group, found in summary.get("by", {}).get(args.by, {}).items():
            flat = found | {f"without {left}": bias for left, bias in found.get("without", {}).items()}
            flat.pop("without", None)
            print(f"{args.by} {group}: " + ", ".join(f"{name} {_number(value)}" for name, value in flat.items()))
        flat = {name: value for name, value in summary.items() if name not in ("failed", "by")}
        counts = ", ".join(f"{name} {_number(value)}" for name, value in flat.items())
        print("; ".join(filter(None, (counts, summary["failed"]))))
    return int(bool(summary["failed"]))


def split(args):
    """The layers of each GPU that make a pipeline fastest within memory, or how fast given ones are."""
    from ..planner.plan.split import split as make
    from ..planner.shapes.models import named
    found = make(named(args.model), inputs.counted(args.gpu), args.layers, args.util, args.reserve_gib, args.link,
                 args.tokens, args.batch_tokens, args.head)
    if args.json:
        print(json.dumps(found, allow_nan=False))
    else:
        for stage in found["gpus"]:
            print(f"{stage['name']:22} {stage['layers']:3} layers (room for {stage['room_layers']}), "
                  f"{stage['weights_bytes'] / 2**30:6.2f} GiB of weights, {stage['stage_s'] * 1e3:8.1f} ms a batch")
        print("tokens/s: {low:,.0f} to {high:,.0f}, middle {mid:,.0f}".format(**found["tokens_per_s"]))
        print(f"limited by: {found['limited_by']}")
        print(" ".join(f"{name}={value}" for name, value in found["env"].items()))
    return 0


def parser():
    """The parser of every command."""
    top = Parser(prog="tpmodel", description="How one language model is split over GPUs, and what that costs.")
    top.add_argument("--version", action="version", version=f"tpmodel {__version__}")
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)

    def new(name, run, what):
        command = commands.add_parser(name, help=what, description=run.__doc__)
        command.set_defaults(run=run)
        return command

    new("claims", claims, "the articles' numbers, recomputed")
    add = new("split", split, "the fastest layer split over unequal GPUs").add_argument
    add("--model", required=True, help="name in the catalog, e.g. nemotron-3-embed-8b")
    add("--gpu", action="append", default=[],
        help="name in the catalog or as printed, first stage first; once for each GPU, or 2x NAME")
    add("--layers", help="judge this split in place of the fastest: 20,14")
    add("--util", type=float, default=0.9, help="fraction of the memory that the engine may take")
    add("--reserve-gib", default="0", help="GiB taken before the start on each GPU: 1.4,0")
    add("--link", default="nccl-shm-wsl2", help="name in the catalog")
    add("--tokens", type=float, default=510, help="tokens of a document")
    add("--batch-tokens", type=float, default=8448, help="max_num_batched_tokens")
    add("--head", action="store_true", help="the model has an untied output head, on the last GPU")
    add = new("check", check, "predicted beside measured, for a CSV file").add_argument
    add("kind", help="what the file holds: kv, comm, decode, prefill or which")
    add("file", help="the CSV file")
    add("--by", choices=("source", "engine", "link", "host", "ranks", "kind"),
        help="print the summary of each group, too")
    plan.add_arguments(new("plan", plan.run, "memory, context, speed and the vllm serve line"))
    address.add_arguments(new("link", address.run, "the address of the book's page that asks the same as plan"))
    embed.add_arguments(new("embed", embed.run, "documents to vectors with vLLM, on two GPUs or with offload"))
    add = new("embed-diff", embed_diff.run, "how far two results of embed are apart").add_argument
    add("first", help=".npy file")
    add("second", help=".npy file of the same documents")
    add("--top-k", default="10", help="neighbours of each document to compare (default: %(default)s)")
    add = new("measure", measuring.measure, "what this machine's GPUs reach").add_argument
    add("--out", help="the file for the JSON (default: stdout)")
    add("--force", action="store_true", help="replace the file if it exists")
    add("--quick", action="store_true", help="fewer sizes and repeats: under a minute")
    add("--json", action="store_true", help="print the JSON also where --out is given")
    add = new("fit", measuring.fit, "catalog entries from a measurement or a log").add_argument
    add("file", help=measuring.ACCEPTED)
    add("--gpu",
        help="name in the catalog of the card; a log needs it, a measurement takes the rates it has not from there")
    add("--name", help="key of the entry (default: measured-link, or the card's name)")
    add("--util", type=float, help="gpu_memory_utilization, where the log does not tell it")
    for name, command in commands.choices.items():
        if name not in ("plan", "link", "measure"):  # which have added theirs
            command.add_argument("--json", action="store_true", help="print JSON")
    return top


class Ended(KeyboardInterrupt):
    """A signal that asks to end, raised where Ctrl-C would be, so that a long run can keep what it has."""


@contextmanager
def _signals():
    """kill and a closed terminal end a command as Ctrl-C does."""
    def end(number, _):
        raise Ended(number)

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    mine = [getattr(signal, name) for name in names if hasattr(signal, name)]
    mine = [number for number in mine if signal.getsignal(number) == signal.SIG_DFL]  # nohup ignores one
    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def main(arguments=None):
    """Run one command; returns the exit code."""
    who = "tpmodel"
    try:
        with _signals():
            arguments = sys.argv[1:] if arguments is None else arguments
            for text in arguments:
                if text.startswith("--") and text.endswith("=--"):  # a list to argparse
                    raise inputs.refused(text[2:-3], "--", "give it another value")
            args = parser().parse_args(arguments)
            who = f"tpmodel {args.command}"
            code = args.run(args)
            print(end="", flush=True)  # stdout may be None
            return code
    except BrokenPipeError:  # whoever reads has enough
        return _ended(who, "", 0)
    except KeyboardInterrupt as stop:
        number, by = signal.SIGINT, "Ctrl-C"
        if isinstance(stop, Ended):
            number, by = stop.args[0], signal.Signals(stop.args[0]).name
        return _ended(who, ": ".join([f"stopped by {by}", *getattr(stop, "__notes__", ())]), 128 + number)
    except OSError as error:  # files are named where they are read and written; what is left is stdout
        return _ended(who, f"{error.filename or 'standard output'}: {inputs.cause(error)}", 2)
    except (ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        return _ended(who, error if str(error) else type(error).__name__, 2)


def _ended(who, why, code):
    """The exit code, after one line of bearable length on stderr that says why (where there is something to say)."""
    line = " ".join(str(why).split())
    if len(line) > LONGEST:
        start, end = line[:LONGEST // 2], line[-LONGEST // 2:]
        line = f"{start.rpartition(' ')[0] or start} ... {end.partition(' ')[2] or end}"
    if why:
        print(f"{who}: {line}", file=sys.stderr)
    try:
        print(end="", flush=True)
    except OSError:  # no second complaint about stdout when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
