"""metaharvest: harvests metadata documents from the sites that publish them into a central repository."""

__version__ = "0.3.0"
