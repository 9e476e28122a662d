"""The open problems of one site: worst first, by pages."""

from __future__ import annotations

from datetime import date

from metaharvest.database.engine import readers, writers
from metaharvest.database.models import HarvestDocument, SiteProblem
from metaharvest.queries.problems import SiteProblemNumbers, site_problem_numbers, site_problems
from support.harvester import Harvester


def a_problem(number: int, day: int, *, attention: bool = True, site: int = 1, state: str = "open") -> SiteProblem:
    return SiteProblem(
        site_schedule_id=site,
        fingerprint=str(number),
        document_id=f"a.{number}" if number else None,
        rule="eml.title",
        needs_attention=attention,
        detail_log_id=number,
        state=state,
        first_seen=date(2026, 11, day),
        first_site_run=1,
        last_seen=date(2026, 11, 20),
        last_site_run=1,
        nights=1,
    )


def test_problems_that_keep_documents_out_come_first_and_the_oldest_of_them(harvester: Harvester) -> None:
    with writers(harvester.engine).begin() as session:
        session.add_all([a_problem(1, 5, attention=False), a_problem(2, 9), a_problem(3, 7), a_problem(4, 7)])
        session.add_all([a_problem(5, 1, state="fixed"), a_problem(6, 1, site=2), a_problem(7, 2, attention=False)])
        session.add(
            HarvestDocument(
                site_schedule_id=1, document_id="a.3", revision=1, document_url="u", document_type="t", title="Frogs"
            )
        )
    with readers(harvester.engine)() as session:
        every = site_problems(session, 1)
        assert [each.document_id for each in every] == ["a.3", "a.4", "a.2", "a.7", "a.1"]
        assert (every[0].title, every[1].title, every[0].message) == ("Frogs", None, None)
        assert site_problem_numbers(session, 1) == SiteProblemNumbers(3, 2)
        for size in (1, 2, 3):
            found, after = list[str | None](), None
            while page := site_problems(session, 1, size, after):
                found += [each.document_id for each in page]
                after = page[-1].problem_id
            assert found == ["a.3", "a.4", "a.2", "a.7", "a.1"]
