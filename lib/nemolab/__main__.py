"""`python -m nemolab`."""

from nemolab.cli import main

main()
