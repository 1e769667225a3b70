"""The command line. Bad input is one line on stderr and exit 2; a check that misses its target is exit 1."""

import argparse
import json
import sys


class Parser(argparse.ArgumentParser):
    """argparse, with one line per error."""

    def error(self, message):
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(2)


def _number(value):
    if value is None:
        return ""
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.4g}"


def claims(args):
    """Every number of the articles, recomputed."""
    from .evidence.claims import findings

    found = findings()
    if args.json:
        print(json.dumps({"claims": [finding.json() for finding in found]}, ensure_ascii=False))
    else:
        print(f"{'id':26} {'article':>11} {'computed':>11} {'ours':>11} unit     status    verdict  note")
        for f in found:
            numbers = " ".join(f"{_number(n):>11}" for n in (f.article, f.computed, f.book_value))
            print(f"{f.id:26} {numbers} {f.unit:8} {f.status:9} {f.verdict:8} {f.note}".rstrip())
        count = {status: sum(f.status == status for f in found) for status in sorted({f.status for f in found})}
        print(", ".join(f"{number} {status}" for status, number in count.items()))
    return 1 if any(f.status == "miss" for f in found) else 0


def parser():
    """The parser of every command."""
    top = Parser(prog="tpmodel", description="How one language model is split over GPUs, and what that costs.")
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)
    command = commands.add_parser("claims", help="the articles' numbers, recomputed", description=claims.__doc__)
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=claims)
    return top


def main(arguments=None):
    """Run one command; returns the exit code."""
    args = parser().parse_args(arguments)
    try:
        return args.run(args)
    except (ValueError, OSError) as error:
        print(f"tpmodel {args.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
