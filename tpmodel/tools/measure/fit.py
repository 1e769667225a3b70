"""Catalog entries from what was measured: the GPUs of a `measure` result, and a link from the times of its all-reduces."""

import json
import math
import re
import statistics
from dataclasses import asdict
from datetime import date

from ... import inputs
from ...catalog.assumptions import assumed
from ...formula.units import GIB
from ...formulas.collectives import allreduce_s, allreduce_wire_bytes, group_latency_s, protocol_allreduce_s
from . import SCHEMA

SMALL_BYTES = 1024  # a message that carries next to nothing
BULK_BYTES = 16 * 2**20  # from here on the bandwidth shows
MOST_ROWS = 200
GPU_RATES = ("copy_bytes_per_s", "matvec_bytes_per_s", "matvec_small_bytes_per_s", "bf16_flop_per_s")
HOST_RATES = {"pinned": "host_to_device_pinned_bytes_per_s", "pageable": "host_to_device_pageable_bytes_per_s"}
SCALES = {"byte/s": ("GB/s", 1e9), "FLOP/s": ("TFLOP/s", 1e12), "s": ("us", 1e-6)}


def number(value, unit, source, day, kind="measured", **more):
    """The fields of one catalog number, in a unit that reads well; `more`: low, high, where, note."""
    shown, scale = SCALES.get(unit, (unit, 1))
    ends = {name: float(f"{more[name] / scale:.6g}") for name in ("low", "high") if more.get(name) is not None}
    rest = {name: more[name] for name in ("where", "note") if more.get(name)}
    value = value if unit == "byte" and value == int(value) else float(f"{value / scale:.6g}")
    return {"value": value, "unit": shown, "kind": kind, **ends, "source": source, "date": day, **rest}


def fit_link(rows, ranks):
    """Bandwidth, latency and bulk latency that rows of (bytes, seconds) come closest to, each as (low, value, high), and how close.

    The latency is the median of the smallest messages. The bandwidth is one of the slopes between large messages, the bulk latency one of the
    rows' own t - V / B: the pair with the least sum of |log(predicted / measured)|. The ranges are as wide as the rows ask for.
    """
    small = [t for size, t in rows if size <= SMALL_BYTES]
    big = sorted(row for row in rows if row[0] >= BULK_BYTES)
    if not small or len({size for size, _ in big}) < 2:
        raise ValueError(f"the all-reduces have {len(small)} messages of at most 1 KiB and {len(big)} of at least 16 MiB: "
                         "a fit needs one small and two large sizes (all_reduce_perf -b 8 -e 256M -f 2)")
    start = statistics.median(small)
    slopes = {(allreduce_wire_bytes(last, ranks) - allreduce_wire_bytes(first, ranks)) / (last_s - first_s)
              for first, first_s in big for last, last_s in big if first < last and first_s < last_s}
    if not slopes or big[-1][1] <= big[-2][1]:
        raise ValueError(f"the all-reduce of {big[-1][0]} bytes is not slower than that of {big[-2][0]} bytes: measure again, on an idle machine")

    def misfit(rate, bulk):
        return sum(abs(math.log(protocol_allreduce_s(size, ranks, rate, start, bulk) / t)) for size, t in rows)

    tried = [(rate, max(start, t - allreduce_s(size, ranks, rate, 0))) for rate in sorted(slopes) for size, t in rows]
    rate, bulk = min(dict.fromkeys(tried), key=lambda pair: misfit(*pair))
    carry = {size: allreduce_s(size, ranks, rate, 0) for size, _ in rows}
    errors = [abs(protocol_allreduce_s(size, ranks, rate, start, bulk) / t - 1) for size, t in rows]
    said = {"rows": len(rows), "median_abs_error_frac": statistics.median(errors), "worst_abs_error_frac": max(errors)}
    return _ranges(rows, carry, rate, start, bulk), said


def _ranges(rows, carry, rate, start, bulk):
    """{term: (low, value, high)}: every row lies between the prediction with all of the fast ends and that with all of the slow."""
    rates, waits = [rate], {"early": [start], "late": [bulk]}
    for size, t in rows:
        early, late = ("early", start, 2 * carry[size]), ("late", bulk, carry[size])
        faster = min(early, late, key=lambda way: way[1] + way[2])
        ways = [faster] if t < faster[1] + faster[2] else [way for way in (early, late) if way[1] + way[2] < t]  # slow: neither may be quicker
        for way, wait, copies in ways:
            if copies > wait and t > wait:  # mostly bytes: the bandwidth answers for it
                rates.append(rate * copies / (t - wait))
            else:
                waits[way].append(max(0.0, t - copies))
                rates.append(rate * copies / t if t < copies else rate)
    starts, bulks = waits["early"], waits["late"]
    return {"link_bytes_per_s": (min(rates), rate, max(rates)), "allreduce_latency_s": (min(*starts, *bulks), start, max(starts)),
            "bulk_latency_s": (min(bulks), bulk, max(bulks))}


def link_entry(rows, ranks, name, source, day):
    """(the link as catalog fields, how close the fit is). The catalog's latency is of a pair: more GPUs' is taken down to that."""
    terms, said = fit_link(rows, ranks)
    ring = assumed("link")  # NCCL's
    more_s = group_latency_s(0, ranks, ring.link_latency_s)
    terms["allreduce_latency_s"] = tuple(max(0.0, end - more_s) for end in terms["allreduce_latency_s"])
    where = {"link_bytes_per_s": f"slope between two large of {len(rows)} all-reduces between {ranks} GPUs",
             "allreduce_latency_s": "median up to 1 KiB" + (f", less {more_s * 1e6:g} us for the GPUs beyond two" if more_s else ""),
             "bulk_latency_s": "fitted to all of them"}
    units = {"link_bytes_per_s": "byte/s"}
    found = {term: number(mid, units.get(term, "s"), source, day, low=low, high=high, where=where[term])
             for term, (low, mid, high) in terms.items()}
    return {"name": clean(name), **ring.said, **found, "link_latency_s": kept(ring.numbers["link_latency_s"])}, said


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
    if not isinstance(value, list) or not 0 < len(value) <= MOST_ROWS or not all(isinstance(row, list) and len(row) == 2 for row in value):
        raise ValueError(f"{what} is not accepted: it must be a list of 1 to {MOST_ROWS} pairs [message_bytes, seconds]")
    return [(positive(size, f"{what}: message_bytes"), positive(t, f"{what}: seconds")) for size, t in value]


def _rate(gpus, name):
    """(low, median, high) of one number over the GPUs of one model; None where it was not measured."""
    values = [positive(gpu[name], name) for gpu in gpus if gpu.get(name) is not None]
    if not values:
        return None
    ranges = [(gpu.get("ranges") or {}).get(name) or [] for gpu in gpus]
    if not all(isinstance(ends, list) for ends in ranges):
        raise inputs.refused(f"ranges.{name}", next(ends for ends in ranges if not isinstance(ends, list)), "it must be a list [least, most]")
    ends = [positive(end, f"ranges.{name}") for pair in ranges for end in pair] + values
    return min(ends), statistics.median(values), max(ends)


def _card(gpus, base, source, day):
    """The catalog fields of one GPU model."""
    copy, matvec, narrow, product = (_rate(gpus, name) for name in GPU_RATES)
    if not copy or not product:
        raise ValueError(f"the measurement of {gpus[0]['name']} has no {'bf16_flop_per_s' if copy else 'copy_bytes_per_s'}: see failed in the file")
    best = max(copy, matvec or copy, key=lambda ends: ends[1])
    total = positive(gpus[0].get("total_bytes"), "total_bytes")
    reported = gpus[0].get("reported_mib")
    found = {"name": clean(gpus[0]["name"]) + ", measured", **base,
             "vram_bytes": number(total if reported is None else positive(reported, "reported_mib") * 2**20, "byte", source, day,
                                  where="nvidia-smi" if reported else ""),
             "reported_bytes": number(total, "byte", source, day, where="torch.cuda.mem_get_info", note="what an engine takes its fraction of"),
             "memory_bytes_per_s": number(best[1], "byte/s", source, day, low=best[0], high=best[2],
                                          where="a copy, bytes read and written" if best is copy else "weights through matrix-vector products"),
             "bf16_flop_per_s": number(product[1], "FLOP/s", source, day, low=product[0], high=product[2], where="a matrix product",
                                       note="as reached, not of a data sheet")}
    found["mfu_frac"] = kept(assumed("measured-card").numbers["mfu_frac"]) | {"date": day}
    copies = [ends for ends in (_rate(gpus, name) for name in HOST_RATES.values()) if ends]
    if copies:
        found["copy_bytes_per_s"] = number(copies[0][1], "byte/s", source, day, low=min(ends[0] for ends in copies), high=max(ends[2] for ends in copies),
                                           where="from main memory, pinned where that works; low: not pinned")
    if matvec:
        ends = [min(1.0, end / best[1]) for end in (min((narrow or matvec)[1], matvec[0]), matvec[1], matvec[2])]
        found["achieved_frac"] = number(ends[1], "", source, day, low=ends[0], high=ends[2], where="weights through matrix-vector products, low: small matrices")
    return found


def entries(measured, key, base=None):
    """({key: fields} of the GPUs and the link of a `measure` result, how close the link's fit is)."""
    gpus = measured.get("gpus")
    if measured.get("schema") != SCHEMA or not isinstance(gpus, list) or not gpus or not all(
            isinstance(gpu, dict) and isinstance(gpu.get("name"), str) and isinstance(gpu.get("ranges") or {}, dict) for gpu in gpus):
        raise ValueError(f"it is JSON, but no result of tpmodel measure: it must have schema {SCHEMA!r} and gpus, each with a name")
    try:
        day = date.fromisoformat(measured.get("date")).isoformat()
    except (TypeError, ValueError):
        raise inputs.refused("date", measured.get("date"), "it must be a date such as 2026-11-30") from None
    versions = [f"{what} {clean(str(measured[what]))}" for what in ("torch", "nccl", "driver") if measured.get(what)]
    source, found = ", ".join(["tpmodel measure", *versions]), {}
    models = {gpu["name"]: [one for one in gpus if one["name"] == gpu["name"]] for gpu in gpus}
    if base and len(models) > 1:
        raise ValueError("gpu is not accepted: the file has cards of several models")
    for name, same in models.items():
        found[f"{slug(name)}-measured"] = _card(same, base or {}, source, day)
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
    low, mid, high = found["overhead_bytes"]
    entry = {"name": f"{card.name}, overhead from a log", **own}
    if "memory_gib" in said:
        entry["reported_bytes"] = number(found["memory_bytes"], "byte", source, day)
    where = f"{found['utilisation_frac']:g} x memory, less {found['weights_bytes'] / GIB:.2f} GiB of weights, less what is left for the cache"
    return {**entry, "overhead_bytes": number(mid, "byte", source, day, kind="computed", low=low, high=high, where=where)}


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
            inner = ", ".join(f"{field} = {json.dumps(one, ensure_ascii=False)}" for field, one in value.items()) if isinstance(value, dict) else ""
            lines.append(f"{name} = {{ {inner} }}" if inner else f"{name} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"
