"""``python -m trnscope``: the command line."""

from trnscope.cli.main import main

main()
