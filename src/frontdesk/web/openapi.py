"""The OpenAPI document, made from the table of addresses and the records that they take and give."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from importlib import metadata
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.formats.canonical import MAX_WHOLE
from frontdesk.model.access import Role
from frontdesk.model.confirmations import Mode
from frontdesk.model.repeats import MAX_KEY_CHARACTERS
from frontdesk.model.visitors import MAY
from frontdesk.web import problems
from frontdesk.web.browsers import PAGE_HEADER
from frontdesk.web.operations import (
    KEY_HEADER,
    PROOF_HEADER,
    VISITOR_HEADER,
    BrowserOrigin,
    Form,
    Operation,
    Proof,
    Who,
)

VERSION = "3.1.0"
MAX_ID_CHARACTERS = 64
ID_PATTERN = "^[A-Za-z0-9_-]+$"
"""Of whatever an address names."""
KEY_SCHEMA = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_KEY_CHARACTERS,
    "pattern": "^[ -~]+$",
    "description": "Sent again with the same key, within a day, it happens once, and is answered the same.",
}
VISITOR_SCHEMA = {
    "type": "string",
    "description": "Beside a session: whose it is to be, by their id, as in an address. It is refused where "
    "somebody else has signed in since.",
}
EXACT_VALUE = "ExactValue"
REF = "#/components/schemas/{name}"

EVERYWHERE = (errors.InvalidInput, errors.NotAllowed, errors.StoreError, 421, 500)
"""Problems that every address has."""
WITH_BODY = (errors.InexactJson, 408, 413, 415)
NAMES: Mapping[str, problems.Kind] = {
    "session_id": errors.UnknownSession,
    "turn_id": errors.UnknownTurn,
    "delivery_id": errors.UnknownDelivery,
    "checkpoint": errors.UnknownCheckpoint,
    "digest": errors.UnknownFile,
    "id": errors.UnknownConfirmation,
}
"""What is not there, by what the path calls it."""
EXACT_SCHEMA = {
    "description": "JSON that every reader reads alike: no whole numbers beyond ±(2^53-1).",
    "anyOf": [
        {"type": ["null", "boolean", "string"]},
        {"type": "number", "minimum": -MAX_WHOLE, "maximum": MAX_WHOLE},
        {"type": "array", "items": {"$ref": REF.format(name=EXACT_VALUE)}},
        {"type": "object", "additionalProperties": {"$ref": REF.format(name=EXACT_VALUE)}},
    ],
}
SCHEMES = {
    "approver": {"type": "http", "scheme": "bearer", "description": "The token of somebody who decides."},
    "agent": {"type": "http", "scheme": "bearer", "description": "The token of a program that asks."},
    "token": {"type": "http", "scheme": "bearer", "description": "A token that was made for somebody."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "frontdesk",
        "description": "Somebody who signed in, and looks. With TLS it begins __Host- or __Secure-.",
    },
    "proof": {
        "type": "apiKey",
        "in": "header",
        "name": PROOF_HEADER,
        "description": "What signing in gave out, once: without it a session only looks.",
    },
}

WANTED = {
    Who.REQUESTER: ("agent",),
    Who.READER: ("agent", "approver"),
    Who.APPROVER: ("approver",),
    Who.VISITOR: ("session", "token"),
}

TEXT = {"type": "string"}
BINARY = {"type": "string", "format": "binary"}
HEADER = "#/components/headers/{name}"
REQUEST_ID, RETRY_AFTER, AUTHENTICATE = "X-Request-Id", "Retry-After", "WWW-Authenticate"
PREFERENCE_APPLIED = "preference-applied"
HEADERS = {
    REQUEST_ID: {
        "description": "The request in the log; the one that was sent, if it was a short word.",
        "schema": TEXT,
    },
    RETRY_AFTER: {
        "description": "In how many seconds it is worth trying again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    AUTHENTICATE: {"description": "What kind of credential is wanted.", "required": True, "schema": TEXT},
    PREFERENCE_APPLIED: {"description": "How long we would have waited.", "schema": TEXT},
}
BESIDES: Mapping[int, str] = {401: AUTHENTICATE, 429: RETRY_AFTER, 503: RETRY_AFTER}
"""What comes with a problem, besides what comes with every answer."""

Plain = dict[str, Any]


def document(title: str, description: str, operations: Iterable[Operation], mode: Mode) -> Plain:
    """The document of one port; the mode says who needs a credential there."""
    operations = list(operations)
    schemas = Schemas(operations)
    paths: dict[str, Plain] = defaultdict(dict)
    for operation in operations:
        paths[operation.path][operation.method.lower()] = _operation(operation, schemas, mode)
    said = str(paths)
    return {
        "openapi": VERSION,
        "info": {"title": title, "version": metadata.version("frontdesk"), "description": description},
        "paths": dict(paths),
        "components": {
            "schemas": schemas.components,
            "headers": {name: each for name, each in HEADERS.items() if HEADER.format(name=name) in said},
            "securitySchemes": {name: each for name, each in SCHEMES.items() if f"'{name}': []" in said},
        },
    }


class Schemas:
    """The schemas of all records, each with the name under which it is referred to."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        answers = {kind for each in operations for kinds in each.answers.values() for kind in kinds}
        bodies = {each.body for each in operations if each.body is not None}
        kinds = sorted(answers | bodies | {problems.ProblemDocument}, key=str)
        refs, components = msgspec.json.schema_components(kinds, ref_template=REF)
        self._refs = dict(zip(kinds, refs, strict=True))
        self.components = components | {EXACT_VALUE: EXACT_SCHEMA}
        for body in bodies:
            # Whatever else is in a body is passed over, and has to be exact all the same.
            rest = {"$ref": REF.format(name=EXACT_VALUE)}
            self.components[body.__name__].setdefault("additionalProperties", rest)

    def of(self, kinds: Sequence[Any]) -> Mapping[str, Any]:
        refs = [self._refs[kind] for kind in kinds]
        return refs[0] if len(refs) == 1 else {"anyOf": refs}


def _operation(operation: Operation, schemas: Schemas, mode: Mode) -> Plain:
    answers = {str(int(status)): _answer(operation, status, schemas) for status in operation.answers}
    told: Plain = {
        # A page and what it asks for are often called the same.
        "operationId": f"{operation.name}_page" if operation.form is Form.PAGE else operation.name,
        "summary": operation.summary,
        **({"description": operation.description} if operation.description else {}),
        "parameters": list(_parameters(operation)),
        "responses": answers | _problems(operation, schemas),
        "security": _security(operation, mode),
    }
    if operation.need:
        told["x-roles"] = [role for role in Role if operation.need in MAY[role]]
    if operation.uploads:
        told["requestBody"] = {"required": True, "content": {Form.BYTES: {"schema": BINARY}}}
    if operation.body is not None:
        content = {Form.JSON: {"schema": schemas.of([operation.body])}}
        told["requestBody"] = {"required": operation.needs_body, "content": content}
    return told


def _parameters(operation: Operation) -> Iterable[Plain]:
    for name in operation.params:
        schema = {"type": "string", "pattern": ID_PATTERN, "maxLength": MAX_ID_CHARACTERS}
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    if operation.is_keyed:
        yield {"name": KEY_HEADER, "in": "header", "required": False, "schema": KEY_SCHEMA}
    if operation.needs_proof:
        yield {"name": VISITOR_HEADER, "in": "header", "required": False, "schema": VISITOR_SCHEMA}
    if operation.origin is BrowserOrigin.SCRIPT:
        yield {"name": PAGE_HEADER, "in": "header", "required": True, "schema": {"const": "1"}}
    for place, record in (("query", operation.query), ("header", operation.headers)):
        (schema,), components = msgspec.json.schema_components([record], ref_template=REF)
        whole = components.get(record.__name__, schema)
        for name, field in whole["properties"].items():
            required = name in whole.get("required", ())
            yield {"name": name, "in": place, "required": required, "schema": field}


def _answer(operation: Operation, status: HTTPStatus, schemas: Schemas) -> Plain:
    headers = _headers(PREFERENCE_APPLIED if operation.waits else None)
    told: Plain = {"description": status.phrase, "headers": headers}
    if kinds := operation.answers[status]:
        told["content"] = {operation.form: {"schema": schemas.of(kinds)}}
    elif operation.form is not Form.JSON:
        told["content"] = {operation.form: {"schema": TEXT}}
    return told


def _headers(besides: str | None = None) -> Plain:
    """What comes with an answer: the same with each, and one header more."""
    return {name: {"$ref": HEADER.format(name=name)} for name in (REQUEST_ID, besides) if name}


def _problems(operation: Operation, schemas: Schemas) -> Plain:
    told = {}
    for status, kinds in problems.kinds_by_status(problems_of(operation)).items():
        names = sorted({problems.GENERAL[status], *map(problems.code_of, kinds)})
        told[str(status)] = _problem(HTTPStatus(status), names, schemas)
        if operation.form is Form.PAGE:
            told[str(status)]["content"] = {Form.PAGE: {"schema": TEXT}}
    return told


def problems_of(operation: Operation) -> Iterable[problems.Kind]:
    """What a row may answer with instead: what every address has, what follows from its columns, and what it
    says itself."""
    yield from EVERYWHERE
    yield from operation.problems
    if operation.who not in (Who.EVERYBODY, Who.OWNER):
        yield HTTPStatus.UNAUTHORIZED
        yield errors.LockedOut if operation.who is Who.VISITOR else HTTPStatus.TOO_MANY_REQUESTS
    if operation.needs_proof:
        yield errors.WrongVisitor
    if operation.is_keyed:
        yield from (errors.OutcomeUnknown, errors.AnswerNotKept, errors.KeyReused)
    for name in operation.params:
        yield NAMES.get(name, HTTPStatus.NOT_FOUND)
    if operation.body is not None:
        yield from WITH_BODY


def _problem(status: HTTPStatus, codes: Sequence[str], schemas: Schemas) -> Plain:
    named = {"properties": {"code": {"enum": codes}}}
    schema = {"allOf": [schemas.of([problems.ProblemDocument]), named]}
    return {
        "description": f"{status.phrase}: {', '.join(codes)}",
        "headers": _headers(BESIDES.get(status)),
        "content": {problems.MEDIA_TYPE: {"schema": schema}},
    }


def _security(operation: Operation, mode: Mode) -> list[Plain]:
    who = operation.who
    if operation.needs_proof:
        # A link's token is in the body, where no scheme is.
        link: list[Plain] = [{}] if operation.proof is Proof.LINK else []
        return [{"session": [], "proof": []}, {"token": []}, *link]
    if operation.proof is Proof.SIGN_IN:
        return []
    nothing: list[Plain] = [{}] if mode is Mode.SOLO and who in (Who.REQUESTER, Who.READER) else []
    return nothing + [{scheme: []} for scheme in WANTED.get(who, ())]
