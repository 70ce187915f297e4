"""Random numbers from the framework's generator."""
