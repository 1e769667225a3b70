"""The documents that go into an embedding and the file of vectors that comes out: read, checked, written whole."""

import os
import re
from pathlib import Path


LARGEST_BYTES = 2**30  # of an input file: a device never ends


def refuse(name, value, wanted):
    """Bad input, in one line."""
    raise ValueError(f"{name} = {value!r} is not accepted: {wanted}")


def documents(file, prefix):
    """{line number: text} of the lines that are not empty, each with the prefix before it once."""
    try:
        with open(file, "rb") as source:
            raw = source.read(LARGEST_BYTES + 1)
    except OSError as error:
        refuse("input", file, f"{error.strerror}: it must be a text file in UTF-8, one document a line")
    if len(raw) > LARGEST_BYTES:
        refuse("input", file, "it is larger than 1 GiB: give it in parts")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[:error.start].count(b"\n") + 1
        refuse("input", file, f"line {line} is not UTF-8 (byte 0x{raw[error.start]:02x}): save the file as UTF-8")
    lines = {number: line.strip() for number, line in enumerate(re.split("\r\n|\r|\n", text), 1)}
    found = {number: line if line.startswith(prefix) else prefix + line for number, line in lines.items() if line}
    if not found:
        refuse("input", file, "it has no documents: it must have one a line")
    return found


def target(output, force, source=None):
    """The path of the result, which may be written."""
    path = Path(output)
    if path.is_dir() or path.exists() and not path.is_file():
        refuse("output", output, "it is no file: it must be the name of a .npy file")
    if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
        refuse("output", output, "it is the input: give it another name")
    if path.exists() and not force:
        refuse("output", output, "it exists: give another name, or --force to replace it")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        refuse("output", output, f"the folder {path.parent} must exist and be writable")
    return path


def save(array, path, force):
    """Write under another name in the same folder, then rename: the file is whole or not there."""
    import numpy

    part = path.with_name(f".tpmodel-{os.getpid()}.part")
    try:
        with open(part, "xb") as file:
            numpy.save(file, array, allow_pickle=False)
        target(path, force)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
