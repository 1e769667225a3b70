"""The command line. Bad input is one line on stderr and exit 2; a check that misses its target is exit 1."""

import argparse
import json
import sys

from .vllm import embed, embed_diff


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
    from .evidence.claims import findings, summary

    found = findings()
    if args.json:
        print(json.dumps({"claims": [finding.json() for finding in found]}, ensure_ascii=False))
    else:
        print(f"{'id':26} {'article':>11} {'computed':>11} {'ours':>11} unit     status    verdict  note")
        for f in found:
            numbers = " ".join(f"{_number(n):>11}" for n in (f.article, f.computed, f.book_value))
            range_ = f"{f.error_frac:+.1%}, range {_number(f.low)} to {_number(f.high)}; " if f.status == "predicted" else ""
            print(f"{f.id:26} {numbers} {f.unit:8} {f.status:9} {f.verdict:8} {range_}{f.note}".rstrip("; "))
        print(summary(found))
    return 1 if any(f.status == "miss" for f in found) else 0


def check(args):
    """Predicted beside measured, for a table with the columns of the project's measured data."""
    from .evidence.checks import check as run

    rows, summary = run(args.kind, args.file)
    if args.json:
        print(json.dumps({"rows": [row.json() for row in rows], "summary": summary}, ensure_ascii=False))
    else:
        print(f"{'id':8} {'quantity':20} {'predicted':>13} {'low':>13} {'high':>13} {'measured':>13} use     status   note")
        for row in rows:
            numbers = " ".join(f"{_number(n):>13}" for n in (row.predicted, row.low, row.high, row.measured))
            print(f"{row.id:8} {row.quantity:20} {numbers} {row.use:7} {row.status:8} {row.note}".rstrip())
        print(", ".join(f"{name} {_number(value)}" for name, value in summary.items()))
    return 1 if summary["miss"] else 0


def split(args):
    """The layers of each GPU that make a pipeline fastest within memory, or how fast given ones are."""
    from .split import split as plan

    found = plan(args.model, args.gpu, args.layers, args.util, args.reserve_gib, args.link, args.tokens, args.batch_tokens, args.head)
    if args.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        for stage in found["gpus"]:
            print(f"{stage['name']:22} {stage['layers']:3} layers (room for {stage['room_layers']}), "
                  f"{stage['weights_bytes'] / 2**30:6.2f} GiB of weights, {stage['stage_s'] * 1e3:8.1f} ms a batch")
        print("tokens/s: {low:,.0f} to {high:,.0f}, middle {mid:,.0f}".format(**found["tokens_per_s"]))
        print(f"limited by: {found['limited_by']}")
        print(" ".join(f"{name}={value}" for name, value in found["env"].items()))
    return 0


def plan(args):
    """Memory, context and speed of a model on GPUs, for one way to split it or the best of all, and the line that serves it."""
    from .plan.plan import plan as make

    layers = None if args.layers is None else _layers(args.layers)
    found = make(args.model, args.gpu, args.parallel, layers, args.link, args.kv_dtype, args.context, args.util, args.reserve_gib,
                 args.mtp, args.acceptance, args.batch, args.engine, args.catalog, args.goal)
    if args.json:
        print(json.dumps(found, ensure_ascii=False))
        return 0
    print(found["verdict"])
    for gpu in found["gpus"]:
        gib = {name: f"{gpu[name + '_bytes'] / 2**30:.2f}" for name in ("weights", "overhead", "budget", "kv_pool")}
        print("  {name}: weights {weights}, overhead {overhead}, of {budget} GiB; left for the cache {kv_pool} GiB".format(**gpu, **gib))
    for part in ("decode", "prefill"):
        if found[part]:
            print("  {part}: {low:,.1f} / {mid:,.1f} / {high:,.1f} tokens/s (low / mid / high), limited by the {limited_by}".format(part=part, **found[part]))
            if args.explain:
                for name, ends in found[part]["terms"].items():
                    print(f"    {name}: {ends['low_ms']:,.2f} / {ends['mid_ms']:,.2f} / {ends['high_ms']:,.2f} ms")
    for other in found["compared"]:
        speeds = ", ".join(f"{part} {other[part]['mid']:,.1f}" for part in ("decode", "prefill") if other[part]) or "does not fit"
        print(f"  {other['kind']} {','.join(map(str, other['layers']))}: {other['max_context_tokens']:,} tokens; {speeds}")
    if args.explain:
        print(*(f"  assumed: {said}" for said in found["assumptions"]), sep="\n")
    print(found["command"])
    return 0


def _layers(text):
    parts = text.split(",")
    if not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        raise ValueError(f"layers = {text!r} is not accepted: it must be whole numbers >= 1 with commas between")
    return tuple(map(int, parts))


def parser():
    """The parser of every command."""
    top = Parser(prog="tpmodel", description="How one language model is split over GPUs, and what that costs.")
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)
    command = commands.add_parser("claims", help="the articles' numbers, recomputed", description=claims.__doc__)
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=claims)
    command = commands.add_parser("plan", help="memory, context, speed and the vllm serve line", description=plan.__doc__)
    command.add_argument("--model", required=True, help="a name in the catalog, or a config.json or its folder")
    command.add_argument("--gpu", action="append", default=[], help="name in the catalog; once for each GPU")
    command.add_argument("--parallel", default="auto", help="one, tp, pp, offload or auto (compares them)")
    command.add_argument("--layers", help="layers of each pipeline stage: 20,14")
    command.add_argument("--link", default="shm", help="name in the catalog: shm, p2p-pcie4-x16, nvlink-h200, ...")
    command.add_argument("--kv-dtype", help="bf16, fp8, ...; default: what the build says")
    command.add_argument("--context", type=int, help="tokens that must fit; default: as many as fit")
    command.add_argument("--util", type=float, default=0.92, help="fraction of the memory that the engine may take")
    command.add_argument("--reserve-gib", default="0", help="GiB taken before the start on each GPU: 1.4,0")
    command.add_argument("--mtp", type=int, default=0, help="tokens drafted a round by the model's MTP layer")
    command.add_argument("--acceptance", type=float, default=0.0, help="chance that a drafted token is accepted")
    command.add_argument("--batch", type=int, default=1, help="sequences decoded together")
    command.add_argument("--engine", default="vllm-0.33", help="the vLLM version whose rules count")
    command.add_argument("--goal", default="decode", help="what auto compares: decode or prefill")
    command.add_argument("--catalog", help="a TOML file with GPUs and links of your own")
    command.add_argument("--explain", action="store_true", help="print every term and assumption")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=plan)
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
    command.add_argument("kind", help="what the file holds: kv")
    command.add_argument("file", help="the CSV file")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=check)
    for name, module, what in (("embed", embed, "documents to vectors with vLLM, on two GPUs or with offload"),
                               ("embed-diff", embed_diff, "how far two results of embed are apart")):
        module.add_arguments(commands.add_parser(name, help=what, description=module.run.__doc__))
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
