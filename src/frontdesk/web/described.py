"""The description of a port: of its rows, and of channels' own addresses as far as their channels describe
them."""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from frontdesk.contracts import channels
from frontdesk.model.confirmations import Mode
from frontdesk.web import browsers, openapi, problems
from frontdesk.web.openapi import BESIDES, HEADER, HEADERS, REF, REQUEST_ID, TEXT
from frontdesk.web.operations import Form, Operation
from frontdesk.web.passing import Endpoint

OURS = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.NOT_FOUND)
"""Statuses with which the port itself refuses, whatever the channel."""
BODY_STATUSES = (408, 413, 415)
THEIRS = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
SCHEME = "user"
SECURITY = {"type": "http", "scheme": "bearer", "description": "The token of somebody who uses the channel."}
EVENT = {
    "description": "One server-sent event; its data is JSON, or a word that ends the stream.",
    "type": "object",
    "properties": {"event": TEXT, "data": TEXT},
    "required": ["data"],
}

Plain = dict[str, Any]


def showing(describe: Callable[[], Plain]) -> Endpoint:
    """Shows a document, which is made for whoever asks first: few do, and it takes as long as all else that a
    port needs to start."""

    @cache
    def written(root: str) -> bytes:
        """The document where addresses begin so."""
        return msgspec.json.encode({**describe(), **({"servers": [{"url": root}]} if root else {})})

    async def show_document(request: Request) -> Response:
        browsers.check_origin(request)
        document = await asyncio.to_thread(written, request.scope.get("root_path", ""))
        return Response(document, media_type=Form.JSON)

    return show_document


def document(
    about: tuple[str, str], rows: Iterable[Operation], mode: Mode, routes: Iterable[channels.Route]
) -> Plain:
    """The document with a title and a description."""
    return add_channels(openapi.document(*about, rows, mode), routes)


def add_channels(document: Plain, routes: Iterable[channels.Route]) -> Plain:
    """The document with the addresses that are described. Those of an account with a name are not: whoever
    reads the document need not know what accounts and profiles there are."""
    shown = [(route, route.about) for route in routes if route.about and route.path == route.short]
    if not shown:
        return document
    kinds = {kind for _, about in shown for kind in (about.gives, about.refusal, about.body) if kind}
    ordered = sorted([*kinds, problems.ProblemDocument], key=str)
    refs, components = msgspec.json.schema_components(ordered, ref_template=REF)
    schemas = dict(zip(ordered, refs, strict=True))
    paths, parts = dict(document["paths"]), dict(document["components"])
    for route, about in shown:
        path = re.sub(r":\w+}", "}", route.path)
        paths[path] = paths.get(path, {}) | {route.method.lower(): _operation(path, about, schemas)}
    parts["schemas"] = components | parts["schemas"]
    parts["headers"] = {name: HEADERS[name] for name in HEADERS if HEADER.format(name=name) in str(paths)}
    parts["securitySchemes"] = parts["securitySchemes"] | {SCHEME: SECURITY}
    return document | {"paths": paths, "components": parts}


def _operation(path: str, about: channels.RouteAbout, schemas: Mapping[Any, Plain]) -> Plain:
    content: Plain = {Form.JSON: {"schema": schemas[about.gives]}}
    if about.streams:
        content[Form.EVENTS] = {"schema": EVENT}
    answer = {"description": HTTPStatus.OK.phrase, "headers": _headers(), "content": content}
    statuses = {*OURS, *THEIRS, *about.statuses, *(BODY_STATUSES if about.body else ())}
    refused = {
        str(int(status)): _refusal(HTTPStatus(status), about, schemas)
        for status in sorted(map(int, statuses))
    }
    told: Plain = {
        "operationId": about.name,
        "summary": about.summary,
        "parameters": list(_parameters(path, about)),
        "responses": {"200": answer} | refused,
        "security": [{SCHEME: []}],
    }
    if about.body:
        body = {Form.JSON: {"schema": schemas[about.body]}}
        told["requestBody"] = {"required": True, "content": body}
    return told


def _parameters(path: str, about: channels.RouteAbout) -> Iterable[Plain]:
    for name in re.findall(r"{(\w+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": TEXT}
    for place, record in (("query", about.query), ("header", about.headers)):
        if record is None:
            continue
        _, components = msgspec.json.schema_components([record], ref_template=REF)
        for name, field in components[record.__name__]["properties"].items():
            # What may be missing is not sent at all: there is no null in an address or a header.
            kinds = [kind for kind in field.get("anyOf", [field]) if kind != {"type": "null"}]
            yield {"name": name, "in": place, "required": False, "schema": kinds[0]}


def _refusal(status: HTTPStatus, about: channels.RouteAbout, schemas: Mapping[Any, Plain]) -> Plain:
    content: Plain = {
        Form.JSON: {"schema": schemas[about.refusal]},
        problems.MEDIA_TYPE: {"schema": schemas[problems.ProblemDocument]},
    }
    return {"description": status.phrase, "headers": _headers(BESIDES.get(status)), "content": content}


def _headers(besides: str | None = None) -> Plain:
    return {name: {"$ref": HEADER.format(name=name)} for name in (REQUEST_ID, besides) if name}
