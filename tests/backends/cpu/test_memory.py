import copy
import pickle

import torch

from ckgconv.backends.cpu.memory import Memory


class Borrower:
    pass


def test_one_borrower_at_a_time():
    memory, like = Memory(), torch.empty(5, 3, dtype=torch.float64)
    first, second = Borrower(), Borrower()
    one, other = memory.borrow(first, 2, like), memory.borrow(second, 2, like)
    tensors = [*one, *other]
    for number, tensor in enumerate(tensors):
        tensor.fill_(number)
    assert [tensor.unique().tolist() for tensor in tensors] == [[0], [1], [2], [3]]
    assert all(tensor.shape == like.shape and tensor.dtype == like.dtype for tensor in tensors)


def test_a_block_is_used_again_and_grows():
    memory, like = Memory(), torch.empty(5, 3)
    place = memory.borrow(Borrower(), 2, like)[0].data_ptr()
    assert memory.borrow(Borrower(), 2, like)[0].data_ptr() == place
    assert memory.borrow(Borrower(), 9, like)[8].shape == like.shape


def test_copies_are_empty():
    memory = Memory()
    memory.borrow(Borrower(), 2, torch.empty(5, 3))
    for other in (copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
        assert other._block.numel() == 0
