"""Makes the tables of a GMN, and lets the subjects in the arguments create, update and archive."""

import sys

import django
from django.core.management import call_command

django.setup()
call_command("migrate", run_syncdb=True, verbosity=0)

from d1_gmn.app import models

for each in sys.argv[1:]:
    subject, _ = models.Subject.objects.get_or_create(subject=each)
    models.WhitelistForCreateUpdateDelete.objects.get_or_create(subject=subject)
