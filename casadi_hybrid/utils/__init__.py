"""What every room stands on: arrays, checks of input, errors, statuses, processes."""
