"""`python -m metaharvest` is the `metaharvest` command."""

from metaharvest.cli import main

main()
