"""What the CUDA compiler makes of every kernel, found out without a GPU."""
