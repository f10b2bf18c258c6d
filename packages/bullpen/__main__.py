"""`python -m bullpen` is the `bullpen` command."""

from bullpen.cli.main import main

main()
