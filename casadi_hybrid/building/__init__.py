"""From C sources to a library in the cache: compiler, processor, cache, build."""
