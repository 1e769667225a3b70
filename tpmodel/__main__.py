"""`python -m tpmodel` is `tpmodel`."""

import sys

from .cli import main

sys.exit(main())
