"""Sizes of the blocks of rows that exceed the memory: what files are read in, fits work in, and estimates count."""

MAX_BLOCK_ROWS, MAX_BLOCK_BYTES = (
    2**17,
    2**26,
)  # at most on average: a worker needs some hundred megabytes
CELLS_PER_BLOCK, MAX_CELLS = 8, 4096  # cells of nearby rows, of which blocks are made
MAX_NODES, MAX_NODE_BYTES = 200_000, 2**28  # of a contracted graph on one machine, and of the means of its nodes
