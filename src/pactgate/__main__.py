"""`python -m pactgate` is `pactgate`."""

from pactgate.cli.main import main

main()
