"""`tpmodel plan`: its flags, and what it prints."""

import json
from argparse import Action
from dataclasses import fields

from ... import inputs
from ...formula.units import many
from . import places


def run(args):
    """Memory, context and speed of a model on GPUs, for one way to split it or the best of all,
    and the line that serves it."""
    from .plan import whole
    from .why import lines, why

    made = whole(asked(args))
    found = made.document()
    if args.why is not None:
        found["why"] = why(made, args.why)
    if args.json:
        print(json.dumps(found, allow_nan=False))
    else:
        print(lines(found["why"]) if args.why is not None else "\n".join(_lines(found, args, made)))
    return 0


def asked(args):
    """The Ask of the flags as they were read."""
    from ..shapes.models import named
    from .values import Ask

    written = {name: getattr(args, name) and getattr(args, name).lower() for name in ("kv_dtype", "quant", "parallel")}
    told = vars(args) | written | {"model": named(args.model), "gpus": tuple(inputs.counted(args.gpu or ())),
                         "layers": None if args.layers is None else inputs.layers(args.layers)}
    if args.link is not None and len(told["gpus"]) == 1:
        raise inputs.refused("link", args.link, "it must be given with two GPUs or more")
    return Ask(**{field.name: told[field.name] for field in fields(Ask)})


def _lines(found, args, made):
    """The plan as lines of text."""
    yield found["verdict"]
    told = []
    for gpu in found["gpus"]:
        gib = {name: f"{gpu[f'{name}_bytes'] / 2**30:.2f}" for name in ("weights", "overhead", "budget", "kv_pool")}
        yield ("  {name}: weights {weights}, overhead {overhead}, of {budget} GiB; "
               "left for the cache {kv_pool} GiB".format(**gpu, **gib))
        yield from map(_part, gpu["parts"] if args.explain and gpu["parts"] not in told else ())
        told.append(gpu["parts"])
    if found["command"]:
        yield f"  vLLM's log: {logged(found['log'])}"
    prompts = "documents" if found["runner"] == "pooling" else "prefill of one prompt"
    together = f" of {args.batch} sequences together" if args.batch > 1 else ""
    prompt = many((found["prefill"] or {}).get("prompt_tokens", 0), "token")
    for at, part in ((f"decode{together} at {many(found['context_tokens'], 'token')}", found["decode"]),
                     (f"{prompts} of {prompt}", found["prefill"])):
        if part:
            yield ("  " + at + ": {low:,.1f} / {mid:,.1f} / {high:,.1f} tokens/s (low / mid / high), "
                   "limited by the {limited_by}").format(**part)
        for name, ends in part["terms"].items() if part and args.explain else ():
            yield "    {}: {low_ms:,.2f} / {mid_ms:,.2f} / {high_ms:,.2f} ms".format(name, **ends)
    if made.best.users and made.best.users.largest_batch:
        yield f"  {made.best.users.words}"
    for other in found["compared"]:
        speeds = [f"{part} {other[part]['mid']:,.1f}" for part in ("decode", "prefill") if other[part]]
        holds = f"{many(other['max_context_tokens'], 'token')}; {', '.join(speeds)}"
        said = "; {line_batch:,} users {line_together:,.1f} together" if other["fits"] else (
            "; with `--batch {largest_batch}` {largest_together:,.1f} together")
        several = other["users"] and other["users"]["line_batch" if other["fits"] else "largest_batch"] > 1
        users = said.format(**other["users"]) if several else ""
        yield f"  {other['label']}: {holds if other['fits'] else 'does not fit'}{users}"
    yield from (f"  left out: {refusal}" for refusal in found["refused"])
    yield from _links(found, args, made) if len(made.machine.cards) > 1 else ()
    yield from (f"  assumed: {said}" for said in found["assumptions"] if args.explain)
    yield from filter(None, [found["command"]])
    yield from (f"  {said}" for said in found["notes"])


def _links(found, args, made):
    """The link as lines: what it is, peer access where it was not said, how to narrow it."""
    others = ", ".join(found["other_links"])
    yield "  link: {link}, {link_name}".format(**found) + (f" (your catalog also has {others})" if others else "")
    peer = found["with_peer_access"]
    if peer and peer["prefill"]:
        way, speeds = peer["split"]["label"], [f"{part} {peer[part]['mid']:,.1f}" for part in ("decode", "prefill")
                                               if peer[part]]
        yield f"  the link was not said; with peer access ({peer['link']}): {way}, {', '.join(speeds)} tokens/s"
        yield f"  which one it is: {peer['how_to_know']}"
    if args.link is None and not (args.host and args.slot):
        boarded = found["link"] == places.board(made.machine.cards)
        yield ("  it is that of the board or cable such cards come with; where they sit in slots, say --link shm or p2p"
               if boarded else "  what the cards sit in narrows the ranges: --host and --slot say it")


def logged(log):
    """What vLLM will print, in its own words."""
    gib = lambda sizes: " / ".join(f"{size / 2**30:.2f}" for size in dict.fromkeys(sizes))
    return (f"Model loading took {gib(log['model_loading_bytes'])} GiB; "
            f"KV cache memory {gib(log['available_bytes'])} GiB, CUDA graphs {gib(log['graph_bytes'])} GiB; "
            f"GPU KV cache size {many(log['kv_cache_tokens'], 'token')} ({many(log['num_blocks'], 'block')}), "
            f"maximum concurrency for {many(log['max_model_len'], 'token')} {log['max_concurrency']:.2f}x")


def _part(row):
    """A part of the overhead as a line: its size, its range, what makes it smaller, where it is from."""
    size, low, high = (row[name] / 2**30 for name in ("bytes", "low_bytes", "high_bytes"))
    span = f" ({low:.2f} to {high:.2f})" if f"{low:.2f}" != f"{high:.2f}" else ""
    less = f"; less with {row['less_with']}" if row["less_with"] else ""
    held = f"{row['apart']}: " if row["apart"] else ""
    return f"    {held}{row['name']} {size:.2f} GiB{span}{less} ({row['kind']}: {row['source']})"


class _List(Action):
    """Prints every name that the options take from the catalog."""

    def __call__(self, parser, *_):
        from ...catalog import gpus, hosts, links, sourced
        from ..shapes.models import shapes
        for kind, names in (("model", shapes()), ("gpu", gpus.gpus()), ("link", links.listed()),
                            ("host", hosts.hosts()), ("slot", sourced.load(hosts.SLOTS))):
            print(*(f"{kind} {name}" for name in names), sep="\n")
        parser.exit()


def add_arguments(command):
    """The flags of `tpmodel plan`."""
    def add(flag, help, **more):
        command.add_argument(flag, help=f"{help} (default: %(default)s)" if "default" in more else help, **more)

    add("--model", "a name in the catalog, or a config.json or its folder", required=True)
    add("--gpu", "name in the catalog, or as programs print it; once for each GPU, or 2x NAME", action="append")
    add("--parallel", "one, tp, pp, tp2xpp2, replicas2, offload or auto, which compares them", default="auto")
    add("--layers", "pp: layers of each stage, 20,14 (default: as vLLM splits)")
    add("--link", "shm (through host memory), p2p (peer access), oneshot, mailbox, staged, or a name in the catalog: "
        "p2p-pcie4-x16, nvlink-h200, ... (default: shm, and p2p beside it)")
    add("--host", "what the cards sit in, as it prints its processor or epyc-zen2, epyc-zen4, desktop, ...; 2x NAME "
        "where they sit on both of its sockets (default: a wide range)")
    add("--slot", "slot of the slower card: pcie4-x8, oculink, thunderbolt-4, ...; with the word shared where two "
        "cards share one way up (default: at best the card's own)")
    add("--kv-dtype", "bf16, fp8, ... (default: what the build says)")
    add("--context", "tokens that must fit (default: as many as fit)", type=int)
    add("--util", "fraction of the memory that the engine may take", type=float, default=0.92)
    add("--reserve-gib", "GiB taken before the start on each GPU: 1.4,0", default="0")
    add("--mtp", "tokens drafted a round by the model's MTP layer", type=int, default=0)
    add("--acceptance", "chance that the next draft is accepted where those before it were (default: a range); no "
        "engine prints it: take one of the next two", type=float)
    add("--accepted-per-draft", "accepted / drafted, the rate of acceptance that vLLM and llama.cpp print", type=float)
    add("--acceptance-length", "tokens confirmed a round, the mean acceptance length that vLLM prints", type=float)
    add("--batch", "sequences decoded together, each of the context", type=int, default=1)
    add("--prompt", "tokens of the prompt that prefill is asked for (default: 8,192, or the context)", type=int)
    add("--max-num-seqs", "most sequences at once, for the line", type=int)
    add("--max-num-batched-tokens", "most tokens of one pass, for the line (default: 2,048)", type=int)
    add("--text-only", "leave the vision tower out", action="store_true")
    add("--quant", "plan an unquantised model as awq, gptq, fp8, fp8-block, nvfp4 or mxfp4")
    add("--weights-gib", "what the quantised build weighs, where its size is known", type=float)
    add("--kernel", "multiplies the quantised weights: bf16, fp8, fp4, marlin, ... (default: the engine's)")
    add("--repository", "name of the weights, for the line: owner/name on the Hub, or a folder", metavar="NAME")
    add("--cpu-offload-gib", "GiB of the weights of each GPU that stay in main memory (default: what must)", type=float)
    add("--engine", "the vLLM version whose rules count; llama.cpp, SGLang, ...: speeds only", default="vllm-0.33")
    add("--goal", "what auto compares: decode or prefill", default="decode")
    add("--catalog", "a TOML file with GPUs and links of your own")
    add("--why", "print how a quantity came about: decode_tokens_per_s, kv_pool_bytes, prefill_s, ...", metavar="NAME")
    add("--explain", "print every term and assumption", action="store_true")
    add("--json", "print JSON", action="store_true")
    add("--list", "print the models, GPUs, links, hosts and slots of the catalog, and exit", action=_List, nargs=0)
    command.set_defaults(run=run)
