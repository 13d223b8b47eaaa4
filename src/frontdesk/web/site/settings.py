"""Settings: what holds, and where it came from."""

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import msgspec
from starlette.responses import Response

from frontdesk.app.office.settings import SettingLine
from frontdesk.config.effective import SecretStanding
from frontdesk.config.settings import Origin
from frontdesk.formats import quoting
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.site.base import PAGES, Site

LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class SettingsQuery(msgspec.Struct, frozen=True, kw_only=True):
    q: str = ""
    all: str = ""
    """Anything for those that nothing sets, too."""


@PAGES.add("GET", "/settings", need=Need.LOOK_AT_ALL, query=SettingsQuery)
async def show_settings(site: Site, call: HttpCall) -> Response:
    """What is set, and by what."""
    search, query = quoting.one_line(call.query.q, 100), call.query
    view = await site.office_for(call).show_settings(search)
    found = [_told(each, view["file"]) for each in view["items"]]
    wanted = [each for each in found if query.all or search or each["origin"] != Origin.DEFAULT]
    everything = (await site.office_for(call).show_settings())["items"] if search else view["items"]
    tables = list(dict.fromkeys(map(_table, wanted)))

    def place(line: Mapping[str, str]) -> int:
        return tables.index(_table(line))

    values = {
        "view": view,
        "search": search,
        "shows_all": bool(query.all),
        "groups": [(name, list(each)) for name, each in groupby(sorted(wanted, key=place), _table)],
        "count": len(everything),
        "set_count": sum(each["origin"] != Origin.DEFAULT for each in everything),
        "missing": [each for each in everything if each["secret"] == SecretStanding.MISSING],
    }
    return await site.page(call, "settings", "settings.html", values)


def _told(line: SettingLine, file: str) -> dict[str, Any]:
    """A line as the page has it: its description without the marks that its text has in the reference, and
    the file only where it is another one."""
    described = LINK.sub(r"\1", line["help"]).replace("`", "")
    return {**line, "help": described, "where": None if line["where"] == file else line["where"]}


def _table(line: Mapping[str, str]) -> str:
    return line["name"].rpartition(".")[0]
