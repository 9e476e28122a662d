"""The Celery application for `celery beat`: it lets the workers do what the coordinator does, once a minute.

    METAHARVEST_FILE=/var/lib/metaharvest/metaharvest.toml celery -A metaharvest.workers.beat beat

Several may run at once: a tick changes nothing twice.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from metaharvest.config.settings import load
from metaharvest.errors import MetaharvestError
from metaharvest.services.exit_codes import exit_code_of
from metaharvest.services.harvester import Harvester
from metaharvest.workers.broker import application

_file = os.environ.get("METAHARVEST_FILE")
try:
    app = application(Harvester(load(Path(_file) if _file else None)))
except MetaharvestError as error:
    print(error, file=sys.stderr)
    sys.exit(exit_code_of(error))
