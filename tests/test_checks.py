"""Refusals are sentences that name the argument and its value."""

import pytest
import torch

from ckgconv.checks import InputError, check_choice, check_finite, check_index, check_shape, require


def test_each_says_what_was_wrong():
    with pytest.raises(InputError, match="as it is"):
        require(False, "as it is")
    with pytest.raises(InputError, match=r"x\[1\] is nan"):
        check_finite("x", torch.tensor([0.0, torch.nan]))
    with pytest.raises(InputError, match="x has shape"):
        check_shape("x", torch.zeros(2, 3), (2, 4), "give four columns.")
    with pytest.raises(InputError, match="colour is 'grey'"):
        check_choice("colour", "grey", ("red", "green"))
    with pytest.raises(InputError):
        check_index("types", torch.tensor([0, 5]), 5, "types")


def test_what_is_right_passes():
    require(True, "never read")
    check_finite("x", torch.zeros(2))
    check_shape("x", torch.zeros(2, 3), (None, 3), "")
    check_choice("colour", "red", ("red",))
    check_index("types", torch.tensor([0, 4]), 5, "types")
