"""What is done with documents in targets: copied into another one, given to another site, withdrawn."""

from __future__ import annotations

from metaharvest.harvest import withdrawing
from metaharvest.harvest.context import Progress
from metaharvest.harvest.copied import PROBLEMS, CopyOutcome, CopyRequest, CopyResult, NotCopied, Told
from metaharvest.harvest.copying import copy_documents
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.harvest.transferring import Transfer, TransferRequest
from metaharvest.harvest.transferring import transfer as transfer_documents
from metaharvest.harvest.withdrawing import AtTarget, WithdrawalRequest, Withdrawn
from metaharvest.services.harvester import Harvester

__all__ = [
    "PROBLEMS",
    "AtTarget",
    "CopyOutcome",
    "CopyRequest",
    "CopyResult",
    "NotCopied",
    "Told",
    "Transfer",
    "TransferRequest",
    "WithdrawalRequest",
    "Withdrawn",
]


def copy(
    harvester: Harvester,
    request: CopyRequest,
    told: Told = lambda revision: None,
    progress: Progress | None = None,
    stop: StopSignal | None = None,
) -> CopyResult:
    """Copy documents from one target into another, under the run lock; what it raises is said by the function.

    `told` hears of each revision that is not in the target as the source has it.
    """
    to_tell, to_heed = progress or Progress(), stop or StopSignal()
    return copy_documents(harvester.engine, harvester.targets, request, harvester.now, to_tell, told, to_heed)


def transfer(harvester: Harvester, wanted: TransferRequest) -> list[Transfer]:
    """Let documents belong to another site from now on, and log it; what it raises is said by the function."""
    return transfer_documents(harvester.engine, harvester.targets, wanted, harvester.today(), harvester.now())


def withdraw(harvester: Harvester, request: WithdrawalRequest, *, undo: bool = False) -> Withdrawn:
    """Withdraw a document, or take that back, under the run lock; what it raises is said by the functions."""
    do = withdrawing.take_back if undo else withdrawing.withdraw
    return do(harvester.engine, harvester.targets, request, harvester.today(), harvester.now())
