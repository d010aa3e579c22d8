"""Many independent pieces of work: what carries them, and what a worker does."""
