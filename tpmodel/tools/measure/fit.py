"""Catalog entries from what was measured: the GPUs of a `measure` result, a link from the times of its all-reduces."""

import json
import math
import re
import statistics
from dataclasses import asdict
from datetime import date

from ... import inputs
from ...catalog.assumptions import assumed
from ...catalog.sourced import TO_BASE
from ...formula.units import GIB
from ...formulas.collectives import allreduce_s, allreduce_wire_bytes, group_latency_s, protocol_allreduce_s
from . import SCHEMA

SMALL_BYTES = 1024  # a message that carries next to nothing
BULK_BYTES = 16 * 2**20  # from here on the bandwidth shows
MOST_ROWS = 200
GPU_RATES = ("copy_bytes_per_s", "matvec_bytes_per_s", "matvec_small_bytes_per_s", "bf16_flop_per_s")
UNITS = {"byte/s": "GB/s", "FLOP/s": "TFLOP/s", "s": "us"}  # that read well


def number(value, unit, origin, where="", note="", kind="measured"):
    """The fields of one catalog number, or of its (low, value, high); `origin` has its source and date."""
    low, mid, high = value if isinstance(value, tuple) else (None, value, None)
    shown = UNITS.get(unit, unit)
    low, short, high = (None if end is None else float(f"{end / TO_BASE[shown]:.6g}") for end in (low, mid, high))
    found = {"value": mid if unit == "byte" and mid == int(mid) else short, "unit": shown, "kind": kind,
             "low": low, "high": high, **origin, "where": where, "note": note}
    return {name: field for name, field in found.items() if name == "unit" or field not in (None, "")}


def fit_link(rows, ranks):
    """({term: (low, value, high)} of the link that rows of (bytes, seconds) come closest to, how close).

    The latency is the median of the smallest messages. The bandwidth is one of the slopes between large messages, the
    bulk latency one of the rows' own t - V / B: the pair with the least sum of |log(predicted / measured)|.
    """
    small = [t for size, t in rows if size <= SMALL_BYTES]
    big = sorted(row for row in rows if row[0] >= BULK_BYTES)
    if not small or len({size for size, _ in big}) < 2:
        raise ValueError(f"the all-reduces have {len(small)} messages of at most 1 KiB and {len(big)} of at least 16 "
                         "MiB: a fit needs one small and two large sizes (all_reduce_perf -b 8 -e 256M -f 2)")
    start = statistics.median(small)
    slopes = {(allreduce_wire_bytes(last, ranks) - allreduce_wire_bytes(first, ranks)) / (last_s - first_s)
              for first, first_s in big for last, last_s in big if first < last and first_s < last_s}
    if not slopes or big[-1][1] <= big[-2][1]:
        raise ValueError(f"the all-reduce of {big[-1][0]} bytes is not slower than that of {big[-2][0]} bytes: "
                         "measure again, on an idle machine")

    def ratios(rate, bulk):
        return [protocol_allreduce_s(size, ranks, rate, start, bulk) / t for size, t in rows]

    tried = [(rate, max(start, t - allreduce_s(size, ranks, rate, 0))) for rate in sorted(slopes) for size, t in rows]
    rate, bulk = min(dict.fromkeys(tried), key=lambda pair: sum(abs(math.log(ratio)) for ratio in ratios(*pair)))
    errors = [abs(ratio - 1) for ratio in ratios(rate, bulk)]
    said = {"rows": len(rows), "median_abs_error_frac": statistics.median(errors), "worst_abs_error_frac": max(errors)}
    return _ranges([(allreduce_s(size, ranks, rate, 0), t) for size, t in rows], rate, start, bulk), said


def _ranges(rows, rate, start, bulk):
    """{term: (low, value, high)} of rows of (seconds for the bytes at `rate`, seconds measured): each lies between the
    prediction with all of the fast ends and that with all of the slow."""
    rates, starts, bulks = [rate], [start], [bulk]
    for carry, t in rows:
        ways = sorted([(start + 2 * carry, start, 2 * carry, starts), (bulk + carry, bulk, carry, bulks)])
        slower = [way for way in ways if way[0] < t]  # neither may be quicker than what was measured
        for _, wait, copies, waits in ways[:1] if t < ways[0][0] else slower:
            if copies > wait and t > wait:  # mostly bytes: the bandwidth answers for it
                rates.append(rate * copies / (t - wait))
            else:
                waits.append(max(0.0, t - copies))
                rates.append(rate * copies / t if t < copies else rate)
    return {"link_bytes_per_s": (min(rates), rate, max(rates)),
            "allreduce_latency_s": (min(*starts, *bulks), start, max(starts)),
            "bulk_latency_s": (min(bulks), bulk, max(bulks))}


def link_entry(rows, ranks, name, source, day):
    """(the link as catalog fields, how close the fit is). The catalog's latency is that of a pair."""
    terms, said = fit_link(rows, ranks)
    origin, ring = {"source": source, "date": day}, assumed("link")  # NCCL's
    more_s = group_latency_s(0, ranks, ring.link_latency_s)
    starts = tuple(max(0.0, end - more_s) for end in terms["allreduce_latency_s"])
    slope = f"slope between two large of {len(rows)} all-reduces between {ranks} GPUs"
    median = "median up to 1 KiB" + (f", less {more_s * 1e6:g} us for the GPUs beyond two" if more_s else "")
    return {"name": clean(name), **ring.said,
            "link_bytes_per_s": number(terms["link_bytes_per_s"], "byte/s", origin, slope),
            "allreduce_latency_s": number(starts, "s", origin, median),
            "bulk_latency_s": number(terms["bulk_latency_s"], "s", origin, "fitted to all of them"),
            "link_latency_s": kept(ring.numbers["link_latency_s"])}, said


def clean(text):
    """A name that can be printed in quotes."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:100] or "unnamed"


def slug(name):
    """The key of a card: `NVIDIA GeForce RTX 5060 Ti` is rtx-5060-ti."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return re.sub(r"^(nvidia-)?(geforce-)?", "", plain) or "gpu"


def positive(value, what):
    """A finite number above 0, as it stands in the file."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < inputs.MOST:
        raise inputs.refused(what, value, "it must be a number above 0")
    return value


def table(value, what):
    """[(bytes, seconds)] as it stands in the file."""
    if not (isinstance(value, list) and 0 < len(value) <= MOST_ROWS
            and all(isinstance(row, list) and len(row) == 2 for row in value)):
        raise ValueError(f"{what} is not accepted: it must be a list of 1 to {MOST_ROWS} pairs "
                         "[message_bytes, seconds]")
    return [(positive(size, f"{what}: message_bytes"), positive(t, f"{what}: seconds")) for size, t in value]


def _rate(gpus, name):
    """(low, median, high) of one number over the GPUs of one model; None where it was not measured."""
    values = [positive(gpu[name], name) for gpu in gpus if gpu.get(name) is not None]
    ranges = [(gpu.get("ranges") or {}).get(name) or [] for gpu in gpus] if values else []
    for pair in ranges:
        if not isinstance(pair, list):
            raise inputs.refused(f"ranges.{name}", pair, "it must be a list [least, most]")
    ends = values + [positive(end, f"ranges.{name}") for pair in ranges for end in pair]
    return (min(ends), statistics.median(values), max(ends)) if values else None


def _card(gpus, base, origin):
    """The catalog fields of one GPU model."""
    copy, matvec, narrow, flops = (_rate(gpus, name) for name in GPU_RATES)
    first, name, lacks = gpus[0], gpus[0]["name"], "bf16_flop_per_s" if copy else "copy_bytes_per_s"
    if not copy or not flops:
        raise ValueError(f"the measurement of {name} has no {lacks}: see failed in the file")
    best = max(copy, matvec or copy, key=lambda ends: ends[1])
    total, mib = positive(first.get("total_bytes"), "total_bytes"), first.get("reported_mib")
    vram = total if mib is None else positive(mib, "reported_mib") * 2**20
    engine = "what an engine takes its fraction of"
    read = "a copy, bytes read and written" if best is copy else "weights through matrix-vector products"
    found = {"name": clean(name) + ", measured", **base,
             "vram_bytes": number(vram, "byte", origin, "nvidia-smi" if mib else ""),
             "reported_bytes": number(total, "byte", origin, "torch.cuda.mem_get_info", engine),
             "memory_bytes_per_s": number(best, "byte/s", origin, read),
             "bf16_flop_per_s": number(flops, "FLOP/s", origin, "a matrix product", "as reached, not of a data sheet"),
             "mfu_frac": kept(assumed("measured-card").numbers["mfu_frac"]) | {"date": origin["date"]}}
    host = [ends for way in ("pinned", "pageable") if (ends := _rate(gpus, f"host_to_device_{way}_bytes_per_s"))]
    if host:
        lows, values, highs = zip(*host)
        found["copy_bytes_per_s"] = number((min(lows), values[0], max(highs)), "byte/s", origin,
                                           "from main memory, pinned where that works; low: not pinned")
    if matvec:
        least = min((narrow or matvec)[1], matvec[0])
        ends = tuple(min(1.0, end / best[1]) for end in (least, *matvec[1:]))
        found["achieved_frac"] = number(ends, "", origin, "weights through matrix-vector products, low: small matrices")
    return found


def entries(measured, key, base=None):
    """({key: fields} of the GPUs and the link of a `measure` result, how close the link's fit is)."""
    gpus = measured.get("gpus")
    if measured.get("schema") != SCHEMA or not isinstance(gpus, list) or not gpus or not all(
            isinstance(gpu, dict) and isinstance(gpu.get("name"), str) and isinstance(gpu.get("ranges") or {}, dict)
            for gpu in gpus):
        raise ValueError(f"it is JSON, but no result of tpmodel measure: it must have schema {SCHEMA!r} and gpus, each "
                         "with a name")
    try:
        day = date.fromisoformat(measured.get("date")).isoformat()
    except (TypeError, ValueError):
        raise inputs.refused("date", measured.get("date"), "it must be a date such as 2026-11-30") from None
    versions = [f"{what} {clean(str(measured[what]))}" for what in ("torch", "nccl", "driver") if measured.get(what)]
    source = ", ".join(["tpmodel measure", *versions])
    models = {gpu["name"]: [one for one in gpus if one["name"] == gpu["name"]] for gpu in gpus}
    if base and len(models) > 1:
        raise ValueError("gpu is not accepted: the file has cards of several models")
    origin = {"source": source, "date": day}
    found = {f"{slug(name)}-measured": _card(same, base or {}, origin) for name, same in models.items()}
    shared, said = measured.get("all_reduce"), None
    if shared is not None:
        if not isinstance(shared, dict) or not isinstance(shared.get("protocols"), dict):
            raise ValueError("all_reduce is not accepted: it must be null, or have ranks and protocols")
        ranks = shared.get("ranks")
        if type(ranks) is not int or not 2 <= ranks <= 1024:
            raise inputs.refused("ranks", ranks, "it must be a whole number from 2 to 1024")
        if "default" in shared["protocols"]:
            found[key], said = link_entry(table(shared["protocols"]["default"], "protocols.default"), ranks,
                                          f"{ranks} GPUs, {' and '.join(models)}, measured", source, day)
    return found, said


def kept(one):
    """The fields of a number of the catalog."""
    return {name: value for name, value in asdict(one).items() if value not in (None, "")} | {"unit": one.unit}


def from_log(card, own, said, found, source, day):
    """The catalog fields of a card whose overhead a log of vLLM tells."""
    origin = {"source": source, "date": day}
    entry = {"name": f"{card.name}, overhead from a log", **own}
    if "memory_gib" in said:
        entry["reported_bytes"] = number(found["memory_bytes"], "byte", origin)
    where = (f"{found['utilisation_frac']:g} x memory, less {found['weights_bytes'] / GIB:.2f} GiB of weights, "
             "less what is left for the cache")
    return entry | {"overhead_bytes": number(found["overhead_bytes"], "byte", origin, where, kind="computed")}


def readable(name, value):
    """A number of a log for a comment: bytes in GiB, one value a worker."""
    if isinstance(value, dict):
        return ", ".join(f"{worker or 'one worker'} {one:g}" for worker, one in value.items())
    return f"{value / GIB:.2f} GiB" if name.endswith("_bytes") else f"{value:,}"


def toml(found, comments):
    """The text of a catalog file."""
    lines = [f"# {line}" for line in comments]
    for key, fields in found.items():
        lines += ["", f"[{key}]"]
        for name, value in fields.items():
            inner = value.items() if isinstance(value, dict) else ()
            text = ", ".join(f"{field} = {json.dumps(one, ensure_ascii=False)}" for field, one in inner)
            lines.append(f"{name} = " + (f"{{ {text} }}" if text else json.dumps(value, ensure_ascii=False)))
    return "\n".join(lines) + "\n"
