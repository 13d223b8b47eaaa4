"""Passes on every store: found by their digests, used once where they are links, ended at once."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from frontdesk import errors, plugins
from frontdesk.flow.passes import BegunPage, PassBook
from frontdesk.model import passes
from frontdesk.model.access import Grant, Role
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.feed import FeedKind
from frontdesk.model.passes import Pass, PassKind
from frontdesk.model.visitors import Visitor
from frontdesk.stores.columns import to_micros
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock

DAY = timedelta(days=1)
ANN = "telegram:42"
OWNER = "token:approver"


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with await plugins.load_store(store_url)(store_url) as opened:
        yield opened


@pytest.fixture
def book(store: Store, clock: SettableClock) -> PassBook:
    return PassBook(store, clock, (frozenset({OWNER, "local"}),))


async def token(book: PassBook, name: str = "grafana", role: Role = Role.VIEWER, who: str = ANN) -> str:
    return (await book.issue(PassKind.TOKEN, name, role, who, DAY, by=OWNER))[1]


async def link(book: PassBook, role: Role = Role.ADMINISTRATOR, who: str = OWNER) -> str:
    return (await book.issue(PassKind.LINK, "login", role, who, timedelta(minutes=10), by=OWNER))[1]


async def visitor(book: PassBook, secret: str, kind: PassKind = PassKind.TOKEN) -> Visitor | None:
    entry = await book.recognise(secret, kind)
    return entry.visitor if entry else None


async def test_pass_is_known_by_its_secret_and_by_nothing_like_it(book: PassBook) -> None:
    secret = await token(book)
    found = await visitor(book, secret)
    assert found
    assert (found.id, found.name, found.role) == (ANN, "grafana", Role.VIEWER)
    for wrong in (secret[:-1], f"{secret}A", secret.swapcase(), secret[4:], "", "fdt_" + "A" * 43, "ü" * 47):
        assert await visitor(book, wrong) is None


async def test_each_kind_is_good_for_itself_alone(book: PassBook) -> None:
    of_token, of_link = await token(book), await link(book)
    begun = await book.redeem(await link(book))
    assert begun
    secrets = {PassKind.TOKEN: of_token, PassKind.LINK: of_link, PassKind.PAGE: begun.secret}
    for kind, secret in secrets.items():
        for asked in PassKind:
            assert (await visitor(book, secret, asked) is not None) == (asked is kind)
    assert await book.redeem(of_token) is None
    assert await book.redeem(begun.secret) is None
    assert await visitor(book, begun.proof, PassKind.PAGE) is None, "the proof is no page"


async def test_link_becomes_one_page_however_many_show_it(book: PassBook) -> None:
    secret = await link(book)
    begun = [each for each in await asyncio.gather(*(book.redeem(secret) for _ in range(10))) if each]
    assert len(begun) == 1
    assert await book.redeem(secret) is None
    assert await visitor(book, secret, PassKind.LINK) is None
    held = begun[0].held
    assert held.fits_proof(begun[0].proof)
    assert not held.fits_proof(begun[0].secret)
    assert [each.kind for each in await book.list(10)] == [PassKind.PAGE]


async def test_pass_ends_with_its_time(book: PassBook, clock: SettableClock) -> None:
    of_token, of_link = await token(book), await link(book)
    begun = await book.redeem(await link(book))
    assert begun
    clock.advance(seconds=600)
    assert await book.redeem(of_link) is None
    clock.advance(seconds=passes.PAGE_SECONDS - 601)
    assert await visitor(book, begun.secret, PassKind.PAGE)
    clock.advance(seconds=1)
    assert await visitor(book, begun.secret, PassKind.PAGE) is None
    assert await visitor(book, of_token)
    clock.advance(days=1)
    assert await visitor(book, of_token) is None


async def test_revoked_token_takes_its_pages_along_and_gives_its_name_back(book: PassBook) -> None:
    secret = await token(book)
    entry = await book.recognise(secret, PassKind.TOKEN)
    assert entry
    begun = await book.begin(entry.visitor, parent=entry.held)
    other = await book.begin(entry.visitor)
    with pytest.raises(errors.PassTaken):
        await token(book)
    assert await book.revoke("grafana", by=OWNER)
    assert not await book.revoke("grafana", by=OWNER)
    assert await visitor(book, secret) is None
    assert await visitor(book, begun.secret, PassKind.PAGE) is None
    assert await visitor(book, other.secret, PassKind.PAGE), "which was not begun with it"
    assert await book.revoke(other.held.id, by=OWNER)
    assert await visitor(book, other.secret, PassKind.PAGE) is None
    assert await visitor(book, await token(book))


async def end_token(store: Store, clock: SettableClock) -> None:
    assert await store.passes.revoke("grafana", clock.now(), by="local")


async def end_person(store: Store, clock: SettableClock) -> None:
    assert await store.people.revoke(ANN, clock.now(), by="local")


@pytest.mark.parametrize("end", [end_token, end_person])
async def test_no_page_is_begun_with_a_token_that_ended_since_it_was_known(
    store: Store, book: PassBook, clock: SettableClock, end: Callable[[Store, SettableClock], Awaitable[None]]
) -> None:
    entry = await book.recognise(await token(book), PassKind.TOKEN)
    assert entry
    await end(store, clock)
    with pytest.raises(errors.NotAllowed, match="has ended"):
        await book.begin(entry.visitor, parent=entry.held)
    assert await book.list(10) == []


async def test_no_page_outlives_its_token_whichever_comes_first(
    store: Store, book: PassBook, clock: SettableClock
) -> None:
    """The many who sign in while the token is ended are in no more, in whatever order it happens."""
    entry = await book.recognise(await token(book), PassKind.TOKEN)
    assert entry
    begins = [book.begin(entry.visitor, parent=entry.held) for _ in range(8)]
    done = await asyncio.gather(*begins[:4], end_token(store, clock), *begins[4:], return_exceptions=True)
    for each in done:
        if isinstance(each, BegunPage):
            assert await visitor(book, each.secret, PassKind.PAGE) is None


async def test_page_ends_no_later_than_the_token_it_was_begun_with(
    book: PassBook, clock: SettableClock
) -> None:
    entry = await book.recognise(await token(book), PassKind.TOKEN)
    assert entry
    clock.advance(hours=23)
    begun = await book.begin(entry.visitor, parent=entry.held)
    assert begun.held.expires_at == entry.held.expires_at


async def test_person_of_a_pass_has_all_their_names(store: Store, book: PassBook) -> None:
    linked = await store.people.linked(ANN)
    assert linked == {ANN}
    owner = await visitor(book, await token(book, "own", Role.ADMINISTRATOR, OWNER))
    assert owner
    assert "local" in owner.people, "by the settings: nobody votes twice"
    assert owner.caller.names >= {OWNER, "local"}


@pytest.mark.parametrize("role", [None, Role.USER, Role.APPROVER])
async def test_who_is_less_in_chats_is_not_more_on_pages(
    store: Store, book: PassBook, clock: SettableClock, role: Role | None
) -> None:
    grant = Grant(
        principal=ANN, platform="telegram", role=Role.APPROVER, granted_at=clock.now(), granted_by="local"
    )
    await store.people.grant(grant)
    of_user = await token(book, "a", Role.USER)
    of_approver = await token(book, "b", Role.APPROVER)
    of_viewer = await token(book, "d", Role.VIEWER)
    others = await token(book, "c", Role.APPROVER, "telegram:43")
    if role:
        await store.people.grant(replace(grant, role=role, granted_at=clock.now()))
    else:
        await store.people.revoke(ANN, clock.now(), by="local")
    assert bool(await visitor(book, of_user)) == (role is not None)
    assert bool(await visitor(book, of_approver)) == (role is Role.APPROVER)
    assert await visitor(book, others)
    assert not await visitor(book, of_viewer), "who sees more than they are to see"


async def test_pass_under_another_name_of_a_whatsapp_number_ends_with_the_grant(
    store: Store, book: PassBook, clock: SettableClock
) -> None:
    learned = await store.aliases.learn(
        "12345", "491701234567", lambda *_: ("", "", ""), lambda *_: None, clock.now()
    )
    assert learned
    secret = await token(book, "a", Role.USER, "whatsapp:12345")
    await store.people.revoke("whatsapp:491701234567", clock.now(), by="local")
    assert await visitor(book, secret) is None


@pytest.mark.parametrize("parent", [PassKind.TOKEN, PassKind.LINK])
async def test_pages_of_one_person_are_bounded_and_those_in_use_stay(
    store: Store, book: PassBook, clock: SettableClock, parent: PassKind
) -> None:
    entry = await book.recognise(await token(book, "a", Role.USER), PassKind.TOKEN)
    assert entry
    foreign = await book.begin(Visitor(id=OWNER, name="owner", role=Role.ADMINISTRATOR))

    async def begin() -> str:
        clock.advance(seconds=1)
        if parent is PassKind.TOKEN:
            return (await book.begin(entry.visitor, parent=entry.held)).secret
        begun = await book.redeem(await link(book, Role.USER, ANN))
        assert begun
        return begun.secret

    begun = [await begin() for _ in range(passes.MOST_PAGES)]
    clock.advance(minutes=2)
    assert await visitor(book, begun[0], PassKind.PAGE), "this one is used"
    place = await store.feed.end()
    begun += [await begin() for _ in range(3)]
    held = [bool(await visitor(book, each, PassKind.PAGE)) for each in begun]
    assert held == [True, False, False, False, *([True] * (passes.MOST_PAGES - 1))]
    assert await visitor(book, foreign.secret, PassKind.PAGE)
    kept = [each for each in await book.list(1000, over=True) if each.person == ANN]
    assert [each.kind for each in kept].count(PassKind.PAGE) == passes.MOST_PAGES
    if parent is PassKind.TOKEN:
        told = (await store.feed.since(place, 100)).entries
        assert {each.kind for each in told} == {FeedKind.CONFIRMATION}, "the list is no longer than before"


async def test_who_has_nothing_but_passes_is_revoked_and_told(
    store: Store, book: PassBook, clock: SettableClock
) -> None:
    secret = await token(book, "a", Role.USER)
    place = await store.feed.end()
    assert await store.people.revoke(ANN, clock.now(), by="local")
    assert await visitor(book, secret) is None
    told = (await store.feed.since(place, 100)).entries
    assert [(each.owner, each.state) for each in told] == [(ANN, "revoked"), (None, "person_revoked")]
    assert not await store.people.revoke(ANN, clock.now(), by="local"), "there is nothing left"


async def test_last_use_is_kept_by_the_minute(book: PassBook, clock: SettableClock) -> None:
    async def used() -> object:
        (only,) = await book.list(10)
        return only.used_at

    secret = await token(book)
    assert await used() is None
    await visitor(book, secret)
    first = clock.now()
    assert await used() == first
    clock.advance(seconds=59)
    await visitor(book, secret)
    assert await used() == first
    clock.advance(seconds=1)
    await visitor(book, secret)
    assert await used() == clock.now()


async def test_list_goes_on_where_it_was_left_and_forgets_what_is_long_over(
    book: PassBook, clock: SettableClock
) -> None:
    names = [f"t{number}" for number in range(5)]
    for name in names:
        await token(book, name)
    shown: list[Pass] = []
    while found := await book.list(2, (to_micros(shown[-1].created_at), shown[-1].id) if shown else None):
        shown += found
    assert sorted(each.name for each in shown) == names, "made in the same moment, each is there once"
    await book.revoke("t1", by=OWNER)
    assert len(await book.list(10)) == 4
    assert len(await book.list(10, over=True)) == 5
    clock.advance(days=32)
    await token(book, "new")
    assert [each.name for each in await book.list(10, over=True)] == ["new"]


async def test_secrets_are_in_no_byte_of_the_database_and_of_the_log(
    tmp_path: Path, clock: SettableClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    url = f"sqlite:///{tmp_path}/state.db"
    async with await plugins.load_store(url)(url) as opened:
        book = PassBook(opened, clock)
        secrets = [await token(book), await link(book), used := await link(book)]
        begun = await book.redeem(used)
        assert begun
        secrets += [begun.secret, begun.proof]
        assert await visitor(book, begun.secret, PassKind.PAGE)
    kept = await asyncio.to_thread(lambda: b"".join(each.read_bytes() for each in tmp_path.iterdir()))
    assert passes.digest_of(secrets[0]) in kept
    for secret in secrets:
        assert secret.encode() not in kept
        assert secret[4:].encode() not in kept
        assert secret not in caplog.text


async def logged(store: Store) -> list[AuditEntry]:
    """What the log tells, oldest first."""
    rows = await store.confirmations.audit_newest(1000)
    return [row.entry for row in reversed(rows)]


async def test_log_says_who_gave_and_ended_which_pass(
    store: Store, book: PassBook, clock: SettableClock
) -> None:
    given, secret = await book.issue(PassKind.TOKEN, "grafana", Role.VIEWER, ANN, DAY, by=OWNER)
    entry = await book.recognise(secret, PassKind.TOKEN)
    assert entry
    await book.begin(entry.visitor, parent=entry.held)
    with pytest.raises(errors.PassTaken):
        await token(book)
    clock.advance(minutes=2)
    assert await book.revoke("grafana", by=OWNER)
    assert not await book.revoke("grafana", by=OWNER)
    made, came, ended = await logged(store)
    named = {"pass": given.id, "pass_kind": "token", "name": "grafana", "role": "viewer"}
    assert (made.kind, made.actor) == (AuditKind.PASS_GIVEN, OWNER)
    assert made.facts == named | {"person": ANN, "until": given.expires_at.isoformat()}
    assert (came.kind, came.actor) == (AuditKind.SIGNED_IN, ANN)
    assert came.facts["why"] == f"with {given.id}"
    assert (ended.kind, ended.actor, ended.at) == (AuditKind.PASS_ENDED, OWNER, clock.now())
    assert ended.facts == named | {"person": ANN, "pages": 1}


async def test_link_is_in_the_log_when_it_is_made_and_when_it_is_used(store: Store, book: PassBook) -> None:
    secret = await link(book)
    assert await book.redeem(secret)
    assert await book.redeem(secret) is None
    made, used = await logged(store)
    assert (made.kind, made.facts["pass_kind"]) == (AuditKind.PASS_GIVEN, "link")
    assert (used.kind, used.actor, used.facts["why"]) == (AuditKind.SIGNED_IN, OWNER, "with a link")
    assert used.facts["pass"] == made.facts["pass"]


async def test_no_row_of_the_log_has_a_secret(store: Store, book: PassBook) -> None:
    of_token, of_link = await token(book), await link(book)
    begun = [await book.redeem(of_link)]
    entry = await book.recognise(of_token, PassKind.TOKEN)
    assert entry
    begun.append(await book.begin(entry.visitor, parent=entry.held))
    await book.revoke("grafana", by=OWNER)
    secrets = [of_token, of_link, *(each for page in begun if page for each in (page.secret, page.proof))]
    written = b"".join(row.body for row in await store.confirmations.audit_newest(100))
    for each in secrets:
        digest = passes.digest_of(each)
        for form in (each.encode(), each[4:].encode(), digest.hex().encode(), b64encode(digest)):
            assert form not in written


async def test_who_signs_in_and_out_again_and_again_does_not_fill_the_log(
    store: Store, book: PassBook, clock: SettableClock
) -> None:
    entry = await book.recognise(await token(book), PassKind.TOKEN)
    assert entry
    for _ in range(10):
        begun = await book.begin(entry.visitor, parent=entry.held)
        assert await book.revoke(begun.held.id, by=ANN)
    assert [each.kind for each in await logged(store)] == ["pass_given", "signed_in", "pass_ended"]
    clock.advance(minutes=2)
    await book.begin(entry.visitor, parent=entry.held)
    assert (await logged(store))[-1].facts["left_out"] == 9


async def test_log_says_which_passes_end_with_what_somebody_may_do(
    store: Store, book: PassBook, clock: SettableClock
) -> None:
    given, _ = await book.issue(PassKind.TOKEN, "a", Role.APPROVER, ANN, DAY, by=OWNER)
    grant = Grant(
        principal=ANN, platform="telegram", role=Role.USER, granted_at=clock.now(), granted_by=OWNER
    )
    await store.people.grant(grant)
    other, _ = await book.issue(PassKind.TOKEN, "b", Role.USER, ANN, DAY, by=OWNER)
    assert await store.people.revoke(ANN, clock.now(), by=OWNER)
    assert not await store.people.revoke(ANN, clock.now(), by=OWNER)
    changes = [each for each in await logged(store) if each.kind is not AuditKind.PASS_GIVEN]
    assert [(each.kind, each.actor, each.facts["passes"]) for each in changes] == [
        (AuditKind.PERSON_LET_IN, OWNER, [given.id]),
        (AuditKind.PERSON_REVOKED, OWNER, [other.id]),
    ]
