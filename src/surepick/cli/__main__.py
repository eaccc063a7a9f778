"""`python -m surepick.cli`: the command line without its script."""

from surepick.cli import main

main()
