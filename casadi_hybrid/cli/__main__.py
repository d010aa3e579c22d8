"""``python -m casadi_hybrid.cli`` is ``casadi-hybrid``, where the script is not on the path."""

import sys

from casadi_hybrid.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
