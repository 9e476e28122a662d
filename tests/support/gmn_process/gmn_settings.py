"""Django's settings for a GMN that is thrown away after the tests; its folder and database are in the environment."""

import os
from pathlib import Path

from d1_gmn.app.settings_default import *  # noqa: F403

_HOME = Path(os.environ["GMN_HOME"])

DEBUG = DEBUG_GMN = False
STAND_ALONE = True
STATIC_SERVER = True
UNSAFE_SETTING_WARNINGS = False
ALLOWED_HOSTS = ["*"]
SECRET_KEY = "of a node that is thrown away"
SECRET_KEY_PATH = str(_HOME / "secret_key.txt")

NODE_IDENTIFIER = "urn:node:mnMetaharvest"
NODE_NAME = "A node for tests"
NODE_DESCRIPTION = "Holds what the tests of metaharvest put into it."
NODE_BASEURL = os.environ["GMN_URL"]
NODE_SUBJECT = "CN=urn:node:mnMetaharvest,DC=dataone,DC=org"
NODE_CONTACT_SUBJECT = "CN=contact,DC=example,DC=org"

# Without a certificate that can be read, GMN takes no notice of the subjects below.
CLIENT_CERT_PATH = str(_HOME / "node.pem")
CLIENT_CERT_PRIVATE_KEY_PATH = str(_HOME / "node.key")
DATAONE_TRUSTED_SUBJECTS = {os.environ["GMN_TRUSTED_SUBJECT"]}

OBJECT_STORE_PATH = str(_HOME / "store" / "objects")
OBJECT_FORMAT_CACHE_PATH = str(_HOME / "object_formats.json")
SCIMETA_VALIDATION_ENABLED = True

# GMN's own default names an engine that Django no longer has.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["GMN_DATABASE"],
        "USER": os.environ["GMN_DATABASE_USER"],
        "PASSWORD": os.environ["GMN_DATABASE_PASSWORD"],
        "HOST": os.environ["GMN_DATABASE_HOST"],
        "PORT": os.environ["GMN_DATABASE_PORT"],
        "ATOMIC_REQUESTS": True,
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "loggers": {"": {"handlers": ["stderr"], "level": "WARNING"}},
}
