import sys

import onnx
import pytest

from ckgconv import InputError
from ckgconv.exporting.formats import write_onnx
from ckgconv.exporting.network import input_names


def test_names_of_inputs_and_free_sizes(exported, hops):
    graph = onnx.load(exported.folder / "model.onnx").graph
    assert [each.name for each in graph.input] == input_names(hops)
    assert [each.name for each in graph.output] == ["predictions"]
    assert all(each.type.tensor_type.shape.dim[0].dim_param for each in graph.input)


def test_without_onnxscript_a_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(InputError, match="needs onnx and onnxscript"):
        write_onnx(None, tmp_path / "model.onnx", [], [])
