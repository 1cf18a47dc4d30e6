"""`python -m sabre` is the command line."""

import sys

from sabre.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
