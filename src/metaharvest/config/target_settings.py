"""The sections [target], [targets.NAME] and [sites."NAME".target]: the targets, and how to reach them.

A site's own section changes single keys of [target]; if it names another kind, it stands alone. `NamedTargets` are the
targets as reports name them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from metaharvest.config import field_types
from metaharvest.model.values import frozen
from metaharvest.text import joined, one_line

_REACHED = frozenset(("url", "certificate", "key", "ca_file", "proxy", "proxy_password")) | frozenset(
    ("connect_timeout", "read_timeout", "deadline", "uploads_at_once")
)
_DESCRIBED = frozenset(
    ("checksum_algorithm", "format_id", "rights_holder", "submitter", "read", "write", "change_permission")
)
KEYS_OF_KINDS: Mapping[str, frozenset[str]] = {
    "embedded": frozenset(),
    "none": frozenset(),
    "folder": frozenset({"folder", "layout", "files_per_folder"}),
    "metacat": _REACHED | {"username", "password", "read"},
    "dataone": _REACHED | _DESCRIBED | {"token"},
}
"""The keys that the kinds of this program use, beside `kind`; a kind of another distribution uses its own."""

LOCAL_KINDS = frozenset({"embedded", "none", "folder"})
"""Kinds of targets that are part of this program and use no other computer."""

_REQUIRED = {"folder": "folder", "metacat": "url", "dataone": "url"}


class TargetSettings(BaseModel):
    """A target that receives documents. Times are in seconds; `token`, `password` are secret references.

    `read`, `write` and `change_permission` are the subjects to which a DataONE access policy grants that; `public` is
    everybody. `options` are for kinds that other distributions add.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    kind: field_types.TargetKind = "embedded"
    url: field_types.WebAddress = ""
    token: field_types.SecretReference = ""
    username: str = ""
    password: field_types.SecretReference = ""
    certificate: field_types.LocalPath | None = None
    key: field_types.LocalPath | None = None
    ca_file: field_types.LocalPath | None = None
    proxy: field_types.ProxyUrl = ""
    proxy_password: field_types.SecretReference = ""
    connect_timeout: field_types.FiniteSeconds = 10
    read_timeout: field_types.FiniteSeconds = 60
    deadline: field_types.Seconds = 300
    uploads_at_once: Annotated[int, Field(ge=1, le=64)] = 4
    checksum_algorithm: Literal["MD5", "SHA-1", "SHA-256"] = "SHA-1"
    format_id: str = ""
    rights_holder: str = ""
    submitter: str = ""
    read: field_types.Texts = ("public",)
    write: field_types.Texts = ()
    change_permission: field_types.Texts = ()
    folder: field_types.LocalFolder = None
    layout: Literal["tree", "flat"] = "tree"
    files_per_folder: field_types.Positive = 5000
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _keys_fit_the_kind(self) -> TargetSettings:
        known = KEYS_OF_KINDS.get(self.kind)
        # For a rehearsal, only the word for the kind has to be changed.
        if known is None or self.kind == "none":
            return self
        if unused := sorted(self.model_fields_set - known - {"kind"}):
            uses = f"it uses {', '.join(sorted(known))}" if known else "it needs no other key"
            mean = "means" if len(unused) == 1 else "mean"
            raise ValueError(f"{' and '.join(unused)} {mean} nothing to the kind '{self.kind}': {uses}")
        required = _REQUIRED.get(self.kind)
        if required and not getattr(self, required):
            raise ValueError(f"the kind '{self.kind}' needs {required}")
        if self.key is not None and self.certificate is None:
            raise ValueError("key is set, but certificate is not")
        return self


def _not_reserved(targets: dict[str, TargetSettings]) -> dict[str, TargetSettings]:
    """Raises ValueError for a name that means another target in commands."""
    for name in ("target", "embedded"):
        if name in targets:
            means = "the one in [target]" if name == "target" else "the embedded one"
            raise ValueError(f"give [targets.{name}] another name: commands call {means} so")
    return targets


TargetsByName = Annotated[dict[str, TargetSettings], AfterValidator(_not_reserved)]
"""The sections [targets.NAME], by name."""


def with_target_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """The raw settings with each site's own target section completed from [target], where that is of the same kind."""
    target, sites = values.get("target", {}), values.get("sites", {})
    if not isinstance(target, dict) or not isinstance(sites, dict):
        return dict(values)
    completed = {
        name: {**site, "target": _completed(target, site["target"])}
        if isinstance(site, dict) and isinstance(site.get("target"), dict)
        else site
        for name, site in sites.items()
    }
    return {**values, "sites": completed}


def _completed(target: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = target.get("kind", "embedded")
    return own if own.get("kind", kind) != kind else {**target, **own}


@frozen
class NamedTarget:
    """A target in a few words. `keeps` is false if it only looks at documents, and forgets them."""

    words: str
    keeps: bool = True


@frozen
class NamedTargets:
    """The targets by the names of their sites; `default` is the target of all others, and of the run as a whole."""

    default: NamedTarget
    of_sites: Mapping[str, NamedTarget] = field(default_factory=dict)

    def of(self, site_name: str) -> NamedTarget:
        """The target of the site of this name."""
        return self.of_sites.get(site_name, self.default)

    def describe(self, site_names: Iterable[str]) -> str:
        """The target, and those that some of these sites have for themselves."""
        own = [f"{name}: {self.of_sites[name].words}" for name in sorted(set(site_names) & set(self.of_sites))]
        return one_line("; ".join([self.default.words, *own]), 1000)

    def went_nowhere(self, site_names: Collection[str]) -> str:
        """A sentence about the sites without a target; empty if there are none."""
        names = sorted(name for name in set(site_names) if not self.of(name).keeps)
        if not names:
            return ""
        whose = "" if len(names) == len(set(site_names)) else f" of {one_line(joined(names), 300)}"
        return f"Nothing{whose} was uploaded: no repository is set, so documents were only fetched and checked."
