"""Agents that the machine's environment already has a key or an address for."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import msgspec

from frontdesk.formats.http import url_of

OLLAMA_PORT = 11434
EVERYWHERE = ("0.0.0.0", "::", "")


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that could be configured. It names the variable that holds the key, never the key."""

    driver: str
    title: str
    found_in: str
    """The variable that gave the idea."""
    options: Mapping[str, str] = {}
    key_variable: str | None = None
    """The variable that the driver's ``api_key`` would be read from."""


def _keyed(title: str, variable: str, driver: str = "openai", **options: str) -> Suggestion:
    return Suggestion(driver=driver, title=title, found_in=variable, options=options, key_variable=variable)


PROVIDERS = (
    _keyed("Anthropic", "ANTHROPIC_API_KEY", "pydantic_ai", model="anthropic:claude-haiku-4-5"),
    _keyed(
        "Google Gemini",
        "GEMINI_API_KEY",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        model="gemini-flash-latest",
    ),
    _keyed(
        "OpenRouter",
        "OPENROUTER_API_KEY",
        base_url="https://openrouter.ai/api/v1",
        model="openrouter/auto",
    ),
    _keyed("Mistral", "MISTRAL_API_KEY", base_url="https://api.mistral.ai/v1", model="mistral-small-latest"),
    _keyed("DeepSeek", "DEEPSEEK_API_KEY", base_url="https://api.deepseek.com/v1", model="deepseek-chat"),
)
OPENAI_URL, OPENAI_MODEL = "https://api.openai.com/v1", "gpt-5-mini"


def suggestions(environ: Mapping[str, str]) -> list[Suggestion]:
    """What could be configured, the most explicit first: an address, keys, a server of one's own."""
    keyed = [provider for provider in PROVIDERS if _value(environ, provider.found_in)]
    return [*_openai(environ), *keyed, *_ollama(environ)]


def _openai(environ: Mapping[str, str]) -> Iterator[Suggestion]:
    """OpenAI, or whatever speaks its language at the address given."""
    address, key = _value(environ, "OPENAI_BASE_URL"), _value(environ, "OPENAI_API_KEY")
    if not (address or key) or (address and not _is_address(address)):
        return
    options = {"base_url": address or OPENAI_URL}
    if model := _value(environ, "OPENAI_MODEL") or ("" if address else OPENAI_MODEL):
        options["model"] = model
    yield Suggestion(
        driver="openai",
        title=f"the endpoint at {urlsplit(address).netloc}" if address else "OpenAI",
        found_in="OPENAI_BASE_URL" if address else "OPENAI_API_KEY",
        options=options,
        key_variable="OPENAI_API_KEY" if key else None,
    )


def _ollama(environ: Mapping[str, str]) -> Iterator[Suggestion]:
    """Ollama's own variable, which may be an address to listen on; the model is the user's choice."""
    told = _value(environ, "OLLAMA_HOST")
    address = told if "://" in told else f"http://{told}"
    if not told or not _is_address(address):
        return
    parts = urlsplit(address)
    host = "127.0.0.1" if (parts.hostname or "") in EVERYWHERE else str(parts.hostname)
    base_url = f"{url_of(host, parts.port or OLLAMA_PORT, parts.scheme)}/v1"
    yield Suggestion(driver="openai", title="Ollama", found_in="OLLAMA_HOST", options={"base_url": base_url})


def _value(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip()


def _is_address(address: str) -> bool:
    """An address to be called, without a password that would be shown."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc) and "@" not in parts.netloc
