"""SMILES → predictions with an exported network: rdkit and numpy, and torch or onnxruntime; nothing else is needed.

    python predict.py CCO c1ccccc1                 with model.pt2, by torch
    python predict.py --onnx CCO c1ccccc1          with model.onnx, by onnxruntime
    python predict.py --json < file                one SMILES per line; predictions as JSON, null where there is none
    python predict.py "CCO 7.4 nan"                values of own columns, where the network reads any; nan: unknown

featuriser.json, next to this file, has the vocabularies of atoms and bonds, the coordinates of pairs, own columns, and
the outputs. Of several networks in one the mean is predicted, and after it comes their standard deviation.

    P_ij = [I, M, M², …, M^K]_ij,   M = D⁻¹A      for the pairs (i, j) of the support: all, or those within k hops

Legend: G molecules, N atoms of all, E bonds in both directions, P pairs, C = K + 1 channels.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import Descriptors

HERE = Path(__file__).resolve().parent
# Molecules of a batch.
BATCH = 32
# Own columns are at most this large, as in a table.
LARGEST = 1e18
Arrays = dict[str, Any]

ATOM: dict[str, Any] = {
    "atomic_number": lambda atom: atom.GetAtomicNum(),
    "chirality": lambda atom: str(atom.GetChiralTag()),
    "degree": lambda atom: atom.GetTotalDegree(),
    "charge": lambda atom: atom.GetFormalCharge(),
    "hydrogens": lambda atom: atom.GetTotalNumHs(),
    "radical_electrons": lambda atom: atom.GetNumRadicalElectrons(),
    "hybridisation": lambda atom: str(atom.GetHybridization()),
    "aromatic": lambda atom: atom.GetIsAromatic(),
    "in_ring": lambda atom: atom.IsInRing(),
    "zinc_type": lambda atom: zinc_types(atom),
}
BOND: dict[str, Any] = {
    "type": lambda bond: str(bond.GetBondType()),
    "stereo": lambda bond: str(bond.GetStereo()),
    "conjugated": lambda bond: bond.GetIsConjugated(),
}


Row = list[float] | None


class Predictions(NamedTuple):
    """A row [T] for each SMILES, None where there is none."""

    values: list[Row]
    reasons: list[str]  # why there is none, empty where there is one
    deviations: list[Row] | None  # between the networks, where several are in one; None: there is one network


class CannotPredict(ValueError):
    """A molecule that the network has no prediction for; the message says why."""


def zinc_types(atom: Any) -> list[str]:
    """Names of an atom in ZINC's dictionary, the preferred one first: element, explicit hydrogens, charge."""
    charge = {0: "", 1: " +", -1: " -"}.get(atom.GetFormalCharge(), " ?")
    plain, hydrogens = f"{atom.GetSymbol()}{charge}", atom.GetNumExplicitHs()
    return [f"{atom.GetSymbol()} H{hydrogens}{charge}", plain] if hydrogens else [plain]


def read_tables() -> Arrays:
    """featuriser.json."""
    found: Arrays = json.loads((HERE / "featuriser.json").read_text(encoding="utf-8"))
    return found


def place(value: Any, column: Arrays) -> int:
    """Position of a value in the vocabulary of a column, or the entry after its end where it has one for others."""
    values = column["values"]
    for each in value if isinstance(value, list) else [value]:
        if each in values:
            return int(values.index(each)) + int(column["first"])
    if not column["unknown"]:
        raise CannotPredict(f"{column['name']} {value} does not occur in the training data.")
    return len(values) + int(column["first"])


def read_smiles(smiles: str, tables: Arrays) -> Arrays:
    """Attributes of one molecule: atoms [n, F], bonds in both directions [2, E] and their attributes [E, Fe]."""
    molecule = Chem.MolFromSmiles(smiles) if smiles.strip() else None
    if molecule is None or molecule.GetNumAtoms() == 0:
        raise CannotPredict(f"{smiles!r} is not a valid SMILES.")
    if molecule.GetNumAtoms() > tables["most_atoms"]:
        raise CannotPredict(f"{smiles!r} has more than {tables['most_atoms']} atoms.")
    if tables["kekulise"]:
        Chem.Kekulize(molecule)
    atoms = [[place(ATOM[each["name"]](atom), each) for each in tables["atoms"]] for atom in molecule.GetAtoms()]
    ends, attributes = [], []
    for bond in molecule.GetBonds():
        own = [place(BOND[each["name"]](bond), each) for each in tables["bonds"]]
        i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        ends += [(i, j), (j, i)]
        attributes += [own, own]
    return {
        "x": np.array(atoms, np.int64),
        "edges": np.array(ends, np.int64).reshape(-1, 2).T,
        "edge_attr": np.array(attributes, np.int64).reshape(-1, len(tables["bonds"])),
    }


def pairs_of(molecule: Arrays, steps: int, support: Any) -> Arrays:
    """Pairs (i, j) of the support with their walks P_ij, sorted by i, then j; and what belongs to the atoms."""
    count = len(molecule["x"])
    adjacency = np.zeros((count, count))
    adjacency[molecule["edges"][0], molecule["edges"][1]] = 1
    degree = adjacency.sum(1)
    walk = adjacency / np.maximum(degree, 1)[:, None]
    powers = [np.eye(count)]
    for _ in range(steps):
        powers.append(powers[-1] @ walk)
    walks = np.stack(powers, axis=-1)
    inside = np.ones((count, count), bool)
    if support != "global":
        inside = np.eye(count, dtype=bool)
        for _ in range(int(support)):
            inside = inside | (inside @ (adjacency > 0))
    receiver, sender = inside.nonzero()
    row = np.full((count, count), -1)
    row[receiver, sender] = np.arange(len(receiver))
    edge_row = row[molecule["edges"][0], molecule["edges"][1]]
    kept = edge_row >= 0
    return {
        "x": molecule["x"],
        "node_encoding": np.einsum("iic->ic", walks)[:, 1:],
        "degree": degree,
        "receiver": receiver,
        "sender": sender,
        "coordinates": walks[receiver, sender],
        "support_size": inside.sum(1),
        "edge_row": edge_row[kept],
        "edge_attr": molecule["edge_attr"][kept],
    }


def descriptors_of(smiles: str, wanted: Arrays) -> Any:
    """[1, C] RDKit's descriptors of a molecule; NaN where one has no value, or one that does not count."""
    molecule, functions, found = Chem.MolFromSmiles(smiles), dict(Descriptors.descList), []
    for name in wanted["names"]:
        try:
            value = float(functions[name](molecule))
        except (ValueError, ArithmeticError, RuntimeError):
            value = float("nan")
        found.append(value if abs(value) <= wanted["largest"] else float("nan"))
    return np.array([found], np.float32)


def batch_of(molecules: list[Arrays]) -> Arrays:
    """Several molecules as one input of the network: numbers of atoms and of pairs go on from one to the next."""
    atoms = np.array([len(each["x"]) for each in molecules])
    first_atom = np.cumsum(atoms) - atoms
    pairs = np.array([len(each["receiver"]) for each in molecules])
    first_pair = np.cumsum(pairs) - pairs
    joined = {name: np.concatenate([each[name] for each in molecules]) for name in molecules[0]}
    for name, start in (("receiver", first_atom), ("sender", first_atom), ("edge_row", first_pair)):
        joined[name] = np.concatenate([each[name] + own for each, own in zip(molecules, start, strict=True)])
    joined["node_graph"] = np.repeat(np.arange(len(molecules)), atoms)
    joined["node_ptr"] = np.append(0, np.cumsum(atoms))
    floating = ("node_encoding", "degree", "coordinates", "support_size", "graph_features")
    return {name: value.astype(np.float32 if name in floating else np.int64) for name, value in joined.items()}


def network(tables: Arrays, onnx: bool) -> Any:
    """A function from the arrays of a batch to predictions [G, T] and, of several networks, their deviations [G, T]."""
    names = tables["inputs"]
    if onnx:
        import onnxruntime

        session = onnxruntime.InferenceSession(HERE / "model.onnx", providers=["CPUExecutionProvider"])
        return lambda batch: session.run(None, {name: batch[name] for name in names})
    import torch

    program = torch.export.load(HERE / "model.pt2").module()

    def run(batch: Arrays) -> Any:
        with torch.no_grad():
            found = program(*(torch.from_numpy(batch[name]) for name in names))
        return [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]

    return run


def own_values(values: list[Any], names: list[str]) -> Any:
    """[1, C] of the columns that the network reads beside a molecule, from numbers or their text."""
    if len(values) != len(names):
        read = ", ".join(names) or "no columns"
        raise CannotPredict(f"The network reads {read} beside a molecule, but {len(values)} values were given.")
    for name, value in zip(names, values, strict=True):
        try:
            finite = abs(float(value)) <= LARGEST or float(value) != float(value)
        except ValueError:
            finite = False
        if not finite:
            allowed = f"no number of at most {LARGEST:g}; give nan where it is unknown"
            raise CannotPredict(f"{value!r} for {name} is {allowed}.")
    return np.array([[float(value) for value in values]], np.float32)


def predict(smiles: list[str], onnx: bool = False, features: list[list[Any]] | None = None) -> Predictions:
    """Predictions for molecules.

    `features` has a row for each: the values of own columns that the network reads, nan where unknown.
    """
    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]
    tables = read_tables()
    coordinates = tables["coordinates"]
    own = features or [[]] * len(smiles)
    molecules, reasons = {}, [""] * len(smiles)
    for row, text in enumerate(smiles):
        try:
            found = pairs_of(read_smiles(text, tables), coordinates["steps"], coordinates["support"])
            beside = [own_values(own[row], tables["features"])]
            if tables["descriptors"] is not None:
                beside.insert(0, descriptors_of(text, tables["descriptors"]))
            if sum(each.shape[1] for each in beside):
                found["graph_features"] = np.concatenate(beside, axis=1)
            molecules[row] = found
        except CannotPredict as error:
            reasons[row] = str(error)
    run, rows = network(tables, onnx), list(molecules)
    results: list[list[Row]] = [[None] * len(smiles) for _ in range(2 if "members" in tables else 1)]
    for start in range(0, len(rows), BATCH):
        chosen = rows[start : start + BATCH]
        for kept, computed in zip(results, run(batch_of([molecules[row] for row in chosen])), strict=True):
            for row, value in zip(chosen, computed.tolist(), strict=True):
                kept[row] = value
    values, *deviations = results
    return Predictions(values, reasons, deviations[0] if deviations else None)


def main() -> None:
    parser = argparse.ArgumentParser(description="Predict molecules with an exported network.")
    parser.add_argument("smiles", nargs="*", help="by default one per line of standard input")
    parser.add_argument("--onnx", action="store_true", help="run model.onnx instead of model.pt2")
    parser.add_argument("--json", action="store_true", help="print predictions and reasons as JSON")
    options = parser.parse_args()
    lines = options.smiles or [line.strip() for line in sys.stdin if line.strip()]
    own_columns = bool(read_tables()["features"])
    parts = [(line.split() or [""]) if own_columns else [line] for line in lines]
    smiles = [text for text, *_ in parts]
    found = predict(smiles, options.onnx, [own for _, *own in parts])
    if options.json:
        print(json.dumps(found._asdict()))
        return
    deviations = found.deviations or [[]] * len(smiles)
    for text, row, deviation, reason in zip(smiles, found.values, deviations, found.reasons, strict=True):
        print(text, *([reason] if row is None else [f"{value:.6g}" for value in row + (deviation or [])]), sep="\t")


if __name__ == "__main__":
    main()
