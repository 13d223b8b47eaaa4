"""The reference of the HTTP API, put together from its OpenAPI document: for a page, and for the docs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

Schema = Mapping[str, Any]

SUCCESS = "2"
MOST_NESTED = 3


class FieldEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what is sent or comes back."""

    name: str
    """With the names that it is in, where it is part of another one."""
    kind: str
    is_required: bool
    about: str = ""


class ProblemEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Why it may be refused, by the status of the answer."""

    status: str
    codes: tuple[str, ...]


class ApiEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one address."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    roles: tuple[str, ...]
    parameters: tuple[FieldEntry, ...]
    """In the path, and after the question mark."""
    headers: tuple[FieldEntry, ...]
    body: tuple[FieldEntry, ...]
    answer: tuple[FieldEntry, ...]
    gives: str
    """The media type of the answer, or what it is a list of."""
    problems: tuple[ProblemEntry, ...]


class ApiGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses about one kind of thing."""

    name: str
    entries: tuple[ApiEntry, ...]


def group(document: Schema, prefix: str) -> list[ApiGroup]:
    """What the document tells of addresses that begin so, by the first name after that."""
    reader = DocumentReader(document["components"]["schemas"])
    groups: dict[str, list[ApiEntry]] = {}
    for path, methods in document["paths"].items():
        if path.startswith(prefix):
            name = path.removeprefix(prefix).strip("/").split("/")[0]
            groups.setdefault(name, []).extend(reader.entry(path, *each) for each in methods.items())
    return [ApiGroup(name=name, entries=tuple(found)) for name, found in groups.items()]


class DocumentReader:
    """Reads operations, with the schemas that they refer to."""

    def __init__(self, schemas: Schema) -> None:
        self._schemas = schemas

    def entry(self, path: str, method: str, told: Schema) -> ApiEntry:
        answers = told["responses"]
        status = next(each for each in answers if each.startswith(SUCCESS))
        content = answers[status].get("content", {})
        media, shape = next(((media, each["schema"]) for media, each in content.items()), ("", {}))
        body = told.get("requestBody", {}).get("content", {})
        sent: Schema = next((each["schema"] for each in body.values()), {})
        return ApiEntry(
            id=told["operationId"],
            method=method.upper(),
            path=path,
            summary=told["summary"],
            description=told.get("description", ""),
            roles=tuple(told.get("x-roles", ())),
            parameters=tuple(self._parameters(told, "path", "query")),
            headers=tuple(self._parameters(told, "header")),
            body=tuple(self._fields(sent)),
            answer=tuple(self._fields(shape)),
            gives=self._kind(shape) if media.endswith("json") and "ndjson" not in media else media,
            problems=tuple(
                ProblemEntry(status=status, codes=tuple(_codes(each)))
                for status, each in answers.items()
                if not status.startswith(SUCCESS)
            ),
        )

    def _parameters(self, told: Schema, *places: str) -> Iterator[FieldEntry]:
        for each in told["parameters"]:
            if each["in"] in places:
                kind, about = self._kind(each["schema"]), each["schema"].get("description", "")
                yield FieldEntry(name=each["name"], kind=kind, is_required=each["required"], about=about)

    def _fields(self, schema: Schema, within: str = "", depth: int = 0) -> Iterator[FieldEntry]:
        """Of an object, or of what a list is a list of."""
        whole = self._whole(schema)
        if "items" in whole:
            yield from self._fields(whole["items"], f"{within}[].", depth)
        for name, field in whole.get("properties", {}).items():
            required = name in whole.get("required", ())
            about = field.get("description", "")
            yield FieldEntry(name=within + name, kind=self._kind(field), is_required=required, about=about)
            if depth < MOST_NESTED:
                inner = self._whole(field)
                nested = f"{within}{name}[]." if "items" in inner else f"{within}{name}."
                yield from self._fields(inner.get("items", inner), nested, depth + 1)

    def _whole(self, schema: Schema) -> Schema:
        """What is referred to, also where there may be nothing instead."""
        if "$ref" in schema:
            found: Schema = self._schemas[schema["$ref"].rpartition("/")[2]]
            return found
        present = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
        return self._whole(present[0]) if len(present) == 1 else schema

    def _kind(self, schema: Schema) -> str:
        if "$ref" in schema:
            return self._kind(self._whole(schema))
        if "anyOf" in schema:
            return " or ".join(dict.fromkeys(map(self._kind, schema["anyOf"])))
        if "enum" in schema or "const" in schema:
            return ", ".join(f"“{each}”" for each in schema.get("enum", [schema.get("const")]))
        if "items" in schema:
            return f"list of {self._kind(schema['items'])}"
        kind = schema.get("type", "anything")
        return " or ".join(kind) if isinstance(kind, Sequence) and not isinstance(kind, str) else str(kind)


def _codes(answer: Schema) -> Sequence[str]:
    """The names of problems that an answer may be."""
    (told,) = answer["content"].values()
    named: Sequence[str] = told["schema"]["allOf"][-1]["properties"]["code"]["enum"]
    return named
