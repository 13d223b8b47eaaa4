"""Where the database is: the URL, with our parameters taken off and a form that may be shown."""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from frontdesk import errors

SCHEMA = "frontdesk"
POOL = 10
MAX_POOL = 1000

_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_HOST = r"(?:\[[^\]@/?#]*\]|[^:,\[@/?#]*)(?::\d*)?"
# Whatever does not fit exactly may have a part of a password where another part belongs, and is not shown.
_URL = re.compile(
    r"(?:postgres|postgresql)://(?:(?P<user>[^:@/?#]*)(?P<password>:[^@/?#]*)?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<database>/[^@/?#]*)?(?:\?(?P<query>[^=&#]+=[^&#]*(?:&[^=&#]+=[^&#]*)*)?)?"
)


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """``name`` is for people: it has neither password nor parameters."""

    dsn: str = field(repr=False)
    name: str
    schema: str = SCHEMA
    pool: int = POOL


def parse_url(url: str) -> DatabaseAddress:
    found = _URL.fullmatch(url)
    if found is None:
        raise errors.UnknownStore(
            url="postgresql://…", hint=" (percent-encode what is special in the password)"
        )
    values = parse_qsl(found["query"] or "", keep_blank_values=True)
    ours = {key: value for key, value in values if key in ("schema", "pool")}
    others = urlencode([(key, value) for key, value in values if key not in ours])
    return DatabaseAddress(
        dsn=url.partition("?")[0] + ("?" + others if others else ""),
        name=_shown(found),
        schema=_schema(ours.get("schema", SCHEMA)),
        pool=_pool(ours.get("pool", str(POOL))),
    )


def _shown(found: re.Match[str]) -> str:
    user = f"{found['user']}@" if found["user"] else ""
    return f"postgresql://{user}{found['hosts']}{found['database'] or ''}"


def _schema(name: str) -> str:
    if not _SCHEMA_NAME.fullmatch(name):
        allowed = "up to 63 of a-z, 0-9 and _, not beginning with a digit or pg_"
        raise errors.InvalidSetting(key="schema", value=name, allowed=allowed)
    return name


def _pool(size: str) -> int:
    if not (size.isascii() and size.isdigit() and 1 <= int(size) <= MAX_POOL):
        raise errors.InvalidSetting(key="pool", value=size, allowed=f"1 to {MAX_POOL}")
    return int(size)
