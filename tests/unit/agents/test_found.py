"""Keys and addresses in the environment."""

import pytest

from frontdesk.agents import found


def only(**environ: str) -> found.Suggestion:
    (suggestion,) = found.suggestions(environ)
    return suggestion


def test_empty_environment_suggests_nothing() -> None:
    assert found.suggestions({}) == []
    assert found.suggestions({"OPENAI_API_KEY": " ", "HOME": "/home/ada"}) == []


def test_key_is_suggested_by_its_variable_and_never_shown() -> None:
    suggestion = only(OPENAI_API_KEY="sk-secret")
    assert (suggestion.driver, suggestion.key_variable) == ("openai", "OPENAI_API_KEY")
    assert suggestion.options["base_url"] == "https://api.openai.com/v1"
    assert suggestion.options["model"]
    assert "sk-secret" not in repr(suggestion)


def test_address_takes_the_key_and_model_beside_it() -> None:
    suggestion = only(OPENAI_BASE_URL="http://gpu:8000/v1", OPENAI_API_KEY="k", OPENAI_MODEL="qwen")
    assert suggestion.options == {"base_url": "http://gpu:8000/v1", "model": "qwen"}
    assert suggestion.key_variable == "OPENAI_API_KEY"
    alone = only(OPENAI_BASE_URL="http://gpu:8000/v1")
    assert alone.options == {"base_url": "http://gpu:8000/v1"}
    assert alone.key_variable is None


@pytest.mark.parametrize("address", ["http://ada:pw@gpu/v1", "ftp://gpu", "gpu:8000", "http://gpu:x/v1"])
def test_address_that_cannot_be_used_is_not_suggested(address: str) -> None:
    assert found.suggestions({"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "k"}) == []


def test_anthropic_goes_through_pydantic_ai() -> None:
    suggestion = only(ANTHROPIC_API_KEY="k")
    assert suggestion.driver == "pydantic_ai"
    assert suggestion.options["model"].startswith("anthropic:")


@pytest.mark.parametrize(
    ("host", "base_url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:9999", "http://127.0.0.1:9999/v1"),
        ("http://gpu", "http://gpu:11434/v1"),
        ("https://gpu:443", "https://gpu:443/v1"),
        ("[::]:1234", "http://127.0.0.1:1234/v1"),
        ("[fe80::1]:1234", "http://[fe80::1]:1234/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
    ],
)
def test_address_of_ollama_is_one_to_be_called(host: str, base_url: str) -> None:
    assert only(OLLAMA_HOST=host).options == {"base_url": base_url}


def test_every_provider_is_found_and_the_explicit_one_is_first() -> None:
    environ = {provider.found_in: "k" for provider in found.PROVIDERS}
    environ |= {"OLLAMA_HOST": "gpu", "OPENAI_API_KEY": "k"}
    places = [suggestion.found_in for suggestion in found.suggestions(environ)]
    assert places[0] == "OPENAI_API_KEY"
    assert set(places) == set(environ)
