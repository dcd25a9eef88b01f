"""`python -m hybridsim`."""

from hybridsim.cli.main import main

main()
