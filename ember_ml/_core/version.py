"""The version of Ember ML."""

VERSION = "0.1.0"
