"""Archives with the structure of the official ones, and a server on this machine that hands them out."""

import gzip
import hashlib
import io
import pickle
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch

from ckgconv.data.official import OFFICIAL, STRUCTURE, Official

SPLITS = ("train", "val", "test")
COUNTS = {"train": 3, "val": 2, "test": 2}
PEPTIDES = [
    "CC(N)C(=O)O",
    "NCC(=O)O",
    "CC(C)C(N)C(=O)O",
    "NC(CO)C(=O)O",
    "NCC(=O)NCC(=O)O",
    "CSCCC(N)C(=O)O",
    "NCCC(=O)O",
]


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[str]:
    """The address of a server that hands out files by name."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            content = files.get(self.path.lstrip("/"))
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def local(name: str, address: str, files: dict[str, bytes], graphs: dict[str, int] | None = None) -> Official:
    """The source of a data set on that server, with digests of these files where the official ones have any."""
    archives = tuple(
        replace(each, url=f"{address}/{each.name}", md5=each.md5 and hashlib.md5(files[each.name]).hexdigest())
        for each in OFFICIAL[name].archives
    )
    return replace(OFFICIAL[name], archives=archives, graphs=graphs or COUNTS)


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def rings(sizes: range, node_targets: bool = False, pos: bool = False) -> list[dict[str, torch.Tensor]]:
    """Rings as the dictionaries of tensors that the benchmarks hold."""
    graphs = []
    for size in sizes:
        nodes = torch.arange(size)
        edges = torch.stack([nodes, (nodes + 1) % size])
        graph = {"x": torch.rand(size, 3), "edge_index": edges, "edge_attr": torch.rand(size)}
        graph["y"] = nodes % 2 if node_targets else torch.tensor([size % 10])
        graphs.append(graph | ({"pos": torch.rand(size, 2)} if pos else {}))
    return graphs


def benchmark(name: str, splits: list[list[dict[str, torch.Tensor]]], zip_form: bool = True) -> dict[str, bytes]:
    file = io.BytesIO()
    torch.save(splits, file, _use_new_zipfile_serialization=zip_form)
    return {f"{name}_v2.zip": zipped(**{f"{name}_v2.pt": file.getvalue()})}


def zinc(molecules: dict[str, list[dict[str, object]]]) -> dict[str, bytes]:
    return {
        "molecules.zip": zipped(**{f"molecules/{split}.pickle": pickle.dumps(molecules[split]) for split in SPLITS})
    }


def zinc_molecule(size: int) -> dict[str, object]:
    """A chain."""
    bonds = torch.zeros(size, size, dtype=torch.int64)
    bonds[torch.arange(size - 1), torch.arange(1, size)] = 1
    target = torch.tensor([float(size)])
    types = torch.arange(size) % 21
    return {"num_atom": size, "atom_type": types, "bond_type": bonds + bonds.T, "logP_SA_cycle_normalized": target}


def peptides(structure: bool) -> dict[str, bytes]:
    """Seven rows, and a split of them."""
    if structure:
        rows = [",".join(["smiles", *STRUCTURE])]
        rows += [
            ",".join([each, *(str(k + 0.5 * row * (k + 1)) for k in range(11))]) for row, each in enumerate(PEPTIDES)
        ]
    else:
        rows = [",smiles,peptide_seq,labels,identifier"]
        rows += [f'{row},{each},G,"{[int(k == row) for k in range(10)]}",{row}' for row, each in enumerate(PEPTIDES)]
    name = "peptide_structure_dataset.csv.gz" if structure else "peptide_multi_class_dataset.csv.gz"
    split = {"train": np.array([6, 0, 1]), "val": np.array([2, 3]), "test": np.array([4, 5])}
    return {name: gzip.compress("\n".join(rows).encode()), "split.pickle": pickle.dumps(split)}


MUTAG = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n2, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "3\n4\n3\n5\n3\n",
    "edge_labels": "1\n1\n0\n0\n1\n2\n2\n",
}


def mutag(**changed: str) -> dict[str, bytes]:
    texts = MUTAG | changed
    return {"MUTAG.zip": zipped(**{f"MUTAG/MUTAG_{name}.txt": text.encode() for name, text in texts.items()})}
