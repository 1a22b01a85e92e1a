import pytest
import torch
from graphs_for_tests import packed, random_edges

from ckgconv import CKGConv, InputError, pack
from ckgconv.pairs import Encoding, memory

NONE = torch.zeros(2, 0, dtype=torch.int64)


@pytest.fixture
def free(monkeypatch):
    """Sets the memory of every device; counts how often it is asked for."""
    asked = []

    def set_free(size, small=memory.SMALL):
        monkeypatch.setattr(memory, "free_bytes", lambda device: asked.append(device) or size)
        monkeypatch.setattr(memory, "SMALL", small)
        return asked

    return set_free


def test_a_graph_beyond_memory_is_refused_with_the_sparse_support_named(free):
    free(8e9)
    large = pack(NONE, num_nodes=200_000)
    words = (
        r"All pairs of a graph of 200,000 nodes are 40,000,000,000, and their coordinates need about 3,040.0 GB; the "
        r"device cpu has 8.0 GB free: choose support 'sparse_global' \(the same numbers\) or a number of hops\."
    )
    with pytest.raises(InputError, match=words):
        Encoding("rrwp", 4, 4, "global").coordinates(large, torch.float32)
    for name in ("spd", "rd", "pair_rwse", "heat"):
        with pytest.raises(InputError, match="choose a number of hops as support, or encoding 'rrwp' with"):
            Encoding(name, 4, 4, "global").coordinates(large, torch.float32)
        assert Encoding(name, 4, 4, 2).coordinates(large, torch.float32).receiver.shape == (200_000,)
    with pytest.raises(InputError, match="choose encoding 'rrwp' with support 'sparse_global'"):
        Encoding("heat", 20, 4, 2).coordinates(large, torch.float32)
    for support in ("sparse_global", 2):
        assert not Encoding("rrwp", 4, 4, support).coordinates(large, torch.float32).complete


def test_the_layer_refuses_too(free):
    free(8e9)
    with pytest.raises(InputError, match="choose support 'sparse_global'"):
        CKGConv(2, 2, pe="rrwp", steps=4, support="global")(torch.rand(50_000, 2), NONE)


def test_several_graphs_are_counted_graph_by_graph(free):
    asked = free(10**6, small=0)
    graphs = packed(*[(40, random_edges(40, 60, seed)) for seed in range(20)])
    with pytest.raises(InputError, match=r"20 graphs of up to 40 nodes are 32,000, .*or smaller batches"):
        Encoding("rrwp", 4, 4, "global").coordinates(graphs, torch.float32)
    with pytest.raises(InputError, match=r"free: choose fewer steps, or smaller batches\."):
        Encoding("rrwp", 4, 4, 2).coordinates(graphs, torch.float32)
    assert len(asked) == 4  # each twice: what nothing refers to is returned to the system before a refusal


def test_what_is_needed_is_what_the_sentence_says(free):
    graphs = packed((30, random_edges(30, 60, 0)))
    exact = 900 * (24 + 2 * 5 * 8) + 900 * 3 * 8
    free(exact, small=0)
    assert Encoding("rrwp", 4, 4, "global").coordinates(graphs, torch.float64).complete
    free(exact - 1, small=0)
    with pytest.raises(InputError, match="30 nodes"):
        Encoding("rrwp", 4, 4, "global").coordinates(graphs, torch.float64)


def test_ordinary_batches_are_never_measured(free):
    asked = free(0)
    graphs = packed(*[(25, random_edges(25, 30, seed)) for seed in range(32)])
    assert Encoding("rrwp", 21, 21, "global").coordinates(graphs, torch.float32).complete
    assert not asked


def test_free_memory_of_this_machine(monkeypatch):
    def silent(name):
        raise ValueError

    cpu = torch.device("cpu")
    assert 2**20 < memory.free_bytes(cpu) <= memory._physical_bytes()
    assert memory.free_bytes(torch.device("meta")) is None
    monkeypatch.setattr(memory.Path, "read_text", lambda *_, **__: "MemTotal: 1 kB\n")
    assert memory.free_bytes(cpu) == memory._physical_bytes()
    monkeypatch.setattr(memory.os, "sysconf", silent)
    assert memory.free_bytes(cpu) is None


@pytest.mark.parametrize(("most", "free"), [("1000000", 700_000), ("max", None)])
def test_a_container_has_less_memory_than_its_machine(monkeypatch, tmp_path, most, free):
    for name, text in (("max", most), ("current", "400000"), ("stat", "active_file 7\ninactive_file 100000")):
        (tmp_path / f"memory.{name}").write_text(f"{text}\n")
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    cpu = torch.device("cpu")
    assert memory.free_bytes(cpu) == free or (free is None and memory.free_bytes(cpu) > 2**20)


def test_a_process_may_have_less_memory_than_its_machine(monkeypatch):
    mapped = int(memory.Path("/proc/self/statm").read_text().split()[0]) * memory.resource.getpagesize()
    monkeypatch.setattr(memory.resource, "getrlimit", lambda kind: (mapped + 2**24, memory.resource.RLIM_INFINITY))
    assert memory.free_bytes(torch.device("cpu")) <= 2**24


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError(), RuntimeError("CPU: can't allocate memory")])
def test_an_allocation_that_fails_is_a_sentence(error):
    with pytest.raises(InputError, match="not enough memory for a step"), memory.explaining_lack_of_memory():
        raise error
    with pytest.raises(RuntimeError, match="other"), memory.explaining_lack_of_memory():
        raise RuntimeError("other")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_free_memory_of_a_gpu():
    device = torch.device("cuda")
    assert 0 < memory.free_bytes(device) <= torch.cuda.get_device_properties(device).total_memory


def test_a_process_returns_freed_pages_before_anything_is_refused(monkeypatch):
    reported = iter([5, 50])
    monkeypatch.setattr(memory, "free_bytes", lambda device: next(reported))
    assert memory.free_bytes_after_trim(torch.device("cpu"), 40) == 50
    monkeypatch.setattr(memory, "free_bytes", lambda device: 7)
    assert memory.free_bytes_after_trim(torch.device("cpu"), 7) == 7


def test_pairs_are_counted_where_they_may_matter():
    x, batch = torch.zeros(3_000, 1), torch.arange(3).repeat_interleave(1_000)
    assert memory.count_all_pairs(x, batch) == 3 * 1_000**2
    assert memory.count_all_pairs(x, None) == 3_000**2
    assert memory.count_all_pairs(x[:20], torch.arange(20)) == 400  # a bound will do
    assert memory.count_all_pairs(torch.tensor(1.0), None) == 0
