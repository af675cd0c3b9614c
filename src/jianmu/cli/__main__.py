"""`python -m jianmu.cli`."""

from jianmu.cli import main

main()
