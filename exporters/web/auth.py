"""Basic authentication against bcrypt hashes, at a cost that nobody can make the scrapes pay.

bcrypt is slow by design: one check runs at a time, each pair of name and password once, and only so many
wait. Answers are remembered, right and wrong ones apart, so that a flood of guesses pushes no scraper out.
"""

import asyncio
import base64
import binascii
import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import bcrypt

_REMEMBERED: Final = 256
_WAITING: Final = 16
_BCRYPT_LIMIT_BYTES: Final = 72


class TooManyWaiting(Exception):  # noqa: N818 - an answer, not a bug
    """More passwords are waiting to be checked than may wait."""


class PasswordCheck:
    """Checks Authorization headers; one event loop at a time."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, bool] = OrderedDict()
        self._wrong: OrderedDict[bytes, bool] = OrderedDict()
        self._running: dict[bytes, asyncio.Future[bool]] = {}

    async def allows(self, authorization: str, users: Mapping[str, str]) -> bool:
        """Return whether the header names one of ``users`` (bcrypt hashes by name) with its password.

        An unknown user takes as long as a wrong password.

        Raises:
            TooManyWaiting: the answer is not known yet and cannot be found out now.
        """
        given = _credentials(authorization)
        if given is None:
            return False
        user, password = given
        known = users.get(user)
        digest = self._digest(user, password, known or "")
        if digest in self._right:
            self._right.move_to_end(digest)
            return True
        if digest in self._wrong:
            return False
        answer = self._running.get(digest) or self._begin(digest, password, known or _decoy(users))
        return await asyncio.shield(answer) and known is not None

    def _begin(self, digest: bytes, password: bytes, hashed: str) -> asyncio.Future[bool]:
        if len(self._running) >= _WAITING:
            raise TooManyWaiting(f"{_WAITING} passwords are being checked")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()
        self._running[digest] = answer
        answer.add_done_callback(lambda done: self._remember(digest, done))

        def check() -> None:
            with self._turn:
                matches = _matches(password, hashed.encode())
            with suppress(RuntimeError):  # the loop has closed: nobody waits for the answer
                loop.call_soon_threadsafe(answer.set_result, matches)

        threading.Thread(target=check, name="bcrypt", daemon=True).start()
        return answer

    def _remember(self, digest: bytes, answer: asyncio.Future[bool]) -> None:
        self._running.pop(digest, None)
        memory = self._right if answer.result() else self._wrong
        memory[digest] = True
        if len(memory) > _REMEMBERED:
            memory.popitem(last=False)

    def _digest(self, user: str, password: bytes, hashed: str) -> bytes:
        parts = (user.encode("utf-8", "surrogatepass"), hashed.encode(), password)
        digest = hashlib.blake2b(key=self._key)
        for part in parts:
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return digest.digest()


def _credentials(authorization: str) -> tuple[str, bytes] | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None


def _matches(password: bytes, hashed: bytes) -> bool:
    try:
        return bcrypt.checkpw(password[:_BCRYPT_LIMIT_BYTES], hashed)
    except ValueError:
        return False


def _decoy(users: Mapping[str, str]) -> str:
    """Return a hash that no password is known for, as costly as the costliest of ``users``."""
    cost = max(hashed.split("$")[2] for hashed in users.values())
    return f"$2b${cost}$" + "." * 53
