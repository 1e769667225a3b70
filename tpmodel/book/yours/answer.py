"""The answer of the page as HTML, from the planner's own Plan: what fits, how fast, which way, the line to start it."""

from dataclasses import replace

from ...catalog.gpus import memory
from ...formula.units import GIB, many
from ...planner.plan import crossover, verdict
from ...planner.plan.command import logged
from ...planner.plan.plan import make, peers
from ...planner.plan.why import why
from . import fields, stand

COLOURS = 6  # of the engine's own parts, in live.css
FILLED = 92  # percent of a scale of dots that the largest number fills


def escaped(text):
    """A text as HTML."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def number(text, name):
    """A number that says why."""
    return f'<button type="button" class="tp-ask" aria-haspopup="dialog" data-name="{name}">{text}</button>'


def first(said):
    """What is asked first, of {field: text}, as HTML: does it fit, how long a context, how fast."""
    return _first(make(fields.ask(said)))


def rest(said):
    """All else: every way, what fills a card, the line that starts it, what is assumed."""
    made = make(fields.ask(said))
    return "\n".join([_ways(made), _memory(made), _line(made, said), _assumed(made)])


def peer_words(said):
    """The same over peer access, where the link was not said; empty where that is no question."""
    found = peers(make(fields.ask(said)))
    if found is None or not found["prefill"]:
        return ""
    decode, prompt = found["decode"], found["prefill"]["mid"]
    speeds = f"{prompt:,.0f} tokens/s of prompts"
    if decode:
        speeds = f"{decode['mid']:,.1f} tokens/s in decode ({decode['low']:,.1f} to {decode['high']:,.1f}), {speeds}"
    return ("<p><b>The link was not said: this is the answer through host memory.</b> With peer access "
            f"({found['link']}): {found['split']['label']}, {speeds}. "
            f"{_code(found['how_to_know'])}.</p>")


def _code(text):
    """Text with `code` in it."""
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(escaped(text).split("`")))


def _first(made):
    """The verdict and its three numbers."""
    best, ask = made.best, made.ask
    low, _, high = best.longest
    span = f"{low:,} to {high:,}" if low < high else "by the engine's own blocks" * (high > 0)
    span = "as asked" if best.holds_tokens == ask.context else span
    holds, _, unit = many(best.holds_tokens, "token").partition(" ")
    tiles = [_tile("Longest context", number(holds, "max_context_tokens"), unit, span)]
    if best.decode:
        slow, mid, fast = best.decode.rates
        who = f"{ask.batch} users together, " if ask.batch > 1 else ""
        tiles.append(_tile("Decode", number(f"{mid:,.1f}", "decode_tokens_per_s"), "tokens/s",
                           f"{slow:,.1f} to {fast:,.1f}; {who}at {many(best.context_tokens, 'token')}"))
    if best.prefill:
        slow, mid, fast = best.prefill.rates
        what = "documents" if made.setting.pooling else "a prompt"
        tokens = best.prefill.prompt_tokens
        tiles.append(_tile("Prompt", number(f"{mid:,.0f}", "prefill_s"), "tokens/s",
                           f"{slow:,.0f} to {fast:,.0f}; {what} of {tokens:,}: {tokens / mid:,.1f} s"))
    state = "tp-yes" if best.fits and not best.placement.offloaded_bytes else "tp-no"
    head, _, more = made.verdict.partition(";")
    head = f"<b>{_code(head[:1].upper() + head[1:])}</b>"
    return (f'<p class="tp-verdict {state}">{head}{";" * bool(more)}{_code(more)}.</p>'
            f'<div class="tp-tiles">{"".join(tiles)}</div>')


def _tile(head, value, unit, beside):
    return f"<p><span>{head}</span> <strong>{value}</strong> {unit} <small>{beside}</small></p>"


def _ways(made):
    """Every way as a dot with its range; which is best for chat, which for prompts; why others cannot start."""
    parts = [part for part in ("decode", "prefill") if any(getattr(way, part) for way in made.tried)]
    rows = [_scale(made, part) for part in parts]
    stopped = "".join(f"<li><s>{escaped(way)}</s> {_code(reason)}</li>" for reason, way in made.refused.items())
    users = f"<p>{_code(made.best.users.words)}.</p>" if made.best.users and made.best.users.largest_batch else ""
    return f"<h3>Every way</h3>{''.join(rows)}{users}" + (f'<ul class="tp-stopped">{stopped}</ul>' if stopped else "")


def _scale(made, part):
    """One part of every way on one scale."""
    top = max(getattr(way, part).rates[-1] for way in made.tried if getattr(way, part))
    best = verdict.choose(made.tried, part)
    head = {"decode": "Chat", "prefill": "Documents" if made.setting.pooling else "Prompts"}[part]
    rival = made.rival
    if part != made.ask.goal or best is not made.best:
        rival = crossover.rival(made.config, made.machine, made.tried, made.setting, best, replace(made.ask, goal=part))
    said = f"<b>{head}: {escaped(best.label)}</b>"
    if rival:
        said += f", {rival.mid:.2f} times as fast as {escaped(rival.other.label)}"
        said += f" ({rival.low:.2f} to {rival.high:.2f})"
        said += "" if rival.decided else f". Undecided; to decide it: {_code(rival.words)}"
    rows = [_dot(way, getattr(way, part), top, way is best) for way in made.tried]
    return f'<p>{said}</p><ul class="tp-dots" aria-label="{head}: tokens/s of every way">{"".join(rows)}</ul>'


def _dot(way, speed, top, chosen):
    label = f"<b>{escaped(way.label)}</b>" if chosen else escaped(way.label)
    if speed is None:
        return f"<li><span>{label}</span><span>does not fit</span><span></span></li>"
    (slow, mid, fast), holds = speed.rates, many(way.holds_tokens, "token")
    at = lambda rate: f"{FILLED * rate / top:.1f}%"
    text = f"{mid:,.1f} <small>({slow:,.1f} to {fast:,.1f})</small>" if fast < 1000 else (
        f"{mid:,.0f} <small>({slow:,.0f} to {fast:,.0f})</small>")
    return (f'<li><span>{label} <small>{holds}</small></span><i aria-hidden="true">'
            f'<i style="left:{at(slow)};width:{at(fast - slow)}"></i><i class="tp-at" style="left:{at(mid)}"></i></i>'
            f"<span>{text}</span></li>")


def _memory(made):
    """What fills each card, drawn and listed."""
    shown, cards = [], {card.key: card for card in made.machine.cards}
    for gpu in made.best.memories:
        if gpu not in [one for one, _ in shown]:
            shown.append((gpu, sum(one == gpu for one in made.best.memories)))
    return "<h3>What fills a card</h3>" + "".join(
        _card(gpu, count, cards[gpu["name"]]) for gpu, count in shown)


def _card(gpu, count, card):
    size, pool = memory(card).base, max(0.0, gpu["kv_pool_bytes"])
    counted = [(f"tp-part{i % COLOURS}", row["name"], row["bytes"], row["quantity"],
                _span(row["low_bytes"] / GIB, row["high_bytes"] / GIB))
               for i, row in enumerate(row for row in gpu["parts"] if row["counted"])]
    parts = [("tp-weights", "weights", gpu["weights_bytes"], "weights_bytes", ""), *counted,
             ("tp-cache", "cache", pool, "kv_pool_bytes", "what is left for it"),
             ("tp-others", "not asked for", size - gpu["budget_bytes"], "", "outside of the engine's share")]
    whole = max(size, sum(held for _, _, held, _, _ in parts))
    bar = "".join(f'<i class="{look}" style="width:{100 * held / whole:.2f}%"></i>' for look, _, held, _, _ in parts)
    rows = "".join(f'<li><i class="{look}"></i>{escaped(name)} '
                   f"{number(f'{held / GIB:.2f}', quantity) if quantity else f'{held / GIB:.2f}'} GiB "
                   f"<small>{beside}</small></li>" for look, name, held, quantity, beside in parts)
    over = -gpu["kv_pool_bytes"]
    short = f' <b class="tp-no">{over / GIB:.2f} GiB too much</b>' if over > 0 else ""
    times = f"{count} x " if count > 1 else ""
    return (f"<p>{times}{escaped(card.name)}, {size / GIB:.2f} GiB{short}</p>"
            f'<div class="tp-bar" aria-hidden="true">{bar}</div><ul class="tp-parts">{rows}</ul>')


def _span(low, high):
    """A range in GiB; none where it has no width."""
    return f"{low:.2f} to {high:.2f}" if high - low >= 0.01 else ""


def _line(made, said):
    """The line that starts it, its log, and the same question on the command line."""
    line = ""
    if made.command:
        notes = "".join(f"<li>{_code(note)}</li>" for note in made.notes)
        line = (f"<h3>Start it</h3>{_copied(made.command)}<ul>{notes}</ul>"
                f"<p>The log will say: {escaped(logged(made.log()))}.</p>")
    return (f"{line}<h3>The same on the command line</h3>{_copied(fields.command(said))}"
            "<p>It takes more: any <code>config.json</code>, more kinds of cards, your own catalog.</p>")


def _copied(text):
    return (f'<div class="tp-copied"><pre><code>{escaped(text)}</code></pre>'
            '<button type="button" class="tp-reset" data-copy>Copy</button></div>')


def _assumed(made):
    rows = "".join(f"<li>{_code(said)}</li>" for said in made.assumptions)
    return f"<details><summary>What is assumed: {len(made.assumptions)}</summary><ul>{rows}</ul></details>"


def reasons(said, name):
    """Why a number of the answer is what it is, as the page's dialog takes it: (rows, values)."""
    rows, values = [], []

    def add(one):
        """A row of the tree, after those under it; its place."""
        under = [add(part) for part in one["parts"]]
        said = one["source"] if one["how"] == "recipe" else f"{one['how']}: {one['source']}"
        how = stand.written()[one["name"]] if one["how"] == "formula" else said
        rows.append([one["name"], one["symbol"], one["unit"], "", how, under])
        values.append(one["value"])
        return len(rows) - 1

    return [add(why(make(fields.ask(said)), name)), rows, values]
