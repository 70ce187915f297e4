"""The data of synthetic tasks, as host arrays. All of it NumPy's."""
