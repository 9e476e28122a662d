"""The operations that the log knows: the rows of harvest_operation."""

from __future__ import annotations

OPERATIONS: dict[str, tuple[str, str]] = {
    "HarvesterStartup": ("info", "A run began"),
    "HarvesterShutdown": ("info", "A run ended"),
    "RunInterrupted": ("error", "A run did not come to its end"),
    "SiteError": ("error", "A site could not be harvested at all"),
    "TargetError": ("error", "The target stopped answering"),
    "GetHarvestListSuccess": ("debug", "The harvest list was fetched"),
    "GetHarvestListError": ("error", "The harvest list could not be fetched"),
    "ValidateHarvestListSuccess": ("debug", "The harvest list is valid"),
    "ValidateHarvestListWarning": ("warning", "The harvest list is valid, but doubtful"),
    "ValidateHarvestListError": ("error", "The harvest list is not valid"),
    "HarvestListUnchanged": ("info", "The harvest list is the one of the last harvest"),
    "GetDocSuccess": ("debug", "The document was fetched"),
    "GetDocError": ("error", "The document could not be fetched"),
    "ValidateDocSuccess": ("debug", "The document is valid"),
    "ValidateDocWarning": ("warning", "The document is valid, but doubtful"),
    "ValidateDocError": ("error", "The document is not valid"),
    "MetacatHasDoc": ("info", "The target had these documents already"),
    "InsertDocSuccess": ("info", "The document was inserted"),
    "InsertDocError": ("error", "The document could not be inserted"),
    "UpdateDocSuccess": ("info", "The document was updated"),
    "UpdateDocError": ("error", "The document could not be updated"),
    "DocDeferred": ("warning", "The document was put off to a later run"),
    "DocStale": ("warning", "The list names a revision below the target's"),
    "DocDuplicate": ("warning", "The list names the same docid again"),
    "UploadUnconfirmed": ("warning", "It is not known whether an upload arrived"),
    "ReportQueued": ("info", "A report was put into the outbox"),
    "LogPurged": ("info", "Old log rows were deleted"),
}
"""Operation code -> (level, explanation): those of the original Harvester, and further ones for what it did not do."""
