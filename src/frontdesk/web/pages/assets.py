"""The files that pages load. Their address has a digest of what is in them: a browser keeps each for good."""

import gzip
import hashlib
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk.web.endpoints import HttpCall
from frontdesk.web.operations import Form, Table

PATH = "/static"
LICENCE = ".LICENSE.txt"
VERSION_DIGITS = 16
ICON_SIZES = (192, 512)
PACKED_SUFFIXES = (".css", ".js", ".svg")
KEPT = {
    "cache-control": "public, max-age=31536000, immutable",
    "cross-origin-resource-policy": "same-origin",
    "vary": "accept-encoding",
}

OPERATIONS = Table()


def _read(folder: Traversable) -> dict[str, bytes]:
    """Those that browsers load: a licence lies there for whoever has the package."""
    found = (each for each in folder.iterdir() if not each.name.endswith(LICENCE))
    return {each.name: each.read_bytes() for each in sorted(found, key=lambda each: each.name)}


FILES = _read(resources.files(__package__).joinpath("static"))
VERSION = hashlib.sha256(repr(FILES).encode()).hexdigest()[:VERSION_DIGITS]
"""One for all of them: they name each other."""
ADDRESS = f"{PATH}/{VERSION}"
PACKED = {
    name: gzip.compress(data, mtime=0) for name, data in FILES.items() if name.endswith(PACKED_SUFFIXES)
}
"""A third as long. Pages are not packed: how long one is then would tell of what is in it."""


@OPERATIONS.add("GET", f"{PATH}/{{version}}/{{name}}.css", form=Form.STYLE)
async def show_style(_: object, call: HttpCall) -> Response:
    """How pages look."""
    return _file(call, ".css", Form.STYLE)


@OPERATIONS.add("GET", f"{PATH}/{{version}}/{{name}}.js", form=Form.CODE)
async def show_code(_: object, call: HttpCall) -> Response:
    """What pages do in the browser."""
    return _file(call, ".js", Form.CODE)


@OPERATIONS.add("GET", f"{PATH}/{{version}}/{{name}}.svg", form=Form.PICTURE)
async def show_icon(_: object, call: HttpCall) -> Response:
    """The picture in the browser's tab."""
    return _file(call, ".svg", Form.PICTURE)


@OPERATIONS.add("GET", f"{PATH}/{{version}}/{{name}}.png", form=Form.PHOTO)
async def show_picture(_: object, call: HttpCall) -> Response:
    """The picture on a phone."""
    return _file(call, ".png", Form.PHOTO)


@OPERATIONS.add("GET", "/manifest.webmanifest", form=Form.MANIFEST)
async def show_manifest(_: object, call: HttpCall) -> Response:
    """What a phone has to know to install the site."""
    root = call.request.scope.get("root_path", "")
    icons = [
        {"src": f"{root}{ADDRESS}/icon-{size}.png", "sizes": f"{size}x{size}", "type": Form.PHOTO}
        for size in ICON_SIZES
    ]
    told = {
        "name": "frontdesk",
        "short_name": "frontdesk",
        "start_url": f"{root}/",
        "scope": f"{root}/",
        "display": "standalone",
        "background_color": "#f4f5f7",
        "theme_color": "#f4f5f7",
        "icons": icons,
    }
    return Response(msgspec.json.encode(told), media_type=Form.MANIFEST)


def _file(call: HttpCall, suffix: str, form: Form) -> Response:
    name = call.params["name"] + suffix
    if call.params["version"] != VERSION or name not in FILES:
        raise HTTPException(HTTPStatus.NOT_FOUND, "There is nothing of that name.")
    if name in PACKED and _takes_packed(call.request.headers.get("accept-encoding", "")):
        return Response(PACKED[name], headers=KEPT | {"content-encoding": "gzip"}, media_type=form)
    return Response(FILES[name], headers=KEPT, media_type=form)


def _takes_packed(accepted: str) -> bool:
    """Whether a browser says so, as all do; one that weighs its encodings gets the plain file."""
    return "gzip" in (each.strip().lower() for each in accepted.split(","))
