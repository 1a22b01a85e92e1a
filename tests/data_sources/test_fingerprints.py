"""Morgan fingerprints as packed bits."""

import numpy as np

from ckgconv.data.fingerprints import WIDTH, fingerprint
from ckgconv.data.molecules import parse_smiles


def test_the_same_molecule_has_the_same_bits_however_it_is_written():
    one, same, other = (fingerprint(parse_smiles(smiles)) for smiles in ("CCO", "OCC", "c1ccccc1"))
    assert one.shape == (WIDTH,)
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
