"""Signals: windows, convolutions, pools."""
