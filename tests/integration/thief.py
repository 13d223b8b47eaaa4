"""Somebody who has an approver's cookie, an agent's token and whatever a GET shows, and not the proof: every
way that was thought of to have one action approved, denied or uncovered, a rule added or a pause lifted."""

import asyncio
import base64
import gzip
import hashlib
import hmac
import html
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from frontdesk.web.operations import PROOF_HEADER
from frontdesk.web.visitors import COOKIE

Headers = tuple[tuple[str, str], ...]

PATIENCE_SECONDS = 60.0
JSON = "application/json"
METHODS = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "QUERY",
    "APPROVE",
    "post",
    "Post",
)
PORTS = ("public", "page", "service")
TOKEN = re.compile(r"[A-Za-z0-9_+/=%~.-]{8,}")
CROWD = 8
"""Connections at a time."""


class Loot(msgspec.Struct, kw_only=True):
    """What the thief has."""

    ports: Mapping[str, tuple[str, int]]
    rows: Mapping[str, tuple[tuple[str, str], ...]]
    """The methods and paths of each port."""
    cookie: str
    agent: str
    wanted: str
    """The id of the request that is to be approved."""
    digest: str
    others: tuple[tuple[str, str], ...] = ()
    """Ids and digests of other requests; the first hides what another agent knows."""
    ended: tuple[str, str] = ("", "")
    """Cookie and proof of a session that has ended."""
    proofs: tuple[str, ...] = ()
    """Proofs of sessions that go on, whose cookies it does not have."""
    links: tuple[str, ...] = ()
    """Tokens of links that name other requests."""
    looks: tuple[str, ...] = ()
    """Proofs of having looked, of this request and of others."""
    found: str = ""
    """Everything that was ever shown to it."""

    def origin(self, port: str) -> str:
        host, number = self.ports[port]
        return f"http://{host}:{number}"

    def forged(self, port: str = "page", /, **more: str | None) -> Headers:
        """What the page's own script sends, but for the proof. None takes a header away."""
        headers: dict[str, str | None] = {
            "cookie": f"{COOKIE}={self.cookie}",
            "content-type": JSON,
            "origin": self.origin(port),
            "referer": f"{self.origin(port)}/approvals/{self.wanted}",
            "sec-fetch-site": "same-origin",
            "sec-fetch-mode": "cors",
            "sec-fetch-dest": "empty",
            "x-frontdesk-page": "1",
        }
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        return tuple((name, value) for name, value in headers.items() if value is not None)

    def vote(self, **more: Any) -> dict[str, Any]:
        return {"approves": True, "digest": self.digest, **more}

    def goals(self, **more: Any) -> Iterator[tuple[str, bytes]]:
        """What is wanted of the page."""
        for approves in (True, False):
            said = self.vote(approves=approves, **more)
            yield f"/approvals/{self.wanted}/decision", json.dumps(said).encode()
        for each in (self.wanted, self.others[0][0]):
            yield f"/approvals/{each}/reveal", json.dumps(more).encode()
        yield "/login/end", b"{}"
        yield "/approvals/pauses/lift", json.dumps({"requester": "token:rob"}).encode()


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One request, byte for byte."""

    port: str
    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""
    raw: bytes | None = None
    """Instead of all of it."""

    def written(self, loot: Loot) -> bytes:
        if self.raw is not None:
            return self.raw
        host, port = loot.ports[self.port]
        lines = [f"{self.method} {self.target} HTTP/1.1"]
        names = {name.lower() for name, _ in self.headers}
        if "host" not in names:
            lines.append(f"host: {host}:{port}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        if "x-request-id" not in names:  # else every answer has a new number, which looks like a token
            lines.append("x-request-id: thief")
        if not names & {"content-length", "transfer-encoding"}:
            lines.append(f"content-length: {len(self.body)}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    """Zero when none came."""
    head: str = ""
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.head + self.body.decode("utf-8", "replace")


async def ask(loot: Loot, each: Try) -> Answer:
    """Send it on a connection of its own, and read no further than one answer."""
    reader, writer = await asyncio.open_connection(*loot.ports[each.port])
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            writer.write(each.written(loot))
            return await _read(reader, each.method)
    except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
        return Answer(status=0)
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader, method: str) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = int(head.split(" ", 2)[1])
    if status < 200:
        return await _read(reader, method)
    length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
    body = b""
    if "chunked" in head.lower():
        body = await reader.readuntil(b"\n\n")  # the first event of a stream
    elif length and method != "HEAD":
        body = await reader.readexactly(int(length[1]))
    return Answer(status=status, head=head, body=body)


async def run(loot: Loot, tries: Iterable[Try], judge: Callable[[Try, Answer], None]) -> int:
    """Do them all, several at a time."""
    coming, done = iter(tries), 0

    async def work() -> None:
        nonlocal done
        for each in coming:
            answer = await ask(loot, each)
            loot.found += answer.text if each.method in ("GET", "HEAD") else ""
            judge(each, answer)
            done += 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CROWD):
            tasks.create_task(work())
    return done


def post(target: str, headers: Headers, body: bytes, port: str = "page", method: str = "POST") -> Try:
    return Try(port=port, method=method, target=target, headers=headers, body=body)


def holding(loot: Loot) -> list[Headers]:
    """Everything to come with: nothing, the cookie, the token, both."""
    cookie, agent = ("cookie", f"{COOKIE}={loot.cookie}"), ("authorization", f"Bearer {loot.agent}")
    return [(), (cookie,), (agent,), (cookie, agent)]


def of_the_service(loot: Loot) -> list[tuple[str, str, bytes]]:
    """What is wanted of the service, where an approver's token does it."""
    rule = {"effect": "allow", "digest": loot.digest}
    return [
        ("POST", f"/confirm/{loot.wanted}/approve", b"{}"),
        ("POST", f"/confirm/{loot.wanted}/deny", b"{}"),
        ("POST", f"/confirm/{loot.others[0][0]}/reveal", b""),
        ("POST", "/rules", json.dumps(rule).encode()),
        ("POST", "/pauses/lift", json.dumps({"requester": "token:rob"}).encode()),
        ("DELETE", "/rules/r_kept", b""),
    ]


def plain(loot: Loot) -> Iterator[Try]:
    """As the page and a client do it."""
    for port, (target, body) in itertools.product(("page", "public"), loot.goals()):
        yield post(target, loot.forged(port), body, port)
    for (method, path, body), held in itertools.product(of_the_service(loot), holding(loot)):
        yield post(path, (("content-type", JSON), *held), body, "service", method)


def looks(loot: Loot) -> Iterator[Try]:
    """Every GET of every port, with everything that one could come with; links of every form."""
    extras: list[Headers] = [(), (("accept", JSON),), (("last-event-id", "0"),), (("x-frontdesk-page", "1"),)]
    for port, rows in loot.rows.items():
        paths = {path for _, path in rows} | {
            "/openapi.json",
            "/",
            "/approvals/",
            "/robots.txt",
            "/favicon.ico",
        }
        for path, held, extra in itertools.product(sorted(paths), holding(loot), extras):
            for method in ("GET", "HEAD"):
                yield Try(port=port, method=method, target=path, headers=held + extra)
    for port, token in itertools.product(
        ("public", "page"), (*loot.links, *loot.looks, *loot.proofs, loot.cookie)
    ):
        for place in (loot.wanted, f"{loot.wanted}/events", loot.others[0][0], ""):
            for name in ("t", "T", "t[]", "token", "proof", "x-frontdesk-proof"):
                target = f"/approvals/{place}".rstrip("/") + f"?{name}={token}"
                yield Try(port=port, method="GET", target=target, headers=loot.forged(port))


def files(loot: Loot) -> Iterator[Try]:
    """Whatever the pages that were shown refer to, and names that a server may have files under."""
    named = set(re.findall(r"(?:href|src|data-[a-z]+)=\"(/[^\"]*)\"", html.unescape(loot.found)))
    guessed = {
        "/approvals/static/page.js",
        "/static/style.css",
        "/approvals/page.js",
        "/.well-known/x",
        "/metrics",
    }
    for port, path in itertools.product(PORTS, sorted(named | guessed)):
        for held in holding(loot):
            yield Try(port=port, method="GET", target=path, headers=held)


def methods(loot: Loot) -> Iterator[Try]:
    """Every method on every path of every port, also as another one that a header or a field names."""
    overriding = ("x-http-method-override", "x-http-method", "x-method-override")
    vote = json.dumps(loot.vote()).encode()
    for port, rows in loot.rows.items():
        for path in sorted({path for _, path in rows}):
            for held in holding(loot):
                headers = loot.forged(port, cookie=None) + held
                for method in METHODS:
                    if (method, path) != ("POST", "/confirm"):
                        yield post(path, headers, vote, port, method)
                for name, method, said in itertools.product(overriding, ("GET", "PUT"), ("POST", "DELETE")):
                    yield post(path, ((name, said), *headers), vote, port, method)
                for field in ("_method=POST", "method=POST", "_method=DELETE"):
                    yield post(f"{path}?{field}", headers, vote, port, "GET")


def addresses(loot: Loot) -> Iterator[Try]:
    """Other ways to write where it goes."""
    vote, wanted = json.dumps(loot.vote()).encode(), loot.wanted
    path = f"/approvals/{wanted}/decision"
    odd = [
        f"/{path}",
        f"{path}/",
        f"{path}?",
        f"{path}#x",
        f"{path};x=1",
        f"{path}%20",
        f"{path}%00",
        f"{path}.json",
        path.upper(),
        path.replace("/decision", "/./decision"),
        path.replace("/decision", "/x/../decision"),
        path.replace("/decision", "%2fdecision"),
        path.replace("/decision", "//decision"),
        path.replace("/decision", "\\decision"),
        path.replace("decision", "%64ecision"),
        path.replace("approvals", "%61pprovals"),
        path.replace("approvals", "approvals/session/../"),
        path.replace(wanted, f"{wanted}%2f..%2f{wanted}"),
        path.replace(wanted, f"session/{wanted}"),
        f"/login/../{wanted}/decision",
        f"/livez/..{path}",
        f"/confirm/{wanted}/approve",
        f"/confirm/{wanted}/approve/",
        f"/approvals/confirm/{wanted}/approve",
        f"/approvals/{wanted}/approve",
        f"/approvals/{wanted}",
        "/approvals",
        "/approvals/rules",
        "/approvals/pauses/lift",
        "*",
    ]
    for port in PORTS:
        odd_here = [*odd, loot.origin(port) + path, loot.origin("service") + f"/confirm/{wanted}/approve"]
        for target, held in itertools.product(odd_here, holding(loot)):
            yield post(target, loot.forged(port, cookie=None) + held, vote, port)
        for name in ("x-original-url", "x-rewrite-url", "x-forwarded-path", "x-forwarded-prefix"):
            for target in ("/login", "/livez", "/approvals"):
                yield post(target, ((name, path), *loot.forged(port)), vote, port)


def origins(loot: Loot) -> Iterator[Try]:
    """Every mixture of what a browser says of itself."""
    own = loot.origin("page")
    said: dict[str, tuple[str | None, ...]] = {
        "origin": (
            own,
            own.upper(),
            own + "/",
            own.replace("http", "https"),
            loot.origin("public"),
            "null",
            None,
        ),
        "referer": (own + "/approvals", None),
        "sec_fetch_site": ("same-origin", "none", "same-site", None),
        "sec_fetch_mode": ("cors", "navigate", "same-origin", None),
        "sec_fetch_dest": ("empty", "document", None),
        "x_frontdesk_page": ("1", "true", None),
        "x_forwarded_host": (own.removeprefix("http://"), None),
    }
    goals = itertools.cycle(loot.goals())
    for values in itertools.product(*said.values()):
        target, body = next(goals)
        yield post(target, loot.forged(**dict(zip(said, values, strict=True))), body)


FORMS = "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", ""
CHARSETS = f"{JSON}; charset=utf-8", f"{JSON}; charset=utf-16", f"{JSON}, text/plain", f"{JSON}-patch+json"
UNASKED = "proof", PROOF_HEADER, "token", "session", "caller", "approver", "who", "as_user", "__proto__"
NO_LINKS: tuple[Any, ...] = (0, False, "", [], {}, "null", [None], "0", " ", "undefined", ".", "..")


def written(loot: Loot) -> list[bytes]:
    """A vote in every form, with fields that nobody asked for, and with what is no link of this request."""
    vote = loot.vote()
    text = json.dumps(vote)
    said = [text.encode(), text.encode("utf-16"), b"\xef\xbb\xbf" + text.encode(), text.encode() * 2, b""]
    said += [
        f"approves=true&digest={loot.digest}".encode(),
        f"[{text}]".encode(),
        gzip.compress(text.encode()),
    ]
    said += [b'--x\r\ncontent-disposition: form-data; name="approves"\r\n\r\ntrue\r\n--x--\r\n']
    said += [(text[:-1] + ', "t": null, "t": "x"}').encode(), (text[:-1] + ', "approves": true}').encode()]
    worth = [True, 1, "token:ann", loot.cookie, loot.agent, {"approver": "token:ann"}, *loot.proofs, None]
    said += [json.dumps(vote | {name: each}).encode() for name, each in itertools.product(UNASKED, worth)]
    odd = [*NO_LINKS, *loot.links, *loot.looks, *loot.proofs, loot.cookie, loot.agent]
    return said + [json.dumps(vote | {"t": each}).encode() for each in odd]


def fields(loot: Loot) -> Iterator[Try]:
    """Everything that a body may say."""
    for body in written(loot):
        yield post(f"/approvals/{loot.wanted}/decision", loot.forged(), body)
    for each in (*NO_LINKS, *loot.links):
        for target, body in loot.goals(t=each):
            yield post(target, loot.forged(), body)


def kinds(loot: Loot) -> Iterator[Try]:
    """The same as something else than JSON, or packed."""
    path = f"/approvals/{loot.wanted}/decision"
    for kind, body in itertools.product((*FORMS, *CHARSETS), written(loot)):
        yield post(path, loot.forged(content_type=kind), body)
    for encoding in ("gzip", "deflate", "identity", "br"):
        yield post(
            path, loot.forged(content_encoding=encoding), gzip.compress(json.dumps(loot.vote()).encode())
        )


def replays(loot: Loot) -> Iterator[Try]:
    """Bodies of other requests and sessions, with the links and looks that went with those."""
    for other, digest in loot.others:
        for seen, link in itertools.product((None, *loot.looks), (None, *loot.links)):
            for place, shown in itertools.product((loot.wanted, other), (loot.digest, digest)):
                body = json.dumps(loot.vote(digest=shown, seen=seen, t=link, target=shown[-6:])).encode()
                if link is None or place == loot.wanted:
                    yield post(f"/approvals/{place}/decision", loot.forged(), body)


def cookies(loot: Loot) -> Iterator[Try]:
    """The cookie in every order, company and writing, with proofs of other sessions."""
    own, (old, old_proof) = f"{COOKIE}={loot.cookie}", loot.ended
    number, token = loot.cookie[:16], _encoded(hashlib.sha256(loot.cookie.encode()).digest())
    forms = [
        own,
        f"{COOKIE}={old}",
        f"{own}; {COOKIE}={old}",
        f"{COOKIE}={old}; {own}",
        f"{own}; {own}",
        f'{COOKIE}="{loot.cookie}"',
        f"$Version=1; {own}; $Path=/approvals",
        f"{own}; Path=/; Domain=127.0.0.1",
        f"{own}; frontdesk_proof={token}; {PROOF_HEADER}={token}",
        f"{COOKIE.upper()}={loot.cookie}",
        f"{COOKIE}={loot.cookie.upper()}",
        f"{COOKIE}={number}.{old.partition('.')[2]}",
        f"{COOKIE}={old.partition('.')[0]}.{token}",
        f"{COOKIE}={number}.{old_proof}",
        f"{COOKIE}={old_proof}",
        *(f"{COOKIE}={number}.{each}" for each in (*loot.proofs, *loot.links, *loot.looks)),
        f"{COOKIE}[approver]={loot.cookie}",
        f"{own},{COOKIE}={old}",
    ]
    shown = (None, old_proof, *loot.proofs, *loot.links, *loot.looks, token, loot.cookie, loot.agent)
    for form, proof, (target, body) in itertools.product(forms, shown, list(loot.goals())):
        yield post(target, loot.forged(cookie=form, x_frontdesk_proof=proof), body)
        if proof is not None:
            twice = ((PROOF_HEADER, proof), *loot.forged(cookie=form, x_frontdesk_proof=token))
            yield post(target, twice, body)


def tokens_in(text: str) -> list[str]:
    """Whatever looks like a token, whole and in parts."""
    whole = set(TOKEN.findall(html.unescape(text))) | set(TOKEN.findall(text))
    parts = {part for each in whole for part in re.split(r"[.=/%~+]", each) if len(part) >= 8}
    return sorted(whole | parts)


def made(loot: Loot, each: str) -> Iterator[str]:
    """Proofs that somebody might make of a token."""
    digest = hashlib.sha256(each.encode()).digest()
    yield from (each, f"{loot.cookie}.{each}", _encoded(digest), digest.hex())
    for about, key in itertools.product((loot.cookie, "proof"), (each.encode(), digest, b"", bytes(32))):
        yield _encoded(hmac.new(key, about.encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def guesses(loot: Loot) -> Iterator[Try]:
    """Proofs made of everything that any GET has shown."""
    known = [
        loot.cookie,
        loot.agent,
        loot.wanted,
        loot.digest,
        *loot.ended,
        *loot.proofs,
        *loot.links,
        *loot.looks,
    ]
    goals = itertools.cycle(loot.goals())
    for each in dict.fromkeys(
        [*known, *(part for token in known for part in token.split(".")), *tokens_in(loot.found)]
    ):
        for proof in dict.fromkeys(made(loot, each)):
            target, body = next(goals)
            yield post(target, loot.forged(x_frontdesk_proof=proof), body)


def places(loot: Loot) -> Iterator[Try]:
    """The same tokens wherever a token could be put, on every port."""
    known = [
        loot.cookie,
        loot.agent,
        *loot.ended,
        *loot.proofs,
        *loot.links,
        *loot.looks,
        *tokens_in(loot.found),
    ]
    for token, (method, path, body) in itertools.product(dict.fromkeys(known), of_the_service(loot)):
        headers = (("authorization", f"Bearer {token}"), *loot.forged("service"))
        yield post(path, headers, body, "service", method)
    for token in dict.fromkeys(known):
        path, vote = f"/approvals/{loot.wanted}/decision", json.dumps(loot.vote(t=token)).encode()
        yield post(path, loot.forged(), vote)
        yield post(f"{path}?t={token}&proof={token}", loot.forged(), json.dumps(loot.vote()).encode())
        yield post(path, loot.forged(authorization=f"Bearer {token}"), json.dumps(loot.vote()).encode())
        yield post("/login", loot.forged(), json.dumps({"token": token}).encode())
        yield post("/login", loot.forged(), json.dumps({"token": loot.agent, "proof": token}).encode())


def smuggled(loot: Loot) -> Iterator[Try]:
    """Heads and bodies that two readers may take for something else."""
    host, port = loot.ports["page"]
    path, vote = f"/approvals/{loot.wanted}/decision", json.dumps(loot.vote())
    proof = loot.proofs[0]
    head = "".join(f"{name}: {value}\r\n" for name, value in (("host", f"{host}:{port}"), *loot.forged()))
    first = f"POST {path} HTTP/1.1\r\n{head}"
    chunked = f"{len(vote):x}\r\n{vote}\r\n0\r\n"
    length = f"content-length: {len(vote)}\r\n"
    trailer = f"{chunked}{PROOF_HEADER}: {proof}\r\n\r\n"
    second = f"{first}{length}\r\n{vote}"
    written = [
        f"{first}transfer-encoding: chunked\r\n\r\n{trailer}",
        f"{first}transfer-encoding: chunked\r\ntrailer: {PROOF_HEADER}\r\n\r\n{trailer}",
        f"{first}transfer-encoding: chunked\r\n{length}\r\n{vote}",
        f"{first}{length}content-length: 0\r\n\r\n{vote}",
        f"{first}content-length: {len(second)}\r\n\r\n{second}",
        f"GET /approvals HTTP/1.1\r\n{head}content-length: 0\r\n\r\n{second}",
        f"GET /approvals HTTP/1.1\r\n{head}content-length: {len(second)}\r\n\r\n{second}",
        f"GET {path} HTTP/1.1\r\n{head}{length}\r\n{vote}",
        f"POST {path} HTTP/1.0\r\n{head}{length}\r\n{vote}",
        f"POST {path}\r\n\r\n{vote}",
        f"POST {path} HTTP/1.1\r\n{head} {PROOF_HEADER}: {proof}\r\n{length}\r\n{vote}",
        f"{first}{PROOF_HEADER} : {proof}\r\n{length}\r\n{vote}",
        f"{first}x_frontdesk_proof: {proof}\r\n{length}\r\n{vote}",
        f"{first}{PROOF_HEADER}:\r\n{length}\r\n{vote}",
        f"{first}{PROOF_HEADER}: \x00\r\n{length}\r\n{vote}",
        f"{first}expect: 100-continue\r\n{length}\r\n{vote}",
        f"{first}upgrade: h2c\r\nconnection: upgrade\r\nhttp2-settings: AAA\r\n{length}\r\n{vote}",
        f"{first}connection: {PROOF_HEADER}\r\n{length}\r\n{vote}",
    ]
    for number, text in enumerate(written):
        for where in ("page", "public"):
            method = "GET" if text.startswith("GET") else "POST"
            raw = text.replace(f"{host}:{port}", loot.origin(where).removeprefix("http://")).encode("latin-1")
            yield Try(port=where, method=method, target=f"{number}", raw=raw)


FAMILIES = (
    plain,
    looks,
    files,
    methods,
    addresses,
    origins,
    fields,
    kinds,
    replays,
    cookies,
    guesses,
    places,
    smuggled,
)
"""In this order: the later ones use what the earlier ones saw."""
