"""Graphs that are hard to distinguish: BREC, SR25, CSL and EXP, as pairs to be separated.

    BREC   400 pairs in seven groups (Wang and Zhang, Towards Better Evaluation of GNN Expressiveness with BREC; MIT)
    SR25   the 15 strongly regular graphs srg(25, 12, 5, 6) of B. McKay's collection: 105 pairs
    CSL    ten circular skip links on 41 nodes (Murphy et al., Relational Pooling for Graph Representations; the five
           folds from Benchmarking Graph Neural Networks; MIT): 45 pairs of classes, 15 relabelled graphs each
    EXP    600 pairs of formulas, satisfiable and not (Abboud et al., The Surprising Power of Graph Neural Networks
           with Random Node Initialization; GPL-3)

BREC, SR25 and CSL are part of the package. EXP is not, because of its licence: it is read from the data folder.

Legend: G graphs, Q pairs of graphs.
"""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.data.catalogue import data_folder
from ckgconv.data.packed import PackedDataset, from_arrays, read_arrays

HERE = Path(__file__).parent
GRAPHS = ("num_nodes", "num_edges", "edge_index", "x", "y")  # pairs of graphs need no split
# In the order of `pair_subset` in brec.npz; BREC's paper calls numbers 1, 2, 5 and 6 together "Regular".
BREC_GROUPS = (
    "BREC basic",
    "BREC simple regular",
    "BREC strongly regular",
    "BREC extension",
    "BREC CFI",
    "BREC 4-vertex condition",
    "BREC distance regular",
)


@dataclass(frozen=True)
class GraphPairs:
    """Graphs of one family, and the pairs of them to compare."""

    dataset: PackedDataset
    first: Tensor  # [Q] int64 graph numbers
    second: Tensor  # [Q]
    group: tuple[str, ...]  # [Q] the row of the results table in which a pair counts

    def __len__(self) -> int:
        return len(self.group)

    def chosen(self, pairs: list[int]) -> "GraphPairs":
        """Some of the pairs."""
        return GraphPairs(self.dataset, self.first[pairs], self.second[pairs], tuple(self.group[q] for q in pairs))


def brec() -> GraphPairs:
    """Pair k is graphs 2k and 2k + 1."""
    arrays = read_arrays(HERE / "brec.npz", (*GRAPHS, "pair_subset"))
    return neighbouring_pairs(arrays, [BREC_GROUPS[subset] for subset in arrays["pair_subset"].tolist()])


def sr25() -> GraphPairs:
    """All pairs of the 15 graphs."""
    return all_pairs(read_arrays(HERE / "sr25.npz", GRAPHS), list(range(15)), "SR25")


def csl() -> GraphPairs:
    """All pairs of the ten classes, with one graph of each class."""
    arrays = read_arrays(HERE / "csl.npz", GRAPHS)
    classes = arrays["y"].tolist()
    return all_pairs(arrays, [classes.index(label) for label in range(10)], "CSL")


def csl_folds() -> tuple[PackedDataset, ...]:
    """The 150 graphs of CSL five times, each time with the splits of one fold."""
    arrays = read_arrays(HERE / "csl.npz")
    splits = ("train_idx", "val_idx", "test_idx")
    return tuple(
        with_constant_nodes({**arrays, **{name: arrays[name][fold] for name in splits}})
        for fold in range(len(arrays["train_idx"]))
    )


def exp_file(folder: Path | None = None) -> Path | None:
    """exp.npz in the data folder or in its folder `expressiveness`; None where it is missing."""
    paths = (data_folder(folder) / "exp.npz", data_folder(folder) / "expressiveness" / "exp.npz")
    return next((path for path in paths if path.exists()), None)


def exp(folder: Path | None = None) -> GraphPairs:
    """Pair k is graphs 2k (satisfiable, y = 1) and 2k + 1 (y = 0); x is the type of a node."""
    path = exp_file(folder)
    require(path is not None, "There is no exp.npz in the data folder: put it there, or set CKGCONV_DATA.")
    assert path is not None
    arrays = read_arrays(path, GRAPHS)
    return neighbouring_pairs(arrays, ["EXP"] * (len(arrays["num_nodes"]) // 2))


def neighbouring_pairs(arrays: dict[str, Tensor], group: list[str]) -> GraphPairs:
    """Graphs 2k and 2k + 1, with the group of each pair."""
    even = 2 * torch.arange(len(group))
    return GraphPairs(with_constant_nodes(arrays), even, even + 1, tuple(group))


def all_pairs(arrays: dict[str, Tensor], graphs: list[int], group: str) -> GraphPairs:
    """All pairs of the given graphs, in one group."""
    first, second = torch.tensor(list(combinations(graphs, 2))).T
    return GraphPairs(with_constant_nodes(arrays), first, second, (group,) * len(first))


def with_constant_nodes(arrays: dict[str, Tensor]) -> PackedDataset:
    """A data set from arrays; where they have no node attributes, all nodes have type 0."""
    nodes = int(arrays["num_nodes"].sum())
    return from_arrays({"x": torch.zeros(nodes, 1, dtype=torch.uint8), **arrays})
