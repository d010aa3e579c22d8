"""The explanation of a result in sentences: conflicts, dependence, scales, rays."""
