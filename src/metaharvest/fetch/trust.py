"""The authorities by which the certificates of web servers are judged: the system's, the settings', a site's own."""

from __future__ import annotations

from pathlib import Path

from metaharvest.config.trust_store import BadAuthorities, configured_authorities, read_authorities, system_trust
from metaharvest.errors import NotAsked
from metaharvest.model import Finding
from metaharvest.model.actions import Remedy, todo


class Trust:
    """The authorities that are trusted: the system's, those in the settings' file, and for one site those in its own.

    Raises SettingsError if the settings' file cannot be used.
    """

    def __init__(self, ca_file: Path | None) -> None:
        self._trusted: dict[Path | None, Path | bytes] = {None: system_trust()}
        if ca_file is not None:
            self._trusted[None] = system_trust().read_bytes() + b"\n" + configured_authorities(ca_file)

    def of(self, ca_file: Path | None) -> Path | bytes:
        """The authorities for a site with this file. Raises NotAsked if it cannot be used: the server did not fail."""
        if ca_file not in self._trusted:
            all_sites = self._trusted[None]
            try:
                own = read_authorities(ca_file) if ca_file else b""
            except BadAuthorities as error:
                message = f"The certificate authorities that are set for this site cannot be used: {error}."
                check = todo("installation.check")
                remedy = Remedy("The harvester's administrator has to see to it: {} names the file.", check)
                raise NotAsked(Finding("site.ca-file", message, remedy), "", seconds=0.0) from error
            known = all_sites.read_bytes() if isinstance(all_sites, Path) else all_sites
            self._trusted[ca_file] = known + b"\n" + own
        return self._trusted[ca_file]
