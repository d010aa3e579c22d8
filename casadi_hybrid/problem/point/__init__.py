"""What a point is: residuals, what rounding excuses in them, and the active bounds."""
