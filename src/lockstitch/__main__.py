"""`python -m lockstitch`."""

from lockstitch.cli import main

main()
