"""The command line: `ember`, or `python -m ember_ml`."""


def main() -> None:
    """Run the command line."""
    from ember_ml.cli.app import app

    app(prog_name="ember")
