"""Rows on disk that survive a kill, know when they were changed, and are one run's at a time."""
