"""Random draws of this backend's own generator."""
