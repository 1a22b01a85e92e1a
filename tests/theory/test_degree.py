import pytest
import torch

from ckgconv.theory import degree_survives

pytestmark = pytest.mark.usefixtures("double")


def test_layer_norm_erases_the_degree_and_batch_norm_does_not():
    x, degree = torch.randn(20, 8), torch.randint(1, 6, (20,)).double()
    for factor in (degree, degree.sqrt()):
        assert degree_survives("layer", x, factor) < 1e-12
        assert degree_survives("batch", x, factor) > 0.1
