"""``python -m sdca_rs`` is the command ``sdca-rs``."""

import sys

from sdca_rs._cli import main

if __name__ == "__main__":
    sys.exit(main())
