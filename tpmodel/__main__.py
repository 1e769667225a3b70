"""`python -m tpmodel` is `tpmodel`."""

import sys

from .tools.cli import main

if __name__ == "__main__":  # a worker that vLLM spawns may read this file again
    sys.exit(main())
