"""``python -m casadi_hybrid``: the command ``casadi-hybrid``, where scripts are not on the path."""

from casadi_hybrid.cli import main

raise SystemExit(main())
