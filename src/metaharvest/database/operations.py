"""The operations of the log: the rows of harvest_operation."""

from __future__ import annotations

PIPELINE_ERROR = "PipelineError"

OPERATIONS: dict[str, tuple[str, str]] = {
    "HarvesterStartup": ("info", "A run began"),
    "HarvesterShutdown": ("info", "A run ended"),
    "RunInterrupted": ("error", "A run did not come to its end"),
    "RequestTaken": ("info", "The run took a request of a person"),
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
    "IdentifySuccess": ("debug", "The repository said what it is"),
    "IdentifyError": ("error", "The repository did not say what it is"),
    "RepositoryChanged": ("warning", "The repository is not as it was at the last harvest"),
    "ListRecordsSuccess": ("debug", "The repository listed its records"),
    "ListRecordsWarning": ("warning", "The repository listed its records, but something about them is doubtful"),
    "ListRecordsError": ("error", "The repository did not list its records to the end"),
    "DocMissing": ("warning", "The repository no longer names documents that it named before"),
    "DocDeleted": ("info", "The document was deleted"),
    "DocDeleteError": ("error", "The document could not be deleted"),
    "DocFiltered": ("info", "A filter of the site left the document out"),
    "DocDeferred": ("warning", "The document was put off to a later run"),
    "DocStale": ("warning", "The list names a revision below the target's"),
    "DocDuplicate": ("warning", "The list names the same docid again"),
    "UploadUnconfirmed": ("warning", "It is not known whether an upload arrived"),
    "ReportQueued": ("info", "A report was put into the outbox"),
    PIPELINE_ERROR: ("error", "The pipeline did not come to its end after the run"),
    "LogPurged": ("info", "Old log rows were deleted"),
    "LogNotPurged": ("warning", "Old log rows were kept, as the clock may be wrong"),
}
"""Operation code -> (level, explanation): the codes of the original Harvester, and codes of new operations."""
