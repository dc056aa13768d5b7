"""Posting JSON to a webhook, within a bounded time."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

#: Seconds for one try, and for all of it: also if the name look-up hangs.
TRY_S, WHOLE_S = 5.0, 12.0
_TRIES = 2
#: Status codes that may change on a second try.
_TEMPORARY = (429, 500, 502, 503, 504)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: that would be a GET without the message, to an address that the server chose."""

    def redirect_request(self, *_: Any) -> None:
        """Leave the answer as it is: an HTTPError."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def post(url: str, message: Mapping[str, Any], try_s: float = TRY_S, whole_s: float = WHOLE_S) -> str | None:
    """Post a message, with a second try after a temporary failure; return the error, or None.

    The address is a secret and never part of the result. Returns after at most whole_s seconds, even if the
    thread of the request still runs.
    """
    if not url.lower().startswith(("http://", "https://")):
        return "the address does not begin with http:// or https://"
    answers: queue.Queue[str | None] = queue.Queue()
    data = json.dumps(message, ensure_ascii=False).encode()
    threading.Thread(target=lambda: answers.put(_post(url, data, try_s)), name="webhook", daemon=True).start()
    try:
        return answers.get(timeout=whole_s)
    except queue.Empty:
        return f"no answer within {whole_s:g} s"


def _post(url: str, data: bytes, try_s: float) -> str | None:
    problem: str | None = None
    for _ in range(_TRIES):
        problem, is_final = _try(url, data, try_s)
        if problem is None or is_final:
            break
    return problem


def _try(url: str, data: bytes, try_s: float) -> tuple[str | None, bool]:
    """Return the error of one try, and whether a second try is useless."""
    try:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with _OPENER.open(request, timeout=try_s):
            return None, True
    except urllib.error.HTTPError as error:
        error.close()
        if 300 <= error.code < 400:
            return f"it answers {error.code} {error.reason}: the address has moved, set the new one", True
        return f"it answers {error.code} {error.reason}", error.code not in _TEMPORARY
    except urllib.error.URLError as error:
        return f"it cannot be reached: {error.reason}", False
    except (OSError, http.client.HTTPException) as error:
        # Some of these name the address.
        return f"it does not answer: {type(error).__name__}", False
    except Exception as error:
        return f"{type(error).__name__}", True
