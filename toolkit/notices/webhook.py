"""Posting JSON to a webhook, in bounded time, whatever the other side does."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

#: Seconds for one try, and for all of it: a name that is looked up for ever is given up then.
TRY_S, WHOLE_S = 5.0, 12.0
_TRIES = 2
#: Answers that may be others a moment later; any other refusal stays one.
_PASSING = (429, 500, 502, 503, 504)


def post(url: str, message: Mapping[str, Any], try_s: float = TRY_S, whole_s: float = WHOLE_S) -> str | None:
    """Post a message, trying a second time where that may help; return what went wrong, None if nothing did.

    The address, which is a secret, is never part of that. Returns after whole_s seconds at the latest: a
    thread that is not done by then is left alone.
    """
    if not url.lower().startswith(("http://", "https://")):
        return "the address is no http:// or https:// address"
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
    """What went wrong in one try, and whether another one would be in vain."""
    try:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=try_s):
            return None, True
    except urllib.error.HTTPError as error:
        error.close()
        return f"it answers {error.code} {error.reason}", error.code not in _PASSING
    except urllib.error.URLError as error:
        return f"it cannot be reached: {error.reason}", False
    except (OSError, http.client.HTTPException) as error:
        # Some of these name the address.
        return f"it does not answer: {type(error).__name__}", False
    except Exception as error:
        return f"{type(error).__name__}", True
