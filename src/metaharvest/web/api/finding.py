"""The operations for readers: search, outputs, works, related outputs. They need no key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from metaharvest.errors import IndexUnavailable, NoIndex, QueryError, UnknownDocument
from metaharvest.services.search import FACETS, Question
from metaharvest.web.api.call import Answer, Call
from metaharvest.web.api.problems import Problem
from metaharvest.web.readers import Readers
from metaharvest.web.turns import Busy


def search(call: Call) -> Answer:
    """The outputs that a query finds, with the values of facets."""
    query = call.query
    values = {name: (value,) for name in FACETS if name != "year" and (value := getattr(query, name)) is not None}
    question = Question(query.q, values, query.year or "", query.sort, query.limit, query.cursor)
    with _reading(call) as readers:
        found = readers.searching.search(question)
        outputs = [readers.with_url(each) for each in found.outputs]
    data = {"total": found.total, "outputs": outputs, "facets": found.facets, "advice": found.advice}
    return Answer(data, found.next_cursor)


def output(call: Call) -> Answer:
    """All that is known of an output."""
    with _reading(call) as readers:
        return Answer(readers.with_url(readers.searching.output(call.path["document"])))


def work(call: Call) -> Answer:
    """A work with its outputs."""
    number = call.number("work", "work")
    with _reading(call) as readers:
        found = readers.searching.work(number)
        return Answer({**found, "outputs": [readers.with_url(each) for each in found["outputs"]]})


def recommend(call: Call) -> Answer:
    """Outputs that are related to one."""
    with _reading(call) as readers:
        found = readers.searching.recommend(call.path["document"], call.query.limit)
        return Answer([readers.with_url(each) for each in found])


@contextmanager
def _reading(call: Call) -> Iterator[Readers]:
    """The search, in the turn of this client. Its errors become problems."""
    readers = call.readers
    try:
        with readers.turn(call.client):
            yield readers
    except Busy as error:
        detail = "Many searches are under way. Please try again."
        raise Problem(503, detail, kind="index", headers={"Retry-After": "5"}) from error
    except QueryError as error:
        raise Problem(400, str(error)) from error
    except UnknownDocument as error:
        raise Problem(404, str(error)) from error
    except NoIndex as error:
        raise Problem(503, str(error), kind="index", headers={"Retry-After": "300"}) from error
    except IndexUnavailable as error:
        detail = "The search does not work at this moment. Please try again."
        raise Problem(503, detail, kind="index", headers={"Retry-After": "60"}) from error
