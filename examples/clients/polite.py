"""Fetches URLs politely: asks the service for a turn, fetches, and tells the service how the site answered.

Usage: python3 polite.py URL …      POLITELY_URL and POLITELY_TOKEN say where the service is and who asks.
"""

import json
import os
import sys
import urllib.error
import urllib.request

SERVICE = os.environ.get("POLITELY_URL", "http://127.0.0.1:8787")
TOKEN = os.environ.get("POLITELY_TOKEN")
HOLD_MS = 600_000  # longer than any page takes; a turn is free again after it, whatever became of who asked


class EachHopItsOwnTurn(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


SITE = urllib.request.build_opener(EachHopItsOwnTurn)


def ask(path, **question):
    headers = {"Content-Type": "application/json"}
    if TOKEN:
        headers["Authorization"] = f"Bearer {TOKEN}"
    request = urllib.request.Request(SERVICE + path, json.dumps(question).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or "null")


def polite_get(url):
    """Waits for the site's turn and gives status and body."""
    request = urllib.request.Request(url)  # what is no URL needs no turn
    permit = ask("/v1/acquire", domain=url, ttlMs=HOLD_MS)["permit"]
    outcome = {"outcome": "server_error"}
    try:
        try:
            answer = SITE.open(request, timeout=60)
        except urllib.error.HTTPError as error:  # 3xx, 4xx and 5xx are answers too
            answer = error
        with answer:
            outcome = {"status": answer.status, "headers": dict(answer.headers)}
            return answer.status, answer.read()
    finally:
        try:
            ask("/v1/release", permit=permit, **outcome)
        except Exception as problem:  # the page is there all the same
            print("not released", url, problem, file=sys.stderr)


if __name__ == "__main__":
    for page in sys.argv[1:]:
        try:
            print(polite_get(page)[0], page)
        except Exception as problem:  # no turn, or no answer: the next one goes on
            print("failed", page, problem)
