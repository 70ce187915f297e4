"""Function transforms: gradients, batching, checkpointing and compilation."""
