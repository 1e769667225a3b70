"""The command line. Bad input is one line on stderr and exit 2; a check that misses its target is exit 1."""

import argparse
import json
import os
import signal
import sys
import threading
from contextlib import contextmanager

from .. import __version__, inputs
from ..planner.plan import command as plan
from .embed import embed, embed_diff
from .measure import command as measuring

LONGEST = 600  # characters of an error


class Parser(argparse.ArgumentParser):
    """argparse, with one line per error that says what is accepted."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.register("type", int, _whole)
        self.register("type", float, _real)

    def error(self, message):
        _complain(self.prog, message)
        raise SystemExit(2)


def _complain(who, message):
    """One line on stderr, of bearable length."""
    line = " ".join(str(message).split())
    if len(line) > LONGEST:
        start, end = line[:LONGEST // 2], line[-LONGEST // 2:]
        line = f"{start.rpartition(' ')[0] or start} ... {end.partition(' ')[2] or end}"
    print(f"{who}: {line}", file=sys.stderr)


def _whole(text):
    return _read(inputs.as_whole, text, "a whole number of at most 18 digits")


def _real(text):
    return _read(inputs.as_real, text, f"a number, below {inputs.MOST:g}")


def _read(reader, text, wanted):
    value = reader(text)
    if value is None:  # argparse names the flag
        raise argparse.ArgumentTypeError(f"{inputs.shown(text)} is not accepted: it must be {wanted}")
    return value


def _number(value):
    if value is None:
        return ""
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.4g}"


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
            range_ = f"{f.error_frac:+.1%}, range {_number(f.low)} to {_number(f.high)}; " if f.status == "predicted" else ""
            print(f"{f.id:26} {numbers} {f.unit:8} {f.status:9} {f.verdict:8} {range_}{f.note}".rstrip("; "))
        print(summary(found))
    return 1 if any(f.status == "miss" for f in found) else 0


def check(args):
    """Predicted beside measured, for a table with the columns of the project's measured data. Exit 1 when a counted row misses or none could be compared."""
    from ..planner.evidence.checks import check as run

    rows, summary = run(args.kind, args.file)
    if args.json:
        print(json.dumps({"rows": [row.json() for row in rows], "summary": summary}, allow_nan=False))
    else:
        print(f"{'id':8} {'quantity':20} {'predicted':>13} {'low':>13} {'high':>13} {'measured':>13} use     status   note")
        for row in rows:
            numbers = " ".join(f"{_number(n):>13}" for n in (row.predicted, row.low, row.high, row.measured))
            print(f"{row.id:8} {row.quantity:20} {numbers} {row.use:7} {row.status:8} {row.note}".rstrip())
        failed = f"; {summary['failed']}" if summary["failed"] else ""
        print(", ".join(f"{name} {_number(value)}" for name, value in summary.items() if name != "failed") + failed)
    return 1 if summary["failed"] else 0


def split(args):
    """The layers of each GPU that make a pipeline fastest within memory, or how fast given ones are."""
    from ..planner.plan.split import split as make

    found = make(args.model, args.gpu, args.layers, args.util, args.reserve_gib, args.link, args.tokens, args.batch_tokens, args.head)
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
    command = commands.add_parser("claims", help="the articles' numbers, recomputed", description=claims.__doc__)
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=claims)
    command = commands.add_parser("split", help="the fastest layer split over unequal GPUs", description=split.__doc__)
    command.add_argument("--model", required=True, help="name in the catalog, e.g. nemotron-3-embed-8b")
    command.add_argument("--gpu", action="append", default=[], help="name in the catalog, first stage first; once for each GPU")
    command.add_argument("--layers", help="judge this split in place of the fastest: 20,14")
    command.add_argument("--util", type=float, default=0.9, help="fraction of the memory that the engine may take")
    command.add_argument("--reserve-gib", default="0", help="GiB taken before the start on each GPU: 1.4,0")
    command.add_argument("--link", default="nccl-shm-wsl2", help="name in the catalog")
    command.add_argument("--tokens", type=float, default=510, help="tokens of a document")
    command.add_argument("--batch-tokens", type=float, default=8448, help="max_num_batched_tokens")
    command.add_argument("--head", action="store_true", help="the model has an untied output head, on the last GPU")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=split)
    command = commands.add_parser("check", help="predicted beside measured, for a CSV file", description=check.__doc__)
    command.add_argument("kind", help="what the file holds: kv, comm, decode or prefill")
    command.add_argument("file", help="the CSV file")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=check)
    for name, module, what in (("plan", plan, "memory, context, speed and the vllm serve line"),
                               ("embed", embed, "documents to vectors with vLLM, on two GPUs or with offload"),
                               ("embed-diff", embed_diff, "how far two results of embed are apart")):
        module.add_arguments(commands.add_parser(name, help=what, description=module.run.__doc__))
    measuring.add_measure_arguments(commands.add_parser("measure", help="what this machine's GPUs reach", description=measuring.measure.__doc__))
    measuring.add_fit_arguments(commands.add_parser("fit", help="catalog entries from a measurement or a log", description=measuring.fit.__doc__))
    return top


class Ended(KeyboardInterrupt):
    """A signal that asks to end, raised where Ctrl-C would be, so that a long run can keep what it has."""


@contextmanager
def _signals():
    """kill and a closed terminal end a command as Ctrl-C does."""
    def end(number, _):
        raise Ended(number)

    mine = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    mine = [number for number in mine if signal.getsignal(number) == signal.SIG_DFL]  # nohup ignores one
    if threading.current_thread() is not threading.main_thread():
        mine = []
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
            for lost in (text for text in arguments if text.startswith("--") and text.endswith("=--")):  # a list to argparse
                raise inputs.refused(lost[2:-3], "--", "give it another value")
            args = parser().parse_args(arguments)
            who = f"tpmodel {args.command}"
            code = args.run(args)
            print(end="", flush=True)  # stdout may be None
            return code
    except BrokenPipeError:  # whoever reads has enough
        _mute()
        return 0
    except KeyboardInterrupt as stop:
        number = stop.args[0] if isinstance(stop, Ended) else signal.SIGINT
        by, kept = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name, getattr(stop, "kept", "")
        return _ended(who, f"stopped by {by}{kept and ': '}{kept}", 128 + number)
    except OSError as error:  # files are named where they are read and written; what is left is stdout
        return _ended(who, f"{error.filename or 'standard output'}: {inputs.cause(error)}", 2)
    except (ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        return _ended(who, error if str(error) else type(error).__name__, 2)


def _ended(who, why, code):
    """The exit code, after one line that says why."""
    _complain(who, why)
    try:
        print(end="", flush=True)
    except OSError:
        _mute()
    return code


def _mute():
    """No second complaint about stdout when Python ends."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
