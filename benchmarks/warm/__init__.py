"""The solvers of CasADi's wheel and this package's side by side, in warm closed loops.

One call is measured as a user makes it: ``solver(x0=…, p=…, lam_x0=…, …)`` from Python, with the
last solution shifted by one interval as the guess. All solvers get the same guesses, and each
answer is judged by residuals that are computed anew. ``families`` has the problems, ``peers`` the
solvers and their settings, ``loop`` the measured states and guesses, ``measure`` the clock,
``judge`` the verdict, ``table`` and ``figure`` what is shown, ``warm_peers.py`` the command.
"""
