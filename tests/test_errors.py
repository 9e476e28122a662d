"""The sentence about a library that is not installed."""

from __future__ import annotations

import pytest

from metaharvest.errors import MetaharvestError, library_errors


@pytest.mark.parametrize(
    ("modules", "missing"), [((), "dateutil"), (("celery",), "celery"), (("celery",), "celery.app")]
)
def test_a_missing_library_is_a_sentence(modules: tuple[str, ...], missing: str) -> None:
    with pytest.raises(MetaharvestError) as caught, library_errors("workers", "workers need", *modules):
        raise ModuleNotFoundError(name=missing)
    assert str(caught.value) == (
        f"The library {missing} is not installed, which workers need. "
        "Install it with `pip install 'metaharvest[workers]'`."
    )


def test_a_module_that_is_not_named_is_an_error_of_the_program() -> None:
    with pytest.raises(ModuleNotFoundError), library_errors("workers", "workers need", "celery"):
        raise ModuleNotFoundError(name="metaharvest.gone")
