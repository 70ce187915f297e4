"""`python -m ember_ml` is the command line `ember`."""

from ember_ml.cli import main

if __name__ == "__main__":
    main()
