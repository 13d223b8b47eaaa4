"""The OpenAPI document, made from the table of addresses and the records that they take and give."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from importlib import metadata
from typing import Any

import msgspec

from frontdesk.formats.canonical import MAX_WHOLE
from frontdesk.model.confirmations import Mode
from frontdesk.web.confirmations import records
from frontdesk.web.confirmations.admission import Who
from frontdesk.web.confirmations.browsers import JSON
from frontdesk.web.confirmations.streams import PREFERENCE_APPLIED
from frontdesk.web.confirmations.table import ID_PATTERN, MAX_ID_CHARACTERS, Operation

VERSION = "3.1.0"
PROBLEM = "application/problem+json"
REF = "#/components/schemas/{name}"

EVERYWHERE = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.MISDIRECTED_REQUEST,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
WITH_BODY = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
EXACT_VALUE = {
    "description": "JSON that every reader reads alike: no whole numbers beyond ±(2^53-1).",
    "anyOf": [
        {"type": ["null", "boolean", "string"]},
        {"type": "number", "minimum": -MAX_WHOLE, "maximum": MAX_WHOLE},
        {"type": "array", "items": {"$ref": REF.format(name=records.EXACT_VALUE)}},
        {"type": "object", "additionalProperties": {"$ref": REF.format(name=records.EXACT_VALUE)}},
    ],
}
SCHEMES = {
    "approver": {"type": "http", "scheme": "bearer", "description": "The token of somebody who decides."},
    "agent": {"type": "http", "scheme": "bearer", "description": "The token of a program that asks."},
}

HEADER = "#/components/headers/{name}"
REQUEST_ID, RETRY_AFTER, AUTHENTICATE = "X-Request-Id", "Retry-After", "WWW-Authenticate"
HEADERS = {
    REQUEST_ID: {
        "description": "The request in the log; the one that was sent, if it was a short word.",
        "schema": {"type": "string"},
    },
    RETRY_AFTER: {
        "description": "In how many seconds it is worth trying again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    AUTHENTICATE: {
        "description": "What kind of credential is wanted.",
        "required": True,
        "schema": {"type": "string"},
    },
    PREFERENCE_APPLIED: {"description": "How long we would have waited.", "schema": {"type": "string"}},
}
BESIDES: Mapping[HTTPStatus, str] = {
    HTTPStatus.UNAUTHORIZED: AUTHENTICATE,
    HTTPStatus.TOO_MANY_REQUESTS: RETRY_AFTER,
    HTTPStatus.SERVICE_UNAVAILABLE: RETRY_AFTER,
}
"""What comes with a problem, besides what comes with every answer."""
NOT_HTTP = {"text/plain": {"schema": {"type": "string", "description": "For what is not HTTP at all."}}}

Plain = dict[str, Any]


def document(operations: Iterable[Operation], mode: Mode) -> Plain:
    operations = list(operations)
    schemas = Schemas(operations)
    paths: dict[str, Plain] = defaultdict(dict)
    for operation in operations:
        paths[operation.path][operation.method.lower()] = _operation(operation, schemas, mode)
    return {
        "openapi": VERSION,
        "info": {
            "title": "frontdesk confirmations",
            "version": metadata.version("frontdesk"),
            "description": "Holds a dangerous action until people allow exactly that action.",
        },
        "paths": dict(paths),
        "components": {"schemas": schemas.components, "headers": HEADERS, "securitySchemes": SCHEMES},
    }


class Schemas:
    """The schemas of all records, each with the name under which it is referred to."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        used = {kind for each in operations for kind in _kinds(each)} | {records.Problem}
        kinds = sorted(used, key=lambda kind: kind.__name__)
        refs, components = msgspec.json.schema_components(kinds, ref_template=REF)
        self._refs = dict(zip(kinds, refs, strict=True))
        self.components = components | {records.EXACT_VALUE: EXACT_VALUE}
        for each in operations:
            if each.body is not None:
                self._bound_rest(each.body)

    def _bound_rest(self, body: type[msgspec.Struct]) -> None:
        """Whatever else is in a body is passed over, and has to be exact all the same."""
        rest = {"$ref": REF.format(name=records.EXACT_VALUE)}
        self.components[body.__name__].setdefault("additionalProperties", rest)

    def of(self, kinds: Sequence[type[msgspec.Struct]]) -> Mapping[str, Any]:
        refs = [self._refs[kind] for kind in kinds]
        return refs[0] if len(refs) == 1 else {"anyOf": refs}

    def fields(self, kind: type[msgspec.Struct]) -> Mapping[str, Any]:
        """The schema of each field of a record, and nothing of the record."""
        (schema,), components = msgspec.json.schema_components([kind], ref_template=REF)
        fields: Mapping[str, Any] = components.get(kind.__name__, schema)["properties"]
        return fields


def _kinds(operation: Operation) -> Iterable[type[msgspec.Struct]]:
    yield from (kind for kinds in operation.answers.values() for kind in kinds)
    if operation.body is not None:
        yield operation.body


def _operation(operation: Operation, schemas: Schemas, mode: Mode) -> Plain:
    told: Plain = {
        "operationId": getattr(operation.handle, "__name__", operation.summary),
        "summary": operation.summary,
        "parameters": list(_parameters(operation, schemas)),
        "responses": _answers(operation, schemas) | _problems(operation, schemas),
        "security": _security(operation.who, mode),
    }
    if operation.body is not None:
        content = {JSON: {"schema": schemas.of([operation.body])}}
        told["requestBody"] = {"required": operation.needs_body, "content": content}
    return told


def _parameters(operation: Operation, schemas: Schemas) -> Iterable[Plain]:
    if operation.names_one:
        schema = {"type": "string", "pattern": ID_PATTERN, "maxLength": MAX_ID_CHARACTERS}
        yield {"name": "id", "in": "path", "required": True, "schema": schema}
    for name, schema in schemas.fields(operation.query).items():
        yield {"name": name, "in": "query", "required": False, "schema": schema}
    for name, schema in schemas.fields(operation.headers).items():
        yield {"name": name, "in": "header", "required": False, "schema": schema}


def _answers(operation: Operation, schemas: Schemas) -> Plain:
    return {
        str(int(status)): _answer(operation, status, kinds, schemas)
        for status, kinds in operation.answers.items()
    }


def _answer(
    operation: Operation, status: HTTPStatus, kinds: Sequence[type[msgspec.Struct]], schemas: Schemas
) -> Plain:
    waits = operation.headers is records.Waits
    told: Plain = {"description": status.phrase, "headers": _headers(PREFERENCE_APPLIED if waits else None)}
    if kinds:
        told["content"] = {operation.media_type: {"schema": schemas.of(kinds)}}
    elif operation.is_endless:
        told["content"] = {operation.media_type: {"schema": {"type": "string"}}}
    return told


def _headers(besides: str | None = None) -> Plain:
    """What comes with an answer: the same with each, and one header more."""
    return {name: {"$ref": HEADER.format(name=name)} for name in (REQUEST_ID, besides) if name}


def _problems(operation: Operation, schemas: Schemas) -> Plain:
    statuses = {*EVERYWHERE, *operation.problems}
    if operation.who is not Who.EVERYBODY:
        statuses.add(HTTPStatus.UNAUTHORIZED)
    if operation.names_one:
        statuses.add(HTTPStatus.NOT_FOUND)
    if operation.body is not None:
        statuses.update(WITH_BODY)
    return {str(int(each)): _problem(each, schemas) for each in sorted(statuses)}


def _problem(status: HTTPStatus, schemas: Schemas) -> Plain:
    content: Plain = {PROBLEM: {"schema": schemas.of([records.Problem])}}
    if status is HTTPStatus.BAD_REQUEST:
        content |= NOT_HTTP
    return {
        "description": status.phrase,
        "headers": _headers(BESIDES.get(status)),
        "content": content,
    }


def _security(who: Who, mode: Mode) -> list[Plain]:
    nothing: list[Plain] = [{}] if mode is Mode.SOLO else []
    match who:
        case Who.EVERYBODY:
            return []
        case Who.REQUESTER:
            return [*nothing, {"agent": []}]
        case Who.READER:
            return [*nothing, {"agent": []}, {"approver": []}]
        case Who.APPROVER:
            return [{"approver": []}]
