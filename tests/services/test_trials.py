"""The places for rehearsals of strangers."""

from __future__ import annotations

import threading

import pytest

from metaharvest.errors import RequestError
from metaharvest.services import trials


def test_few_requests_wait_for_a_place_and_others_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_PATIENCE", 120)
    release, refused = threading.Event(), threading.Event()
    served: list[bool] = []

    def rehearse() -> None:
        try:
            with trials.place():
                release.wait(120)
                served.append(True)
        except RequestError:
            refused.set()

    threads = [threading.Thread(target=rehearse) for _ in range(12)]
    for thread in threads:
        thread.start()
    assert refused.wait(60)  # while the others hold their places, or wait for one
    release.set()
    for thread in threads:
        thread.join()
    assert len(served) == 11
