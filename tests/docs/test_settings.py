"""The reference page of the settings."""

import re
from pathlib import Path

import pytest

from frontdesk import config
from frontdesk.config import reference
from frontdesk.config.settings import Setting
from frontdesk.config.table import SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_page_is_what_the_table_renders_to() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.render(), (
        "make it anew: frontdesk config reference > docs/settings.md"
    )


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_and_its_variable_are_on_the_page(setting: Setting) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert setting.variable is None or f"`{setting.variable}`" in page
    assert f"### `{setting.name}`" in page or f"`{setting.parts[-1]}`" in page


def test_settings_without_a_variable_name_none() -> None:
    assert "`None`" not in PAGE.read_text(encoding="utf-8")


def test_every_setting_says_what_it_is_for() -> None:
    assert not [setting.name for setting in SETTINGS if not setting.help.endswith(".")]


def test_example_on_the_page_is_a_valid_file(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "frontdesk.toml"
    file.write_text(example, encoding="utf-8")
    loaded = config.load(file, environ={"HOME": str(tmp_path)})
    assert loaded.gateway.get_reset_policy("slack", "group").max_messages == 500
    assert loaded.gateway.default_reset_policy.timezone == "Europe/Berlin"
    assert loaded.gateway.get_home_channel("telegram") is not None
