"""The processing policy of a site, from its options, its files and the settings."""

from __future__ import annotations

from metaharvest.config.settings import Settings
from metaharvest.model import Site
from metaharvest.transform import read_filters, read_normalization
from metaharvest.validation import ProcessingPolicy


def processing_policy_of(site: Site, settings: Settings) -> ProcessingPolicy:
    """The processing policy of this site. Reads its files; raises TransformError if one of them is unusable."""
    options = settings.applied_to(site).options
    return ProcessingPolicy(
        options.package_id_mismatch or settings.validation.package_id_mismatch,
        options.validation,
        read_filters(options.filters) if options.filters else None,
        read_normalization(options.normalize) if options.normalize else None,
        settings.http.max_document_bytes,
    )
