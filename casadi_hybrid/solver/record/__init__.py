"""The result of a solve, its history, its explanation, its report."""
