"""Programs that run on the GPU. Importing a module of this package imports Triton."""
