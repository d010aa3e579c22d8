"""Shared by all comparisons: one judge, one way to run a peer, one table and one profile.

- :mod:`peers.cases`: the problems, by set.
- :mod:`peers.solvers`: the peers, each with the options its documentation recommends.
- :mod:`peers.workers`: a process that solves with one peer under a time limit.
- :mod:`peers.judge`: residuals of the returned point, and the kind of the answer.
- :mod:`peers.report`: the table, ratios, wins and losses, and the performance profile.
"""
