"""``python -m kernelcore`` is the command ``kernelcore``."""

import sys

from kernelcore.cli import main

if __name__ == "__main__":
    sys.exit(main())
