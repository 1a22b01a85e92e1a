"""Fixtures: runs to explain."""

import pytest
from known_runs import run_of, small_recipe, sum_of_parts


@pytest.fixture(scope="session")
def run():
    """A small CKGCN with two targets."""
    return run_of(small_recipe(("y", "z")))


@pytest.fixture(scope="session")
def sum_run():
    """A network that is a sum over atoms and bonds."""
    return sum_of_parts()
