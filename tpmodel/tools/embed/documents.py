"""The documents that go into an embedding, and the vectors that come out, kept by batches so that a run can go on."""

import hashlib
import json
import re
from pathlib import Path

from ...inputs import cause, exists, read_text, refused, shown, write

WANTED = "a text file in UTF-8, one document a line"
LARGEST_BYTES = 2**30  # of an input file
LARGEST_STATE = 2**20
PARTITION = "VLLM_PP_LAYER_PARTITION"
BATCH_TOKENS = 2**18  # a minute on two consumer cards; between batches the GPUs run dry once


def documents(file, prefix):
    """{line number: text} of the lines that are not empty, each with the prefix before it once."""
    text = read_text(file, "input", LARGEST_BYTES, WANTED)
    lines = enumerate(map(str.strip, re.split("\r\n|\r|\n", text)), 1)
    found = {number: line if line.startswith(prefix) else prefix + line for number, line in lines if line}
    if not found:
        raise refused("input", file, f"it has no documents: it must be {WANTED}")
    return found


def batches(tokens):
    """[(start, stop)] of the documents of each batch: as few as hold BATCH_TOKENS.

    >>> batches([200_000, 100_000, 5])
    [(0, 2), (2, 3)]
    """
    found, start, held = [], 0, 0
    for stop, count in enumerate(tokens, 1):
        held += count
        if held >= BATCH_TOKENS or stop == len(tokens):
            found.append((start, stop))
            start, held = stop, 0
    return found


def described(llm, env, texts):
    """What the vectors of a run depend on, as plain values: other values make other vectors."""
    from importlib import metadata  # takes longer than all else that the command line loads
    folder = Path(llm["model"])
    files = [file for file in sorted(folder.iterdir()) if file.is_file()] if folder.is_dir() else []
    return {**llm, "pp_layers": env.get(PARTITION),
            "vllm": next((found.version for found in metadata.distributions(name="vllm")), None),
            "batch_tokens": BATCH_TOKENS,
            "model_files": [[file.name, file.stat().st_size, int(file.stat().st_mtime)] for file in files],
            "documents": len(texts), "input": hashlib.sha256(json.dumps([*texts.values()]).encode()).hexdigest()}


class Kept:
    """The finished batches of a run: a folder beside the output that goes when the output is whole."""

    def __init__(self, output, settings):
        self.folder, self.settings = output.with_name(output.name + ".part"), settings
        self.state, self.new = self.folder / "settings.json", True

    def begin(self, resume, force):
        """What lies there from before is gone on from (resume), replaced (force) or refused."""
        there = exists(self.folder, "output")
        for wrong, name, why in (
                (there and not self.state.is_file(), "output",
                 "it is no folder of a run of embed: move it away, or give another output"),
                (resume and not there, "resume", "there is no run that was broken off: leave --resume out"),
                (there and not resume and not force, "output",
                 "it has batches of a run that was broken off: --resume goes on from them, --force begins anew")):
            if wrong:
                raise refused(name, self.folder, why)
        if not resume:
            return
        try:
            before = json.loads(read_text(self.state, "resume", LARGEST_STATE, "the settings of a run of embed"))
            was = {name: before.get(name) for name in self.settings}
        except (ValueError, RecursionError, AttributeError):
            raise refused("resume", self.state, "it is damaged: --force without --resume begins anew") from None
        for name, now in self.settings.items():
            if was[name] != now:
                raise refused("resume", self.folder, f"it was begun with {name} = {shown(was[name])}, and this run has "
                              f"{shown(now)}: give the same model, input and settings, or --force without --resume to "
                              "begin anew")
        self.new = False

    def load(self, index, count):
        """The vectors of a finished batch, or None."""
        import numpy
        file = self.folder / f"{index}.npy"
        if self.new or not file.exists():
            return None
        try:
            found = numpy.load(file, allow_pickle=False)
        except Exception:  # a damaged header reaches Python's own parser, which has many errors
            found = None
        if found is None or found.dtype != numpy.float32 or found.ndim != 2 or len(found) != count:
            raise refused("resume", file, "it is damaged: delete it, and --resume makes it again")
        return found

    def save(self, index, array):
        """Keep the vectors of a finished batch."""
        if self.new:
            self.remove()
            try:
                self.folder.mkdir()
            except OSError as error:
                raise ValueError(f"{self.folder} cannot be made: {cause(error)}") from error
            write(self.state, lambda file: file.write(json.dumps(self.settings).encode()), "output", True)
            self.new = False
        save(array, self.folder / f"{index}.npy", True)

    def remove(self):
        """Take away the folder and what it has of ours."""
        try:
            for file in [*self.folder.glob("*.npy"), *self.folder.glob(".tpmodel-*.part"), self.state]:
                file.unlink(missing_ok=True)
            if self.folder.exists():
                self.folder.rmdir()
        except OSError as error:
            raise ValueError(f"{self.folder} cannot be removed: {cause(error)}") from error


def save(array, path, force):
    """Write vectors whole, or not at all."""
    import numpy
    write(path, lambda file: numpy.save(file, array, allow_pickle=False), "output", force)
