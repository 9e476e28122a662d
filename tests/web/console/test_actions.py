"""The actions of remedies: links and buttons for readers who may carry them out."""

from __future__ import annotations

import pytest

from metaharvest.model.actions import ACTIONS, Remedy, todo
from metaharvest.web.console.actions import AFTER_A_QUESTION, AT_ONCE, PAGES_OF, Offer, offer, offers
from metaharvest.web.console.pages import confirmation


def everything(*_address: str, method: str = "GET") -> bool:
    return True


def nothing(*_address: str, method: str = "GET") -> bool:
    return False


def test_a_remedy_becomes_words_and_buttons() -> None:
    text = Remedy(
        "If it is right, {}; otherwise {}.", todo("sites.harvest", name="a b"), todo("sites.edit", name="a b")
    )
    assert list(offers(text, everything)) == [
        Offer("If it is right, "),
        Offer("ask for the harvest of the site a b", ("/console/actions", "sites.harvest"), {"name": "a b"}, True),
        Offer("; otherwise "),
        Offer("change the site a b", ("/console/sites", "a b")),
        Offer("."),
    ]


def test_readers_who_may_not_do_it_get_the_command() -> None:
    expected = Offer("confirm the deletions of the site alder", command="metaharvest sites confirm alder")
    assert offer(todo("sites.confirm", name="alder"), nothing) == expected


@pytest.mark.parametrize("action", ["sites.confirm", "sites.edit"])
def test_an_action_without_its_value_is_no_button(action: str) -> None:
    assert not offer(todo(action), everything).address


def test_an_action_that_cannot_be_taken_back_is_a_link_to_its_question() -> None:
    found = offer(todo("runs.remove", run_id=7), everything)
    assert (found.address, found.query, found.is_button) == (
        ("/console/actions", "runs.remove"),
        {"run_id": "7"},
        False,
    )


def test_each_action_is_known_and_has_one_way() -> None:
    buttons = AT_ONCE | AFTER_A_QUESTION
    assert buttons == set(confirmation.HANDLERS)
    assert set(confirmation.EFFECTS) == AFTER_A_QUESTION
    assert not buttons & set(PAGES_OF)
    assert buttons | set(PAGES_OF) <= set(ACTIONS)
