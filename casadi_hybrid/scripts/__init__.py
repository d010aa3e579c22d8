"""Scenarios run by name, and start files for a user's own problem."""
