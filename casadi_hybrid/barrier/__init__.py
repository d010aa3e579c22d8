"""The default iteration: a primal–dual barrier method on the kernel, with its remedies."""
