"""What a worker of the tests computes: the length of each text; "slow" takes long, "dies" ends the process."""

import os
import time

from ckgconv.checks import InputError


def lengths(smiles):
    for each in smiles:
        if each.startswith("slow"):
            time.sleep(600)
        if each == "dies":
            os._exit(1)
    return [{"smiles": each, "length": len(each)} for each in smiles]


def refuses(sentence):
    raise InputError(sentence)


def fails():
    raise ZeroDivisionError


def opens():
    return {"predict": lengths, "refuse": refuses, "fail": fails, "process": os.getpid}
