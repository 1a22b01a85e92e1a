"""Graph → pseudo-coordinates: no parameters, any device."""

from ckgconv.pe.distances import UNREACHABLE, pairs_within, rd, spd
from ckgconv.pe.rrwp import diagonal, rrwp, sparse_rrwp
from ckgconv.pe.rwse import pair_rwse, rwse, sparse_pair_rwse, sparse_rwse
from ckgconv.pe.transforms import AddPairRWSE, AddRD, AddRRWP, AddRWSE, AddSparseRRWP, AddSPD

__all__ = [
    "UNREACHABLE",
    "AddPairRWSE",
    "AddRD",
    "AddRRWP",
    "AddRWSE",
    "AddSPD",
    "AddSparseRRWP",
    "diagonal",
    "pair_rwse",
    "pairs_within",
    "rd",
    "rrwp",
    "rwse",
    "sparse_pair_rwse",
    "sparse_rrwp",
    "sparse_rwse",
    "spd",
]
