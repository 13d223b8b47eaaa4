"""What is known of a platform is found beside its channel, by name, and read when it is asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

from frontdesk import Platform, errors, plugins
from frontdesk.model.platforms import PlatformFacts

FACTS = "from frontdesk.model.platforms import PlatformFacts\n\nFACTS = PlatformFacts(telling_rank=7)\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages; every name that a test puts into it is its own."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def install(site: Path, name: str, at: str, **files: str) -> None:
    package = site / name
    package.mkdir()
    for file, text in {"__init__": "", **files}.items():
        (package / f"{file}.py").write_text(text)
    facts = site / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[frontdesk.channels]\n{name} = {at}\n")


def test_facts_stand_beside_a_packages_channel(site: Path) -> None:
    install(site, "facts_beside", "facts_beside.channel:Channel", channel="raise RuntimeError", facts=FACTS)
    assert plugins.load_facts("facts_beside").telling_rank == 7
    assert Platform.register("facts_beside").facts.telling_rank == 7


def test_facts_stand_in_the_package_that_is_the_channel(site: Path) -> None:
    install(site, "facts_within", "facts_within:Channel", facts=FACTS)
    assert plugins.load_facts("facts_within").telling_rank == 7


def test_channel_without_facts_has_the_usual_ones(site: Path) -> None:
    install(site, "facts_none", "facts_none.channel:Channel", channel="")
    assert plugins.load_facts("facts_none") is None
    assert Platform.register("facts_none").facts == PlatformFacts()


def test_module_without_a_package_has_the_usual_ones(site: Path) -> None:
    install(site, "facts_missing", "no_module_of_that_name:Channel")
    assert plugins.load_facts("facts_missing") is None


def test_facts_that_cannot_be_read_are_an_error_that_names_the_package(site: Path) -> None:
    install(site, "facts_broken", "facts_broken:Channel", facts="import no_library_of_that_name\n")
    with pytest.raises(errors.BrokenPart, match=r"facts_broken.*no_library_of_that_name"):
        plugins.load_facts("facts_broken")


def test_module_of_ours_that_is_no_platform_says_nothing() -> None:
    assert plugins.load_facts("checks") is None


def test_what_is_said_at_registration_is_added_to_the_facts(site: Path) -> None:
    install(site, "facts_more", "facts_more:Channel", facts=FACTS)
    assert Platform.register("facts_more", pii_safe=True).facts == PlatformFacts(
        telling_rank=7, pii_safe=True
    )


def test_facts_are_read_without_the_channel() -> None:
    script = (
        "import sys\n"
        "from frontdesk import Platform\n"
        "assert not [name for name in sys.modules if name.startswith('frontdesk.channels')]\n"
        "assert not Platform.WEBHOOK.facts.distinct_ids\n"
        "print([name for name in sys.modules if name.startswith('frontdesk.channels.')])\n"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout
    assert told == "['frontdesk.channels.webhook', 'frontdesk.channels.webhook.facts']\n"


LOADS = """
import sys
from frontdesk import errors, plugins

sys.modules["{library}"] = None  # not installed
try:
    plugins.load_part("channel", "{platform}")
except errors.MissingPackage as error:
    print(error)
del sys.modules["{library}"]
plugins.load_part("channel", "{platform}")
print("{library}" in sys.modules)
"""


@pytest.mark.parametrize(
    ("platform", "library"),
    [("telegram", "telegram"), ("matrix", "mautrix"), ("email", "imap_tools"), ("email", "aiosmtplib")],
)
def test_large_library_is_loaded_late_and_missed_at_once(platform: str, library: str) -> None:
    script = LOADS.format(platform=platform, library=library)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    missed, loaded = done.stdout.splitlines()
    assert f"frontdesk[{platform}]" in missed
    assert loaded == "False"
