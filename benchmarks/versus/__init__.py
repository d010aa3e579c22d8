"""One controller stated with three tools: a file a problem and tool, and the plants of all."""
