"""`python -m ckgconv`, which is how `torchrun -m` starts the command line."""

from ckgconv.cli import main

main()
