import pytest

from ckgconv import CKGConv, InputError
from ckgconv.nn.layer_options import DEFAULTS, chosen_options, one_width


def test_options_are_those_given_and_defaults():
    assert chosen_options({}, kernel_given=False) == DEFAULTS
    assert chosen_options({"heads": 2}, kernel_given=True) == {**DEFAULTS, "heads": 2}


def test_widths():
    assert (one_width(4), one_width((4, 4)), one_width((-1, -1)), one_width(-1)) == (4, 4, -1, -1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"flow": "forward"}, "flow is 'forward': choose one of source_to_target, target_to_source"),
        ({"in_channels": -2}, "in_channels is -2"),
        ({"in_channels": (0, 0)}, "in_channels is 0"),
        ({"in_channels": (4, -1)}, r"in_channels is \(4, -1\)"),
        ({"cache": True}, "CKGConv has no option 'cache': did you mean cached"),
    ],
)
def test_others_are_not_accepted(options, sentence):
    with pytest.raises(InputError, match=sentence):
        CKGConv(**{"in_channels": 4, "out_channels": 4, **options})
