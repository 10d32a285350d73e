"""Passwords: who is let in, what is remembered, and what a flood of guesses costs."""

import asyncio
import base64
import threading
from collections.abc import Mapping

import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.web import auth
from exporters.web.auth import PasswordCheck, TooManyWaiting

USERS = {"alice": bcrypt.hashpw(b"wonderland", bcrypt.gensalt(4)).decode()}


def basic(user: str, password: str) -> str:
    """Return the Authorization header of a user and a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def allows(check: PasswordCheck, header: str, users: Mapping[str, str] = USERS) -> bool:
    """Return what the check says, on a loop of its own."""
    return asyncio.run(check.allows(header, users))


def test_the_right_password_is_let_in_and_remembered() -> None:
    """The second time costs nothing: bcrypt is not asked."""
    check = PasswordCheck()
    assert allows(check, basic("alice", "wonderland"))
    threads = threading.active_count()
    assert allows(check, basic("alice", "wonderland"))
    assert threading.active_count() <= threads


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"no colon").decode(),
        "Basic " + base64.b64encode(b"\xff\xfe:x").decode(),
        "Bearer " + base64.b64encode(b"alice:wonderland").decode(),
        basic("alice", ""),
        basic("alice", "Wonderland"),
        basic("bob", "wonderland"),
        basic("", "wonderland"),
        basic("alice", "nul\0byte"),
    ],
)
def test_everything_else_is_refused_every_time(header: str) -> None:
    """A wrong answer is remembered as wrong."""
    check = PasswordCheck()
    assert not allows(check, header)
    assert not allows(check, header)


def test_the_hash_of_other_tools_is_understood() -> None:
    """The prefix $2y$ is that of htpasswd."""
    users = {"alice": USERS["alice"].replace("$2b$", "$2y$")}
    assert allows(PasswordCheck(), basic("alice", "wonderland"), users)


def test_a_long_password_counts_as_far_as_bcrypt_looks() -> None:
    """72 bytes, as every implementation of bcrypt does it."""
    users = {"alice": bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()}
    assert allows(PasswordCheck(), basic("alice", "x" * 100), users)


def test_a_changed_password_counts_at_once() -> None:
    """What is remembered belongs to the hash, so that a reload takes the old password away."""
    check = PasswordCheck()
    assert allows(check, basic("alice", "wonderland"))
    renewed = {"alice": bcrypt.hashpw(b"looking-glass", bcrypt.gensalt(4)).decode()}
    assert not allows(check, basic("alice", "wonderland"), renewed)
    assert allows(check, basic("alice", "looking-glass"), renewed)


def test_an_unknown_user_costs_as_much_as_a_known_one() -> None:
    """The decoy has the cost of the costliest hash and is no password's."""
    costly = {"a": "$2b$04$" + "a" * 53, "b": "$2b$11$" + "b" * 53}
    decoy = auth._decoy(costly)
    assert decoy.startswith("$2b$11$")
    assert len(decoy) == len(USERS["alice"])
    assert not auth._matches(b"anything", auth._decoy(USERS).encode())


def test_a_hash_that_bcrypt_does_not_take_matches_nothing() -> None:
    """The schema lets none through; if one came, nobody would be let in."""
    assert not auth._matches(b"x", b"$2b$04$short")


def test_an_answer_that_nobody_waits_for_any_more_is_dropped() -> None:
    """The server stopped while a password was being checked."""
    costly = {"alice": bcrypt.hashpw(b"wonderland", bcrypt.gensalt(8)).decode()}

    async def leave() -> None:
        asked = asyncio.ensure_future(PasswordCheck().allows(basic("alice", "guess"), costly))
        await asyncio.sleep(0)
        asked.cancel()

    asyncio.run(leave())
    for thread in threading.enumerate():
        if thread.name == "bcrypt":
            thread.join()


def test_equal_questions_are_asked_once() -> None:
    """50 scrapers with one password make one check."""

    async def crowd() -> list[bool]:
        check = PasswordCheck()
        asked = [asyncio.ensure_future(check.allows(basic("alice", "wonderland"), USERS)) for _ in range(50)]
        await asyncio.sleep(0)
        assert len(check._running) == 1
        return await asyncio.gather(*asked)

    assert asyncio.run(crowd()) == [True] * 50


def test_a_flood_of_guesses_is_turned_away_and_the_known_scraper_is_not() -> None:
    """Only so many checks wait; who was let in before is let in during the flood and after it."""

    async def flood() -> tuple[int, bool]:
        check = PasswordCheck()
        assert await check.allows(basic("alice", "wonderland"), USERS)
        guesses = [check.allows(basic("alice", f"guess {number}"), USERS) for number in range(500)]
        results, known = await asyncio.gather(
            asyncio.gather(*guesses, return_exceptions=True), check.allows(basic("alice", "wonderland"), USERS)
        )
        assert not any(result is True for result in results)
        return sum(isinstance(result, TooManyWaiting) for result in results), known

    turned_away, known = asyncio.run(flood())
    assert turned_away == 500 - 16
    assert known


def test_what_is_remembered_is_bounded() -> None:
    """Endless guesses do not fill the memory, and push no right answer out."""

    async def endless() -> PasswordCheck:
        check = PasswordCheck()
        await check.allows(basic("alice", "wonderland"), USERS)
        for number in range(300):
            await check.allows(basic("alice", f"guess {number}"), USERS)
        return check

    check = asyncio.run(endless())
    assert len(check._wrong) == 256
    assert len(check._right) == 1


@given(st.text(max_size=60))
def test_no_header_breaks_the_check(header: str) -> None:
    """Whatever a client sends is a refusal."""
    assert not allows(PasswordCheck(), header)
