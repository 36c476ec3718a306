"""What calls of the native host kernels share."""

# Rows with more edges are cut, so that one thread never holds up the others.
PIECE_EDGES = 4096
