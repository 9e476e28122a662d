"""The filters of the templates."""

from __future__ import annotations

from markupsafe import Markup

from metaharvest.web.console.rendering import templates


def test_each_cell_of_a_table_has_the_heading_of_its_column() -> None:
    rows = Markup('<tr>\n<td\n  class="name">alder</td><td>1</td></tr>')
    made = templates().from_string('{{ rows|labelled(["Site", "Actions"]) }}').render(rows=rows)
    assert made == '<tr>\n<td data-label="Site"\n  class="name">alder</td><td>1</td></tr>'
