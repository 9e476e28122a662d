"""GMN for gunicorn, with the three ways to log in that member nodes have.

GMN takes client certificates from Apache alone, and its code for bearer tokens cannot be reached. Here a certificate is
taken from gunicorn's connection, a token is verified as Metacat does (with a secret in place of DataONE's key), and
whoever comes to the port GMN_OPEN_PORT is trusted.
"""

import logging
import os
import signal
import ssl
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import gmn_settings
import jwt

# d1_gmn.wsgi insists on settings of this name.
sys.modules["d1_gmn.settings"] = gmn_settings

from d1_gmn.app.middleware import session_jwt
from d1_gmn.wsgi import application as gmn


def _subjects(request):
    if request.META["SERVER_PORT"] == os.environ.get("GMN_OPEN_PORT"):
        return [os.environ["GMN_TRUSTED_SUBJECT"]]
    kind, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if kind != "Bearer":
        return []
    try:
        return [jwt.decode(token, os.environ["GMN_TOKEN_SECRET"], algorithms=["HS256"])["sub"]]
    except jwt.InvalidTokenError as error:
        # As with Metacat, a token that does not hold makes its owner one of the public.
        logging.warning("A token does not hold: %s", error)
        return []


session_jwt.validate_jwt_and_get_subject_list = _subjects


def _end_with_the_tests():
    """Their end of the pipe is closed when they end, however they do."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


threading.Thread(target=_end_with_the_tests, daemon=True).start()


def application(environ, start_response):
    connection = environ.get("gunicorn.socket")
    if isinstance(connection, ssl.SSLSocket) and (certificate := connection.getpeercert(True)):
        environ["SSL_CLIENT_CERT"] = ssl.DER_cert_to_PEM_cert(certificate)
    return gmn(environ, start_response)
