"""Schemas compile whichever thread comes first, and whatever others parse meanwhile.

Both races are lost in the first moments of a process only, and not every time: hence new processes, several of them.
"""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

COMPILE = """
import threading
from metaharvest.validation import schemas
from metaharvest.validation.schemas import VERSIONS

together, failed = threading.Barrier(8), []

def begin(number):
    together.wait()
    try:
        schemas.compile_schema(list(VERSIONS.values())[number % 5])
    except Exception as error:
        failed.append(error)
"""
CHECK = """
import threading, time
from metaharvest.model import Level, ListedDocument
from metaharvest.validation.validator import Validator

validator, failed, namespace = Validator(), [], "eml://ecoinformatics.org/eml-2.1.1"
document = ListedDocument("a.1", 1, namespace, "https://example.org/a.1.1.xml")
party = "<organizationName>Station</organizationName>"
dataset = f"<dataset><title>T</title><creator>{party}</creator><contact>{party}</contact></dataset>"
content = f'<e:eml xmlns:e="{namespace}" packageId="a.1.1" system="s">{dataset}</e:eml>'.encode()

def begin(number):
    time.sleep(number * 0.004)
    try:
        for _ in range(150):
            assert validator.check(content, document).findings == ()
    except Exception as error:
        failed.append(error)
"""
RUN = """
threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed or "all well")
"""


@pytest.mark.parametrize("program", [COMPILE, CHECK], ids=["compile together", "compile while others check"])
def test_the_first_moments_of_a_process_are_safe_for_threads(program: str) -> None:
    for _ in range(8):
        done = subprocess.run([sys.executable, "-c", program + RUN], capture_output=True, text=True, check=False)
        assert done.stdout == "all well\n", done.stdout + done.stderr
