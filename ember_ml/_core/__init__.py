"""What everything stands on: the tensor, dtypes, dispatch and errors. Private."""
