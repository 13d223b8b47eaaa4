"""HTML, escaped by the way it is made: a text is a text wherever it is put."""

from html import escape
from urllib.parse import quote

ICON_SOURCE = "data:"
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" '
    'fill="#1d5fd1"/><path d="M4 8.5l2.7 2.7L12 5.5" fill="none" stroke="#fff" stroke-width="2"/></svg>'
)


class Markup(str):
    """HTML that stands in a page as it is. Only the functions here make it."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | bool | None) -> Markup:
    """An element. ``class_`` is written class, ``aria_live`` aria-live; False and None are left out."""
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(f"{opening}{join(*children)}</{name}>")


def void(name: str, /, **attributes: str | bool | None) -> Markup:
    """An element that holds nothing."""
    return Markup(f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>")


def join(*children: str) -> Markup:
    return Markup("".join(each if isinstance(each, Markup) else escape(each) for each in children))


def page(title: str, body: Markup, *, script: str, style: str) -> Markup:
    """A whole page; script and style are files of ours."""
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="robots", content="noindex"),
        void("meta", name="color-scheme", content="light dark"),
        void("link", rel="icon", href=f"{ICON_SOURCE}image/svg+xml,{quote(_ICON)}"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    return Markup(
        f"<!doctype html>\n{tag('html', head, tag('body', body, tag('script', Markup(script))), lang='en')}\n"
    )


def _attribute(name: str, value: str | bool | None) -> str:
    key = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {key}" if value is True else f' {key}="{escape(value)}"'
