"""Coordinates → CSR support: global, k-hop, given, and the sparse global form."""

from ckgconv.pairs.collate import collate
from ckgconv.pairs.encoded import EncodedGraphs
from ckgconv.pairs.encoding import Encoding, Support, encoding_of
from ckgconv.pairs.support import given_support, global_support, hop_support, row_of
from ckgconv.pe import UNREACHABLE

__all__ = [
    "UNREACHABLE",
    "EncodedGraphs",
    "Encoding",
    "Support",
    "collate",
    "encoding_of",
    "given_support",
    "global_support",
    "hop_support",
    "row_of",
]
