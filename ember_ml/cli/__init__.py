"""The command line: `ember`, or `python -m ember_ml`."""


def main() -> None:
    """What `ember` calls."""
    from ember_ml.cli.app import app

    app(prog_name="ember")
