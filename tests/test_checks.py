"""Refusals are sentences that name the argument and its value."""

import pytest
import torch

from ckgconv.checks import (
    InputError,
    check_choice,
    check_finite,
    check_index,
    check_instance,
    check_shape,
    cut,
    require,
    shown,
)


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


def test_values_in_sentences_are_short_and_on_one_line():
    assert shown("a" * 1000).endswith("a'")
    assert len(shown("a" * 1000)) <= 120
    assert shown([[[[[1]]]]]) == "[[[[...]]]]"
    assert shown(10**5000) == "a number of thousands of digits"
    assert "\n" not in shown(torch.zeros(30, 30))
    assert cut("a" * 120) == "a" * 120
    assert cut("a" * 121) == "a" * 117 + "..."


def test_what_is_right_is_not_written_out():
    class Network:
        def __repr__(self):
            raise AssertionError("a network of megabytes would be written out for each chunk of predictions")

    check_instance("The run", Network(), Network, "a run")
