"""Tools of all packages: arrays, input checks, errors, statuses, threads, files, studies."""
