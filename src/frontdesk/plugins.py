"""Parts found by name: built-ins and plug-ins take the same road, the packages' entry points."""

import sys
from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from frontdesk import errors

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

OURS = "frontdesk"
DEFAULT_STORE = "sqlite"


def points(kind: str) -> "EntryPoints":
    """The entry points of a kind."""
    found: EntryPoints = _points_on(tuple(sys.path)).select(group=_group(kind))
    return found


def _named(kind: str, name: str) -> "list[EntryPoint]":
    """Those of a kind with a name. Our own are found without looking through what else is installed."""
    for known in (_our_points, _points_on):
        if found := known(tuple(sys.path)).select(group=_group(kind), name=name):
            return list(found)
    return []


def _group(kind: str) -> str:
    return f"{OURS}.{kind}s"


@cache
def _our_points(_path: tuple[str, ...]) -> "EntryPoints":
    from importlib import metadata  # noqa: PLC0415 - it reads mail and archives: who needs no part, needs none

    try:
        return metadata.distribution(OURS).entry_points
    except metadata.PackageNotFoundError:  # the source is there, and not installed
        return metadata.EntryPoints()


@cache
def _points_on(_path: tuple[str, ...]) -> Any:
    """Read once: to look through a hundred packages takes as long as to answer a message."""
    from importlib import metadata  # noqa: PLC0415 - the same

    return metadata.entry_points()


def installed(kind: str) -> list[str]:
    """The names of the parts of a kind, without loading any."""
    return sorted({each.name for each in points(kind)})


def load_store(url: str) -> Any:
    """The function that opens a store for this kind of URL."""
    scheme = url.partition("://")[0] if isinstance(url, str) else ""
    name = "postgresql" if scheme == "postgres" else scheme
    if name == DEFAULT_STORE and (ours := _default_store()):
        return ours
    found = _named("store", name) if name else []
    if not found:
        raise errors.UnknownStore(url=_without_password(url), hint="")
    try:
        return found[0].load()
    except Exception as error:
        if _package_of(error) != "asyncpg":
            raise _broken("store", found[0], error) from error
        hint = " (install asyncpg: pip install 'frontdesk[postgres]')"
        raise errors.UnknownStore(url=_without_password(url), hint=hint) from error


def _default_store() -> Any:
    """Most programs want this one: it is loaded without reading what is installed."""
    try:
        return import_module(f"{OURS}.stores.{DEFAULT_STORE}").open_store
    except ImportError:  # the entry point of the same fails with a name
        return None


def load_part(kind: str, name: str) -> Any:
    """The class of an agent or a channel."""
    found = _named(kind, name)
    if not found:
        known = installed(kind)
        raise errors.UnknownPart(kind=kind, name=name, known=", ".join(known), hint=_hint(kind, name, known))
    try:
        return found[0].load()
    except Exception as error:
        package, extra = _package_of(error), _extra_of(found[0])
        if package in ("", OURS) or extra is None:
            raise _broken(kind, found[0], error) from error
        raise errors.MissingPackage(part=f"The {kind} {name}", package=package, extra=extra) from error


def need(*packages: str) -> None:
    """Refuse to be loaded without packages that are imported later, when they are used."""
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def lazy(package: str, names: Collection[str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: each name is in a module of the same name, loaded when it is used. Whoever
    asks for a platform's facts does not load its channel."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{name.lower()}"), name)

    return find


def load_facts(platform: str) -> Any:
    """What is said of a platform beside its channel, in the module ``facts``; None when nothing is."""
    return _beside(platform, "facts", "FACTS")


def load_setup(platform: str) -> Any:
    """How a platform is connected, in the module ``connect`` beside its channel; None when nothing says."""
    return _beside(platform, "connect", "SETUP")


def _beside(platform: str, module: str, name: str) -> Any:
    """What stands under a name in a module beside a platform's channel."""
    if found := _found_in(f"frontdesk.channels.{platform}", module, name):
        return found
    for point in _named("channel", platform):
        try:
            spec = find_spec(point.module)
            return _found_in(spec.parent, module, name) if spec and spec.parent else None
        except Exception as error:
            raise _broken("channel", point, error) from error
    return None


def _found_in(package: str, beside: str, name: str) -> Any:
    module = f"{package}.{beside}"
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        return None


def _hint(kind: str, name: str, known: list[str]) -> str:
    """What was probably meant, or where one of that name would come from."""
    import difflib  # noqa: PLC0415 - most names are right

    if near := difflib.get_close_matches(name, known, n=1):
        return f"Did you mean {near[0]}?"
    return f"Use one of these, or install the package that brings the {kind}."


def _package_of(error: Exception) -> str:
    """The package that an import did not find."""
    return str(error.name).partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""


def _extra_of(point: "EntryPoint") -> str | None:
    """The extra with what one of our own parts needs, which has the part's name; None when it needs none."""
    extra = point.name.replace("_", "-")
    if point.dist is None or point.dist.name != OURS:
        return None
    return extra if extra in (point.dist.metadata.get_all("Provides-Extra") or ()) else None


def _broken(kind: str, point: "EntryPoint", error: Exception) -> errors.BrokenPart:
    package = point.dist.name if point.dist else point.module
    why = f"{type(error).__name__}: {error}"
    return errors.BrokenPart(kind=kind, name=point.name, package=package, why=why)


def _without_password(url: object) -> str:
    text = str(url)
    scheme, separator, rest = text.partition("://")
    return f"{scheme}{separator}…{rest.rpartition('@')[1]}{rest.rpartition('@')[2]}" if "@" in rest else text
