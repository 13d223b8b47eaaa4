"""Who may use a platform, as the file and the environment say it."""

from pathlib import Path

import pytest

from frontdesk import config, errors
from frontdesk.model.access import Access, Strangers
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.listening import Answering, Listening


def loaded(text: str, folder: Path, **environ: str) -> GatewayConfig:
    file = folder / "frontdesk.toml"
    file.write_text(text, encoding="utf-8")
    return config.load(file, environ={"HOME": str(folder)} | environ).gateway


def test_platform_that_is_not_mentioned_is_closed(tmp_path: Path) -> None:
    gateway = loaded("[platforms.telegram]\nenabled = true", tmp_path)
    assert gateway.access == {}
    assert gateway.get_access("telegram") == Access()


def test_file_says_who_may_use_a_platform(tmp_path: Path) -> None:
    text = """
        [channels.telegram]
        allow = [12345, "chat:-100"]
        administrators = ["1"]
        block = ["666"]
        strangers = "pair"
        allow_bots = true
    """
    assert loaded(text, tmp_path).access == {
        "telegram": Access(
            allow=("12345", "chat:-100"),
            administrators=("1",),
            block=("666",),
            strangers=Strangers.PAIR,
            allow_bots=True,
        )
    }


def test_file_says_what_is_answered_in_groups_and_what_is_gathered(tmp_path: Path) -> None:
    text = """
        [turns]
        gather_seconds = 1.5
        [channels.telegram]
        answer_always_in = [-100123, "-100123:7"]
        gather_seconds = 3
        [channels.slack]
        answer = "always"
    """
    gateway = loaded(text, tmp_path)
    chats = ("-100123", "-100123:7")
    assert gateway.get_listening("telegram") == Listening(answer_always_in=chats, gather_seconds=3.0)
    assert gateway.get_listening("slack") == Listening(answer=Answering.ALWAYS)
    assert gateway.get_listening("matrix") == Listening()
    assert config.load(tmp_path / "frontdesk.toml", environ={}).running.gather_seconds == 1.5


def test_environment_wins_and_can_close_a_list(tmp_path: Path) -> None:
    text = '[channels.slack]\nallow = ["*"]\nstrangers = "pair"'
    gateway = loaded(
        text, tmp_path, FRONTDESK_CHANNELS_SLACK_ALLOW="[]", FRONTDESK_CHANNELS_EMAIL_ALLOW="a@x.org, b@x.org"
    )
    assert gateway.get_access("slack") == Access(strangers=Strangers.PAIR)
    assert gateway.get_access("email").allow == ("a@x.org", "b@x.org")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('allow = "*"', r"channels\.slack\.allow is '\*'; allowed: a list of user ids"),
        ("allow = [true]", "channels.slack.allow"),
        ('administrators = ["*"]', "channels.slack.administrators"),
        ('strangers = "shout"', "channels.slack.strangers is 'shout'; allowed: silence, answer, pair"),
        ('allow_bots = "no"', "channels.slack.allow_bots"),
        ('answer = "never"', "channels.slack.answer is 'never'; allowed: addressed, always"),
        ('answer_always_in = "all"', "channels.slack.answer_always_in"),
        ("gather_seconds = 61", "channels.slack.gather_seconds is 61; allowed: a number up to 60"),
    ],
)
def test_mistake_is_an_error_that_names_the_setting(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidSetting, match=message):
        loaded(f"[channels.slack]\n{line}", tmp_path)


def test_access_of_the_session_layer_is_checked() -> None:
    with pytest.raises(errors.InvalidSetting, match=r"access\.slack is None; allowed: "):
        GatewayConfig(access={"slack": None})  # type: ignore[dict-item]
