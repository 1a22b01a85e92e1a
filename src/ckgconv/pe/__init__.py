"""Graph → pseudo-coordinates, without parameters, on any device."""

from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.cycles import RRWP_CYCLES, walks_and_cycles
from ckgconv.pe.cycles_rings import RRWP_CYCLES_RINGS, walks_cycles_and_rings
from ckgconv.pe.distances import RD, SPD, pairs_within, rd, spd
from ckgconv.pe.heat import HEAT, heat
from ckgconv.pe.laplacian import LAPLACIAN, SPECTRUM, eigenvectors, laplacian_products, spectral_products, spectrum
from ckgconv.pe.looped_walks import LOOPED_WALKS, looped_walks, sparse_looped_walks
from ckgconv.pe.rings import RRWP_RINGS, walks_and_rings
from ckgconv.pe.rrwp import RRWP, diagonal, rrwp, sparse_rrwp
from ckgconv.pe.rwse import PAIR_RWSE, pair_rwse, rwse, sparse_rwse
from ckgconv.pe.search import UNREACHABLE
from ckgconv.pe.transforms import AddHeat, AddPairRWSE, AddRD, AddRRWP, AddRWSE, AddSparseRRWP, AddSPD
from ckgconv.pe.two_way import TWO_WAY_RRWP, sparse_two_way_rrwp, two_way_rrwp
from ckgconv.registry import Registry

OURS = {
    "rrwp": RRWP,
    "spd": SPD,
    "rd": RD,
    "pair_rwse": PAIR_RWSE,
    "heat": HEAT,
    "two_way_rrwp": TWO_WAY_RRWP,
    "looped_walks": LOOPED_WALKS,
    "laplacian": LAPLACIAN,
    "spectrum": SPECTRUM,
    "rrwp_cycles": RRWP_CYCLES,
    "rrwp_rings": RRWP_RINGS,
    "rrwp_cycles_rings": RRWP_CYCLES_RINGS,
}
COORDINATES: Registry[PseudoCoordinate] = Registry("pseudo-coordinate", "ckgconv.coordinates", OURS, PseudoCoordinate)

__all__ = [
    "COORDINATES",
    "UNREACHABLE",
    "AddHeat",
    "AddPairRWSE",
    "AddRD",
    "AddRRWP",
    "AddRWSE",
    "AddSPD",
    "AddSparseRRWP",
    "PseudoCoordinate",
    "diagonal",
    "eigenvectors",
    "heat",
    "laplacian_products",
    "looped_walks",
    "pair_rwse",
    "pairs_within",
    "rd",
    "rrwp",
    "rwse",
    "sparse_looped_walks",
    "sparse_rrwp",
    "sparse_rwse",
    "sparse_two_way_rrwp",
    "spd",
    "spectral_products",
    "spectrum",
    "two_way_rrwp",
    "walks_and_cycles",
    "walks_and_rings",
    "walks_cycles_and_rings",
]
