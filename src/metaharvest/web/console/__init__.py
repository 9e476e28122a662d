"""The console: pages for the people who answer for a network, and for the contacts of its sites.

To add a page:

1. Write `pages/SUBJECT.py` with a function for each path: `def show(visit: Visit) -> Response`. It is plain code in a
   thread. It calls services/ and queries/ (`with visit.harvester.reading() as session:`), and ends with
   `visit.render("SUBJECT.html", **values)` or, after a POST, `visit.redirect("/console/...", notice="Sentence.")`.
2. Add a line for each path to PAGES in `access.py`, sorted by path: method, path, function, least role. `{site}` in a
   path is the name of a site: access is decided before the function is called, and `visit.site` is that site.
   CONTACT with `{site}` is for contacts of that site; viewers may read it (GET), stewards may also POST.
3. Write `templates/SUBJECT.html`: `{% extends "base.html" %}`, blocks `title` and `main`; `{% import "macros.html" as m
   with context %}` has tables, fields, button forms, badges, dates, pagers. Links are `link("/console/sites", name)`.
   No style or script in the page: the policy of the browser forbids both.
4. A GET changes nothing. A MetaharvestError becomes a page with its sentence; `visit.not_found("Sentence.")` a 404, and
   so does `with known("Sentence."): ...` if the block reads a thing that is not there.
   After `with visit.mistakes(): ...` the function renders the form again, which shows the mistake with the status 422.
5. A remedy: `{% import "actions.html" as a with context %}`, `{{ a.remedy(finding.remedy) }}`: its actions are links
   and buttons where the role may carry them out. `visit.may_open(path, *parts, method="POST")` says whether
   a button is shown.
6. Live numbers: put them into a fragment, `visit.render_fragment("FRAGMENT.html", ...)` at a path of its own, and
   poll it: `<div hx-get="{{ link("/console/runs", id, "live") }}" hx-trigger="every 2s">` around the same include.
7. Test it with `support.console`: `with served_console(harvester) as console: page = console.signed_in("steward").open(
   "/console/sites")`, then `page.submit(...)`. tests/web/console/test_users_page.py is an example.
"""
