"""What processes compute in tests of those that end: some of it kills them."""

import os
import signal

DEADLY = "dies"


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def doubled(value):
    """Twice a number; "dies" never gives an answer, and the path of a file gives one from its second process on."""
    if value == DEADLY:
        die()
    if isinstance(value, str):
        if not os.path.exists(value):
            with open(value, "w"):
                pass
            die()
        return "survived"
    return 2 * value


def lengths(opening, rows):
    """In place of `predict_chunk`: the length of each SMILES; a deadly one kills."""
    if DEADLY in rows.smiles:
        die()
    return {"prediction": [len(each) for each in rows.smiles], "reason": list(rows.reasons)}
