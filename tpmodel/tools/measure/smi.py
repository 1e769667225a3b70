"""What nvidia-smi says of the GPUs."""

import subprocess

from ... import inputs

QUERY = {"uuid": "uuid", "driver": "driver_version", "reported_mib": "memory.total", "power_limit_w": "power.limit",
         "pcie_gen": "pcie.link.gen.current", "pcie_gen_max": "pcie.link.gen.max",
         "pcie_lanes": "pcie.link.width.current", "pcie_lanes_max": "pcie.link.width.max"}


def parse_smi(text):
    """[{name of QUERY: value}] of nvidia-smi's CSV; what it does not know ("[N/A]", "[Not Supported]") is null.

    >>> parse_smi("GPU-1, 580.65, 16311, [N/A], 5, 5, 8, 16")[0]["power_limit_w"] is None
    True
    """
    rows = [line.split(",") for line in text.splitlines() if line.count(",") == len(QUERY) - 1]
    return [{name: _cell(name, cell.strip()) for name, cell in zip(QUERY, row)} for row in rows]


def _cell(name, cell):
    if name in ("uuid", "driver"):
        return cell if cell and not cell.startswith("[") else None
    value = inputs.as_real(cell)
    return int(value) if value is not None and value % 1 == 0 else value


def ask_smi():
    """What nvidia-smi says now, or nothing where it is missing."""
    ask = ["nvidia-smi", f"--query-gpu={','.join(QUERY.values())}", "--format=csv,noheader,nounits"]
    try:
        return parse_smi(subprocess.run(ask, capture_output=True, text=True, timeout=20).stdout)
    except (OSError, subprocess.TimeoutExpired):
        return []


def smi_of(rows, uuid, index):
    """The row of one GPU: by its UUID, else, where PyTorch knows none, by its index."""
    if uuid:
        rows = [row for row in rows if row["uuid"] and row["uuid"].removeprefix("GPU-") == uuid.removeprefix("GPU-")]
        index = 0
    return rows[index] if index < len(rows) else dict.fromkeys(QUERY)
