"""Properties of a point: residuals, active bounds, first derivatives, limits of a solve."""
