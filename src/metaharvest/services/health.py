"""The health of an installation: what is missing, wrong or overdue."""

from metaharvest.monitoring.check import Check
from metaharvest.monitoring.doctor import examine

__all__ = ["Check", "examine"]
