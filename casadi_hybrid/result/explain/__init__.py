"""What is said about a result: conflicts, dependence, scales, rays, in sentences."""
