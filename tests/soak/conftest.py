"""What the soak tests need: how often to kill, chance that can be repeated, and time."""

import random
import secrets
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Four minutes for each test, and a minute more a kill."""
    seconds = 240 + 60 * config.getoption("--soak-kills")
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker(pytest.mark.timeout(seconds))
            item.add_marker(pytest.mark.long)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--soak-kills"))


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Chance, the same again for the same --soak-seed; the seed is printed with a test that fails."""
    seed = request.config.getoption("--soak-seed") or secrets.randbelow(10**9)
    print(f"--soak-seed {seed}")
    return random.Random(seed)
