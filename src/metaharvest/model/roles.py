"""The roles of people and programs in the console and the API."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """What a person may do: each role may do everything that the roles before it may.

    A contact acts for their own sites only; a viewer sees all sites; a steward changes sites and decides; an operator
    also makes users and keys. PUBLIC is everybody, without an account.
    """

    PUBLIC = 0
    CONTACT = 1
    VIEWER = 2
    STEWARD = 3
    OPERATOR = 4

    @property
    def word(self) -> str:
        """The role as it is stored and shown."""
        return self.name.lower()


GRANTED = (Role.VIEWER, Role.STEWARD, Role.OPERATOR)
"""The roles that a user or a key can be given."""


def role_of(word: str) -> Role | None:
    """The granted role with this word, or None."""
    return next((role for role in GRANTED if role.word == word), None)
