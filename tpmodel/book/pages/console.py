"""A command of the package as a reader types it, and what it printed when the notebook ran."""

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Console:
    """A command line and lines of its output."""

    line: str
    printed: tuple

    def __repr__(self):
        return "\n".join((f"$ {self.line}", *self.printed))

    def _repr_html_(self):
        word = lambda text: f'<span class="tp-word">{text}</span>' if "-" in text else text  # no flag is broken in two
        lines = ("".join(map(word, re.split("( +)", escape(line, quote=False)))) for line in repr(self).splitlines())
        told = "".join(f'<span class="tp-line">{line}</span>' for line in lines)
        return f'<div class="highlight tp-console"><pre>{told}</pre></div>'


def console(line, *keep):
    """The Console of a line that begins with `tpmodel`; of its output all, or what begins with one of the words.

    >>> console("tpmodel split --model nemotron-3-embed-8b --gpu rtx-5080 --gpu rtx-5060-ti-16gb", "VLLM")
    $ tpmodel split --model nemotron-3-embed-8b --gpu rtx-5080 --gpu rtx-5060-ti-16gb
    VLLM_PP_LAYER_PARTITION=24,10 CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1
    """
    program, *words = shlex.split(line)
    if program != "tpmodel":
        raise ValueError(f"line = {line!r} is not accepted: it must begin with tpmodel")
    run = subprocess.run([sys.executable, "-m", "tpmodel", *words], capture_output=True, text=True)
    if run.returncode:
        raise ValueError(f"{line} ended with {run.returncode}: {run.stderr.strip()}")
    return Console(line, tuple(one for one in run.stdout.splitlines() if not keep or one.lstrip().startswith(keep)))
