"""Fixtures: two small runs that predict a target of molecules, and a client of the server for one of them."""

import threading
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from ckgconv import train
from ckgconv.cli.initial_options import FeatureOptions
from ckgconv.cli.table_options import TableOptions, table_recipe
from ckgconv.recipe import DataRecipe
from ckgconv.recipes import with_value
from ckgconv.recipes.molecules import fitting, molecules
from ckgconv.serve.app import make_app
from ckgconv.serve.guard import Guard
from ckgconv.serve.limits import Limits
from ckgconv.serve.network import Network
from ckgconv.serve.pool import Pool
from ckgconv.serve.server import Server, address_of, bound
from ckgconv.uncertainty import fit, write_uncertainty

LIMITS = Limits(molecules=40, rows=100, letters=200, atoms=30, json_bytes=10_000, file_bytes=20_000, requests=2)
SMALL = ("model.width=8", "model.blocks=1", "model.steps=3", "training.epochs=1", "training.warmup_epochs=0")


class OwnPool(Pool):
    """Computes in this process."""

    def __init__(self, answers, limits):
        self.answers, self.limits = answers, limits

    def ask(self, seconds, do, **rest):
        return self.answers[do](**rest)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Folders of two runs that differ in their seed."""
    folder = tmp_path_factory.mktemp("served")
    rows = [f"{'C' * (place % 9 + 1)}{'ONF'[place % 3]},{place % 9}" for place in range(30)]
    (folder / "chains.csv").write_text("\n".join(["smiles,length", *rows]) + "\n")
    recipe = molecules(DataRecipe(str(folder / "chains.csv"), targets=("length",), split="random"))
    for setting in SMALL:
        recipe = with_value(recipe, setting)
    for seed in range(2):
        train(fitting(recipe), seed=seed, folder=folder / f"seed{seed}", device="cpu")
    return [str(folder / f"seed{seed}") for seed in range(2)]


@pytest.fixture(scope="session")
def network(runs):
    return Network(runs[:1], "cpu", LIMITS.atoms)


@pytest.fixture(scope="session")
def pool(network):
    answers = {"predict": network.predict, "cells": network.cells, "explain": network.explain}
    return OwnPool(answers, LIMITS)


@contextmanager
def served(network, pool):
    """The address of a server in a thread."""
    guard = Guard(make_app(pool, network.about(), LIMITS), LIMITS, frozenset({"localhost"}))
    server = Server(uvicorn.Config(guard, log_level="critical", lifespan="off", ws="none"))
    with bound("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield address_of(listening)
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def address(network, pool):
    """Of a server in a thread."""
    with served(network, pool) as found:
        yield found


@pytest.fixture(scope="session")
def own_columns_address(tmp_path_factory):
    """Of a server for a run that reads two own columns, and predicts a value and a label."""
    folder = tmp_path_factory.mktemp("own")
    rows = [f"{'C' * (place % 9 + 1)}O,{place % 9},{place % 2},{place % 14},{place}" for place in range(120)]
    (folder / "own.csv").write_text("\n".join(["smiles,length,even,pH,dose mg", *rows]) + "\n")
    chosen = table_recipe(folder / "own.csv", TableOptions(target=["length", "even"]))
    chosen = FeatureOptions(["pH", "dose mg"], False).applied(chosen)
    for setting in SMALL:
        chosen = with_value(chosen, setting)
    run = train(fitting(chosen), folder=folder / "run", device="cpu")
    write_uncertainty(folder / "run", fit([run]))
    network = Network([str(folder / "run")], "cpu", LIMITS.atoms)
    answers = {"predict": network.predict, "cells": network.cells, "explain": network.explain}
    with served(network, OwnPool(answers, LIMITS)) as found:
        yield found


@pytest.fixture
def client(address):
    with httpx.Client(base_url=address, timeout=60) as client:
        yield client
