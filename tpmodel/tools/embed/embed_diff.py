"""How far two results of `tpmodel embed` are apart: directions, elements, and who is whose neighbour."""

import json
import warnings

from ... import inputs

ROWS = 1024  # at a time
LARGEST = 1e150  # of an element: the difference of larger ones may overflow
TIE = 1e-6  # cosines closer than this are equal to float32: documents that occur twice are no differing neighbours


def load(file):
    """The vectors of a .npy file, one a row, memory-mapped; anything that is not plain finite numbers is refused."""
    import numpy
    wanted = "a .npy file with one row of numbers a document, as tpmodel embed writes it"
    if inputs.read_bytes(file, "file", 6, wanted, start=True) != b"\x93NUMPY":
        raise inputs.refused("file", file, f"it is no .npy file: it must be {wanted}")
    try:
        with warnings.catch_warnings(action="ignore"):  # of an absurd shape; the error follows
            found = numpy.load(file, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header reaches Python's own parser, which has many errors
        what = f"no whole array ({str(error)[:100] or type(error).__name__})"
        what = "pickled objects, which are not loaded" if "object" in str(error) else what
        raise ValueError(f"{file} holds {what}: it must be {wanted}") from None
    if found.dtype.kind not in "fiu" or found.ndim != 2 or 0 in found.shape:
        raise ValueError(f"{file} holds {found.dtype} of shape {found.shape}: it must be {wanted}")
    for start in range(0, len(found), ROWS):
        rows = numpy.asarray(found[start:start + ROWS], dtype=float)
        for bad, what in ((~numpy.isfinite(rows).all(axis=1), "NaN or infinity"),
                          (numpy.abs(rows).max(axis=1) > LARGEST, f"numbers beyond {LARGEST:g}"),
                          (~rows.any(axis=1), "only zeros, which have no direction")):
            if bad.any():
                raise ValueError(f"{file}: row {start + int(bad.argmax())} (from 0) has {what}: make the vectors again")
    return found


def _directions(rows):
    import numpy
    rows = numpy.asarray(rows, dtype=float)
    rows = rows / numpy.abs(rows).max(axis=1, keepdims=True)
    return rows / numpy.sqrt((rows * rows).sum(axis=1, keepdims=True))


def _shared(a, b, k):
    """Share of each row's k nearest others (by cosine) in b that are among its k nearest in a, over all rows."""
    import numpy
    a, b = (_directions(rows).astype("f4") for rows in (a, b))
    shared = 0
    for start in range(0, len(a), ROWS):
        stop = start + ROWS
        here, there = (numpy.asarray(all_[start:stop] @ all_.T) for all_ in (a, b))
        for near in (here, there):
            numpy.fill_diagonal(near[:, start:stop], -numpy.inf)
        least = numpy.partition(here, -k, axis=1)[:, -k, None]
        chosen = numpy.argpartition(there, -k, axis=1)[:, -k:]
        shared += int((numpy.take_along_axis(here, chosen, axis=1) >= least - TIE).sum())
    return shared / (len(a) * k)


def compare(first, second, top_k=10):
    """What differs between the vectors of two .npy files, as plain values."""
    import numpy
    a, b = load(first), load(second)
    if a.shape != b.shape:
        raise ValueError(f"{first} has shape {a.shape} and {second} {b.shape}: they must be of the same documents and "
                         "the same model")
    cosines, differences = [], []
    for start in range(0, len(a), ROWS):
        x, y = (numpy.asarray(rows[start:start + ROWS], dtype=float) for rows in (a, b))
        differences.append(numpy.abs(x - y).max(axis=1))
        # From the chord: 1 - |u - v|^2 / 2 is exact where two directions nearly agree, and never above 1.
        chord = _directions(x) - _directions(y)
        cosines.append(1 - (chord * chord).sum(axis=1) / 2)
    cosines, differences = numpy.concatenate(cosines), numpy.concatenate(differences)
    k = min(top_k, len(a) - 1)
    return {"documents": len(a), "dimensions": a.shape[1], "cosine_min": float(cosines.min()),
            "cosine_min_row": int(cosines.argmin()), "cosine_mean": float(cosines.mean()),
            "max_abs_diff": float(differences.max()), "max_abs_diff_row": int(differences.argmax()),
            "top_k": k, "top_k_overlap": _shared(a, b, k) if k else None}


def run(args):
    """How far the vectors of two .npy files are apart, row by row: cosine, largest difference, shared neighbours."""
    top_k = inputs.whole(args.top_k, "top-k", 1, 2**31, "a whole number >= 1")
    try:
        found = compare(args.first, args.second, top_k)
    except ImportError as error:
        raise ValueError(f"NumPy cannot be imported ({error}): pip install numpy installs it") from error
    if args.json:
        print(json.dumps(found, allow_nan=False))
        return 0
    print("{documents} documents, {dimensions} dimensions".format(**found))
    print("cosine: least {cosine_min:.9f} (row {cosine_min_row}, from 0), mean {cosine_mean:.9f}".format(**found))
    print("largest difference of an element: {max_abs_diff:.3g} (row {max_abs_diff_row})".format(**found))
    if found["top_k"]:
        print("shared among the {top_k} nearest neighbours: {top_k_overlap:.4%}".format(**found))
    return 0
