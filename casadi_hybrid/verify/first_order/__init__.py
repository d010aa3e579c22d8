"""Rows, multipliers fitted with signs, residuals, active set and its rank."""
