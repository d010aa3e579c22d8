"""Warm closed loops of predictive controllers; ``warm_peers.py`` is the command."""
