"""What a user gives, read in one place: files, numbers, layers; and results written whole. A refusal is one line.

Limits: a file is a regular file of bounded size, never a pipe or a device. A number is ASCII digits with a sign,
a point and an exponent at most: no underscores, no other digits, no nan, no inf.
"""

import os
import re
import reprlib
import stat
from pathlib import Path

SHOWN, BRIEF = 120, 60  # characters of a value in a refusal; of a list or an object
MOST_NAMES = 40  # in a refusal
WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
REAL = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")
MOST = 1e300  # of a number without a bound of its own: what is larger overflows in what is made of it


def shown(value):
    """A value as Python writes it, in one line of bearable length; of a long list or object how much it holds.
    >>> shown([1, 2]), shown([{"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 1.5}}] * 49)
    ('[1, 2]', 'a list of 49 entries')
    """
    value = str(value) if isinstance(value, os.PathLike) else value
    try:
        text = repr(value) if isinstance(value, str) else reprlib.repr(value)
    except ValueError:  # an integer of thousands of digits
        text = "a number of more than 4,300 digits"
    if isinstance(value, (dict, list)) and (len(text) > BRIEF or "..." in text):
        count, what = len(value), "an object with {} field" if isinstance(value, dict) else "a list of {} entr"
        ending = ("", "s") if isinstance(value, dict) else ("y", "ies")
        return what.format(count) + ending[count != 1]
    return text if len(text) <= SHOWN else f"{text[:SHOWN // 2]}...{text[-SHOWN // 3:]}"


def refused(name, value, wanted):
    """The ValueError of bad input: what was wrong, and what is accepted.
    >>> refused("layers", "a", "it must be whole numbers")
    ValueError("layers = 'a' is not accepted: it must be whole numbers")
    """
    return ValueError(f"{' '.join(name.split())[:60]} = {shown(value)} is not accepted: {wanted}")


def cause(error):
    """Why the system refused, in words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def among(names, wanted):
    """What is accepted in place of a name that is not there, the three nearest first.
    >>> among(["rtx-3090", "rtx-4090", "h200", "l4"], "rtx-309")
    'the nearest are rtx-3090, rtx-4090, h200; it must be one of rtx-3090, rtx-4090, h200, l4'
    """
    few = len(names) <= MOST_NAMES
    those = ", ".join(names) if few else f"the {len(names)} that `tpmodel plan --list` prints"
    return f"{nearest(names, wanted)}; it must be one of {those}"


def nearest(names, wanted):
    """The three names nearest to one that is not there, in words."""
    from difflib import get_close_matches
    return f"the nearest are {', '.join(get_close_matches(str(wanted).lower(), names, 3, 0))}"


def counted(names):
    """Each name as often as it says; a comma parts two.
    >>> counted(["2x rtx-3090", "h200,l4", "2 a100"])
    ['rtx-3090', 'rtx-3090', 'h200', 'l4', 'a100', 'a100']
    """
    parts = [part.strip() for name in names for part in name.split(",")]
    wrong = next((part for part in parts if re.match(r"(?:0\d*|[1-9]\d{2,})\s*[x×]\s", part)), None)
    if wrong:
        raise refused("gpu", wrong, "it must be counted from 1x to 99x")
    found = [re.fullmatch(r"(?:([1-9]\d?)(?:\s*[x×*]\s*|\s+(?=[A-Za-z])))?(.*)", part, re.S) for part in parts]
    return [one[2] for one in found for _ in range(int(one[1] or 1))]


def exists(path, name):
    """Whether something is there; a path that the system itself refuses is bad input."""
    try:
        return Path(path).exists()
    except (OSError, ValueError) as error:
        raise refused(name, path, cause(error)) from None


def read_bytes(path, name, most, wanted, start=False):
    """The bytes of a regular file of at most `most`, or only its first ones (start)."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:  # a null byte in the name is a ValueError
        raise refused(name, path, f"{cause(error)}: it must be {wanted}") from None
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):  # of a folder the system says so itself
        raise refused(name, path, f"it is a pipe or a device: it must be {wanted}")
    try:
        with open(path, "rb") as file:
            data = file.read(most + (not start)) if start or found.st_size <= most else None
    except OSError as error:
        raise refused(name, path, f"{cause(error)}: it must be {wanted}") from None
    if data is None or len(data) > most:  # some files have no size
        raise refused(name, path, f"it is larger than {most:,} bytes: it must be {wanted}")
    return data


def read_text(path, name, most, wanted):
    """The same as text: UTF-8, with or without a byte order mark."""
    data = read_bytes(path, name, most, wanted)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"line {line} is not UTF-8 (byte 0x{data[error.start]:02x})"
        raise refused(name, path, f"{what}: it must be {wanted}") from None


def as_whole(text):
    """The whole number that a text is, or None.
    >>> as_whole("+12"), as_whole("1_0"), as_whole("\u0661\u0662"), as_whole("12.0")
    (12, None, None, None)
    """
    return int(text) if WHOLE.fullmatch(text.strip()) else None


def as_real(text):
    """The finite number that a text is, or None.
    >>> as_real("-1.5e3"), as_real("nan"), as_real("1e400"), as_real("0x10")
    (-1500.0, None, None, None)
    """
    value = float(text) if REAL.fullmatch(text.strip()) else MOST
    return value if abs(value) < MOST else None


def whole(text, name, least, most, wanted=None, read=as_whole):
    """The whole number from `least` to `most` that the text of the field `name` is."""
    value = read(text)
    if value is None or not least <= value <= most:
        raise refused(name, text, f"it must be {wanted or f'a whole number from {least:,} to {most:,}'}")
    return value


def real(text, name, least, most, wanted=None):
    """The number from `least` to `most` that the text of the field `name` is."""
    return whole(text, name, least, most, wanted or f"a number from {least:g} to {most:g}", as_real)


def layers(text, name="layers", count=None, total=None):
    """The layers of each GPU; how many GPUs and how many layers in all are checked where they are known.
    >>> layers(" 20, 14", "layers", 2, 34)
    (20, 14)
    """
    found = [as_whole(part) if part.strip().isdigit() else None for part in text.split(",")]
    wanted = f"it must be {f'{count} ' if count else ''}whole numbers >= 1 with a comma between"
    wanted += f", {total} in all" if total else ", such as 20,14"
    if None in found or min(found) < 1 or count and len(found) != count:
        raise refused(name, text, wanted)
    if total and sum(found) != total:
        raise refused(name, text, f"{wanted} (it adds up to {sum(found)})")
    return tuple(found)


def target(path, name, force, source=None):
    """The Path of a result: nothing is there, or a file that `force` replaces; never the `source`."""
    path = Path(path)
    try:
        if path.is_dir() or path.exists() and not path.is_file():
            raise refused(name, path, "it is no file: give the name of a file")
        if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
            raise refused(name, path, "it is the input: give it another name")
        if path.exists() and not force:
            raise refused(name, path, "it exists: give another name, or --force to replace it")
        if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise refused(name, path, f"the folder {path.parent} must exist and be writable")
    except OSError as error:
        raise refused(name, path, f"{cause(error)}: give another name") from None
    return path


def write(path, fill, name, force):
    """Write whole or not at all: `fill(file)` fills another file of the folder, which then takes the name."""
    part = path.with_name(f".tpmodel-{os.getpid()}.part")
    try:
        with open(part, "xb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        target(path, name, force)
        os.replace(part, path)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {cause(error)}") from error
    finally:
        part.unlink(missing_ok=True)


def plain(path):
    """A path as a text that no program takes for a flag.
    >>> plain("--x"), plain("a/b")
    ('./--x', 'a/b')
    """
    return f"./{path}" if str(path).startswith("-") else str(path)
