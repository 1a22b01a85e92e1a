"""The paper's equivalences as operators one can call: each is an ordinary CKGConv with chosen weights."""

from ckgconv.theory.degree import degree_survives
from ckgconv.theory.gdwl import indicator_colours, refine_colours
from ckgconv.theory.set_network import set_layer
from ckgconv.theory.spectral import bernstein, chebyshev, laplacian_monomials, personalised_pagerank, polynomial_filter

__all__ = [
    "bernstein",
    "chebyshev",
    "degree_survives",
    "indicator_colours",
    "laplacian_monomials",
    "personalised_pagerank",
    "polynomial_filter",
    "refine_colours",
    "set_layer",
]
