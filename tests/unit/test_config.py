"""The configuration: what is read, what is refused, and where each value came from."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import config, errors
from frontdesk.config import settings
from frontdesk.config.settings import Origin
from frontdesk.config.table import SETTINGS
from frontdesk.contracts.hooks import Commands
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.platforms import HomeChannel, Platform
from frontdesk.model.policies import ResetMode, SessionResetPolicy

NOBODY = {"HOME": "/home/nobody"}


def loaded(text: str, folder: Path, environ: Mapping[str, str] = NOBODY) -> config.Config:
    file = folder / "frontdesk.toml"
    file.write_text(text, encoding="utf-8")
    return config.load(file, environ)


def refused(text: str, folder: Path, environ: Mapping[str, str] = NOBODY) -> str:
    """The message, with its notes, of the error that the file causes."""
    with pytest.raises(errors.InvalidInput) as caught:
        loaded(text, folder, environ)
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def of(loaded: config.Config, name: str) -> settings.Value:
    (value,) = (value for value in loaded.values if value.name == name)
    return value


class TestWithoutAFile:
    def test_everything_has_its_default(self, tmp_path: Path) -> None:
        found = config.load(environ={"HOME": str(tmp_path)})
        assert found.gateway == GatewayConfig()
        assert found.home == tmp_path / ".frontdesk"
        assert found.store_url == f"sqlite:///{tmp_path}/.frontdesk/state.db"
        assert {value.origin for value in found.values} == {Origin.DEFAULT}

    def test_file_that_somebody_named_must_exist(self, tmp_path: Path) -> None:
        with pytest.raises(errors.UnreadableConfigFile, match="no such file"):
            config.load(tmp_path / "other.toml", NOBODY)
        with pytest.raises(errors.UnreadableConfigFile, match=r"other\.toml.*no such file"):
            config.load(environ=NOBODY | {"FRONTDESK_CONFIG": str(tmp_path / "other.toml")})

    def test_folder_in_its_place_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "frontdesk.toml").mkdir()
        with pytest.raises(errors.UnreadableConfigFile, match="directory"):
            config.load(environ={"FRONTDESK_HOME": str(tmp_path)})

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_file_that_may_not_be_read_is_an_error(self, tmp_path: Path) -> None:
        file = tmp_path / "frontdesk.toml"
        file.touch(mode=0o000)
        with pytest.raises(errors.UnreadableConfigFile, match="Permission denied"):
            config.load(environ={"FRONTDESK_HOME": str(tmp_path)})


class TestWhereTheFileIs:
    def test_in_the_home_folder(self, tmp_path: Path) -> None:
        (tmp_path / "frontdesk.toml").write_text("multiplex_profiles = true")
        found = config.load(environ={"FRONTDESK_HOME": str(tmp_path)})
        assert found.gateway.multiplex_profiles
        assert found.file == tmp_path / "frontdesk.toml"

    def test_where_the_variable_points(self, tmp_path: Path) -> None:
        (tmp_path / "x.toml").write_text("multiplex_profiles = true")
        found = config.load(environ=NOBODY | {"FRONTDESK_CONFIG": str(tmp_path / "x.toml")})
        assert found.gateway.multiplex_profiles

    def test_the_argument_wins(self, tmp_path: Path) -> None:
        found = loaded("", tmp_path, NOBODY | {"FRONTDESK_CONFIG": "/nowhere"})
        assert found.file == tmp_path / "frontdesk.toml"


class TestHomeAndStore:
    def test_store_follows_home(self, tmp_path: Path) -> None:
        assert loaded('home = "/srv/desk"', tmp_path).store_url == "sqlite:////srv/desk/state.db"

    def test_tilde_is_the_home_of_the_environment(self, tmp_path: Path) -> None:
        assert loaded('home = "~/desk"', tmp_path).home == Path("/home/nobody/desk")

    def test_signs_that_mean_something_in_a_url_are_encoded(self, tmp_path: Path) -> None:
        assert loaded('home = "/a?b%c"', tmp_path).store_url == "sqlite:////a%3Fb%25c/state.db"

    def test_relative_home_is_refused(self, tmp_path: Path) -> None:
        assert "Setting home is 'desk'; allowed: an absolute path" in refused('home = "desk"', tmp_path)

    def test_store_must_be_a_url(self, tmp_path: Path) -> None:
        assert "store.url" in refused('[store]\nurl = "state.db"', tmp_path)

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://desk:secret@db/frontdesk",
            "postgresql://desk:se:secret@/@db/frontdesk",
            "postgresql://desk@db/frontdesk?password=secret&sslmode=require",
            "postgresql://desk@db/frontdesk?sslmode=require&sslpassword=secret",
        ],
    )
    def test_password_is_used_but_not_shown(self, url: str, tmp_path: Path) -> None:
        found = loaded(f'[store]\nurl = "{url}"', tmp_path)
        assert found.store_url == url
        assert "secret" not in of(found, "store.url").shown
        assert "db/frontdesk" in of(found, "store.url").shown

    def test_password_is_not_in_an_error(self, tmp_path: Path) -> None:
        assert "secret" not in refused('[store]\nurl = "desk:secret@db"', tmp_path)


class TestPolicies:
    def test_every_field_arrives(self, tmp_path: Path) -> None:
        found = loaded(
            """
            [session_reset]
            mode = "idle"
            at_hour = 23
            idle_minutes = 5
            max_messages = 0
            max_tokens = 100_000
            max_cost_usd = 5
            max_session_minutes = 90
            spiral_repeats = 0
            spiral_errors = 0.5
            spiral_window = 20
            notify = false
            notify_exclude_platforms = ["email"]
            timezone = "Asia/Tokyo"
            """,
            tmp_path,
        )
        assert found.gateway.default_reset_policy == SessionResetPolicy(
            mode=ResetMode.IDLE,
            at_hour=23,
            idle_minutes=5,
            max_messages=0,
            max_tokens=100_000,
            max_cost_usd=5.0,
            max_session_minutes=90,
            spiral_repeats=0,
            spiral_errors=0.5,
            spiral_window=20,
            notify=False,
            notify_exclude_platforms=("email",),
            timezone="Asia/Tokyo",
        )

    def test_most_specific_policy_holds(self, tmp_path: Path) -> None:
        gateway = loaded(
            """
            [session_reset.by_type.group]
            max_messages = 1
            [session_reset.by_platform.telegram]
            max_messages = 2
            [session_reset.by_chat."telegram:-100:7"]
            max_messages = 3
            """,
            tmp_path,
        ).gateway
        assert gateway.get_reset_policy("slack", "group").max_messages == 1
        assert gateway.get_reset_policy("telegram", "group").max_messages == 2
        assert gateway.get_reset_policy("telegram", "group", "-100:7").max_messages == 3

    def test_instructions_of_chats_and_topics_arrive(self, tmp_path: Path) -> None:
        found = loaded(
            """
            [chats."telegram:-100"]
            instructions = "Speak of boats."
            [chats."telegram:-100:7"]
            instructions = "Be brief."
            [chats."slack:C1"]
            """,
            tmp_path,
        )
        texts = {"telegram:-100": "Speak of boats.", "telegram:-100:7": "Be brief."}
        assert found.gateway.instructions == texts
        assert of(found, 'chats."telegram:-100".instructions').value == "Speak of boats."

    def test_pruning_is_off_unless_it_is_set(self, tmp_path: Path) -> None:
        assert loaded("", tmp_path).running.prune_days == 0
        assert loaded("[gateway]\nprune_days = 90", tmp_path).running.prune_days == 90

    def test_overriding_table_is_complete_in_itself(self, tmp_path: Path) -> None:
        text = '[session_reset]\nat_hour = 9\n[session_reset.by_type.dm]\nmode = "daily"'
        found = loaded(text, tmp_path)
        assert found.gateway.reset_by_type["dm"] == SessionResetPolicy(mode=ResetMode.DAILY)
        assert of(found, "session_reset.by_type.dm.at_hour").value == 4

    def test_empty_overriding_table_is_the_default_policy(self, tmp_path: Path) -> None:
        text = "[session_reset]\nat_hour = 9\n[session_reset.by_type.dm]"
        assert loaded(text, tmp_path).gateway.get_reset_policy("slack", "dm").at_hour == 4

    @pytest.mark.parametrize(
        ("field", "value", "allowed"),
        [
            ("at_hour", "24", "a whole number from 0 to 23"),
            ("at_hour", "4.5", "a whole number from 0 to 23"),
            ("at_hour", "true", "a whole number from 0 to 23"),
            ("idle_minutes", "0", "a whole number from 1 to"),
            ("max_messages", "-1", "a whole number from 0 to"),
            ("max_tokens", "1.5", "a whole number from 0 to"),
            ("max_cost_usd", "nan", "a number from 0 to"),
            ("spiral_repeats", "1", "0 or a whole number from 2 to"),
            ("spiral_errors", "80", "a number from 0 to 1"),
            ("mode", '"weekly"', "both, daily, idle, none"),
            ("notify", '"yes"', "true or false"),
            ("notify_exclude_platforms", '"email"', "a list of platform names"),
            ("notify_exclude_platforms", '["emial"]', "a list of platform names"),
            ("timezone", '"Mars/Olympus"', "an IANA name"),
            ("timezone", "1979-05-27", "an IANA name"),
        ],
    )
    @pytest.mark.parametrize(
        "table",
        [
            "session_reset",
            "session_reset.by_type.group",
            "session_reset.by_platform.slack",
            'session_reset.by_chat."slack:C1"',
        ],
    )
    def test_refused_value_names_key_file_and_what_is_allowed(
        self, table: str, field: str, value: str, allowed: str, tmp_path: Path
    ) -> None:
        message = refused(f"[{table}]\n{field} = {value}", tmp_path)
        assert message.startswith(f"Setting {table}.{field} is ")
        assert f"allowed: {allowed}" in message
        assert str(tmp_path) in message


class TestHooks:
    def test_commands_arrive_with_their_arguments(self, tmp_path: Path) -> None:
        text = """
            [hooks]
            on_session_start = ["greet"]
            on_session_finalize = ["save", "a b"]
            timeout_seconds = 5
        """
        assert loaded(text, tmp_path).hooks == Commands(
            on_session_start=("greet",), on_session_finalize=("save", "a b"), timeout_seconds=5
        )

    def test_without_settings_there_are_none(self, tmp_path: Path) -> None:
        assert loaded("", tmp_path).hooks == Commands()

    @pytest.mark.parametrize("value", ['"save notes"', "[1]", '[""]', '["a\\u0000"]', "{}"])
    def test_command_is_a_list_of_texts_that_begins_with_a_program(self, value: str, tmp_path: Path) -> None:
        message = refused(f"[hooks]\non_session_end = {value}", tmp_path)
        assert "Setting hooks.on_session_end is " in message
        assert "allowed: a list of texts: a program and its arguments" in message

    @pytest.mark.parametrize("value", ["0", "3601", "true", "1.5"])
    def test_time_of_a_hook_is_bounded(self, value: str, tmp_path: Path) -> None:
        assert "allowed: a whole number from 1 to 3600" in refused(
            f"[hooks]\ntimeout_seconds = {value}", tmp_path
        )

    def test_variable_with_an_open_quote_is_refused(self) -> None:
        with pytest.raises(errors.InvalidSetting, match="on_session_end"):
            config.load(environ=NOBODY | {"FRONTDESK_HOOKS_ON_SESSION_END": "save 'notes"})


class TestPlatforms:
    def test_platform_with_its_home(self, tmp_path: Path) -> None:
        text = """
            [platforms.telegram]
            enabled = true
            tools = true
            home_channel.chat_id = -100123
            home_channel.name = "Operations"
            [platforms.slack]
            enabled = true
            [platforms.email]
        """
        gateway = loaded(text, tmp_path).gateway
        assert gateway.get_connected_platforms() == ["telegram", "slack"]
        assert gateway.platforms["telegram"].tools
        assert gateway.get_home_channel("telegram") == HomeChannel(
            platform=Platform.TELEGRAM, chat_id="-100123", name="Operations"
        )
        assert gateway.get_home_channel("slack") is None

    def test_home_channel_without_a_name_is_called_home(self, tmp_path: Path) -> None:
        gateway = loaded('[platforms.slack.home_channel]\nchat_id = "C1"', tmp_path).gateway
        assert gateway.get_home_channel("slack") == HomeChannel(
            platform=Platform.SLACK, chat_id="C1", name="Home"
        )

    @pytest.mark.parametrize("rest", ["", 'name = "Operations"'])
    def test_home_channel_needs_a_chat(self, rest: str, tmp_path: Path) -> None:
        message = refused(f"[platforms.slack.home_channel]\n{rest}", tmp_path)
        assert "platforms.slack.home_channel.chat_id" in message

    def test_platform_of_a_plugin_can_be_configured(self, tmp_path: Path) -> None:
        Platform.register("carrier-pigeon")
        environ = NOBODY | {"FRONTDESK_PLATFORMS_CARRIER_PIGEON_ENABLED": "yes"}
        found = loaded("[session_reset.by_platform.carrier-pigeon]\nat_hour = 1", tmp_path, environ)
        assert found.gateway.get_connected_platforms() == ["carrier-pigeon"]
        assert found.gateway.get_reset_policy("carrier-pigeon").at_hour == 1


class TestUnknownNames:
    @pytest.mark.parametrize(
        ("text", "key", "hint"),
        [
            ("hoem = 1", "hoem", "Did you mean home?"),
            ("at_hour = 4", "at_hour", "Did you mean session_reset.at_hour?"),
            ("[session_rest]", "session_rest", "Did you mean session_reset?"),
            (
                "[session_reset]\nidle_minute = 4",
                "session_reset.idle_minute",
                "Did you mean session_reset.idle_minutes?",
            ),
            (
                "[session_reset.by_type.grup]",
                "session_reset.by_type.grup",
                "Did you mean session_reset.by_type.group?",
            ),
            ("[platforms.telegrm]", "platforms.telegrm", "Did you mean platforms.telegram?"),
            (
                "[platforms.slack]\nhome_chanel = {}",
                "platforms.slack.home_chanel",
                "Did you mean platforms.slack.home_channel?",
            ),
            ("[store]\nqqq = 1", "store.qqq", "Known here: url."),
            (
                '[session_reset.by_chat."telegrm:1"]',
                'session_reset.by_chat."telegrm:1"',
                'A chat is written "platform:chat_id"',
            ),
            (
                '[session_reset.by_chat."telegram:"]',
                'session_reset.by_chat."telegram:"',
                'A chat is written "platform:chat_id"',
            ),
        ],
    )
    def test_unknown_setting_is_an_error_with_a_hint(
        self, text: str, key: str, hint: str, tmp_path: Path
    ) -> None:
        with pytest.raises(errors.UnknownSetting) as caught:
            loaded(text, tmp_path)
        assert f"There is no setting {key}. {hint}" in str(caught.value)
        assert str(tmp_path) in "".join(caught.value.__notes__)

    def test_setting_in_the_place_of_a_table_is_an_error(self, tmp_path: Path) -> None:
        assert "Setting session_reset is 4; allowed: a table" in refused("session_reset = 4", tmp_path)

    def test_table_in_the_place_of_a_setting_is_an_error(self, tmp_path: Path) -> None:
        assert "Setting home is {}; allowed: an absolute path" in refused("[home]", tmp_path)

    def test_variable_that_sets_nothing_is_reported_not_refused(self) -> None:
        found = config.load(environ=NOBODY | {"FRONTDESK_PORT": "tcp://10.0.0.1:80", "OTHER": "1"})
        assert found.unknown_variables == ("FRONTDESK_PORT",)


class TestSyntax:
    @pytest.mark.parametrize(
        ("content", "line"),
        [
            (b"\n\nhome", 3),
            (b'home = "/a"\nhome = "/b"\n', 2),
            (b"# fine\n[session_reset\n", 2),
            (b'home = """\nunfinished\n', 2),
            (b'# fine\nhome = "/\xff"', 2),
            (b"at = " + b"9" * 5000, 1),
        ],
    )
    def test_error_names_file_and_line(self, content: bytes, line: int, tmp_path: Path) -> None:
        file = tmp_path / "frontdesk.toml"
        file.write_bytes(content)
        with pytest.raises(
            errors.InvalidConfigFile, match=rf"frontdesk\.toml, line {line}, is not valid TOML"
        ):
            config.load(file, NOBODY)

    @pytest.mark.parametrize(
        ("content", "name"),
        [
            ("[session_reset]\n[session_reset]\n", "[session_reset]"),
            ("[platforms.slack]\n[platforms.slack]\n", "[platforms.slack]"),
            ('[a."b\'c (d)"]\n[a."b\'c (d)"]\n', '[a."b\'c (d)"]'),
        ],
    )
    def test_table_that_stands_there_twice_is_named_as_in_the_file(
        self, content: str, name: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "frontdesk.toml"
        file.write_text(content)
        with pytest.raises(errors.InvalidConfigFile) as caught:
            config.load(file, NOBODY)
        assert str(caught.value).endswith(f", line 2, is not valid TOML: Cannot declare {name} twice")

    def test_byte_order_mark_is_no_error(self, tmp_path: Path) -> None:
        file = tmp_path / "frontdesk.toml"
        file.write_bytes(b'\xef\xbb\xbfhome = "/desk"')
        assert config.load(file, NOBODY).home == Path("/desk")


class TestEnvironment:
    @pytest.mark.parametrize(
        ("variable", "text", "name", "value"),
        [
            ("FRONTDESK_HOME", "/desk\n", "home", "/desk"),
            ("FRONTDESK_STORE_URL", "postgresql://db/x", "store.url", "postgresql://db/x"),
            ("FRONTDESK_GROUP_SESSIONS_PER_USER", "off", "group_sessions_per_user", False),
            ("FRONTDESK_THREAD_SESSIONS_PER_USER", "TRUE", "thread_sessions_per_user", True),
            ("FRONTDESK_AUTO_CONTINUE_FRESHNESS_SECONDS", "-1", "auto_continue_freshness_seconds", -1),
            ("FRONTDESK_SESSION_RESET_MODE", "none", "session_reset.mode", "none"),
            ("FRONTDESK_SESSION_RESET_AT_HOUR", " 7 ", "session_reset.at_hour", 7),
            (
                "FRONTDESK_SESSION_RESET_NOTIFY_EXCLUDE_PLATFORMS",
                "email, api_server",
                "session_reset.notify_exclude_platforms",
                ("email", "api_server"),
            ),
            (
                "FRONTDESK_SESSION_RESET_NOTIFY_EXCLUDE_PLATFORMS",
                "[]",
                "session_reset.notify_exclude_platforms",
                (),
            ),
            (
                "FRONTDESK_SESSION_RESET_BY_PLATFORM_API_SERVER_MAX_MESSAGES",
                "9",
                "session_reset.by_platform.api_server.max_messages",
                9,
            ),
            ("FRONTDESK_PLATFORMS_SLACK_ENABLED", "1", "platforms.slack.enabled", True),
            ("FRONTDESK_SESSION_RESET_MAX_COST_USD", "2.5", "session_reset.max_cost_usd", 2.5),
            ("FRONTDESK_SESSION_RESET_SPIRAL_ERRORS", "1", "session_reset.spiral_errors", 1.0),
            (
                "FRONTDESK_HOOKS_ON_SESSION_END",
                "save --to '/my notes' a,b",
                "hooks.on_session_end",
                ("save", "--to", "/my notes", "a,b"),
            ),
            ("FRONTDESK_HOOKS_ON_SESSION_END", "[]", "hooks.on_session_end", ()),
            ("FRONTDESK_HOOKS_TIMEOUT_SECONDS", "5", "hooks.timeout_seconds", 5),
        ],
    )
    def test_variable_sets_its_setting(self, variable: str, text: str, name: str, value: Any) -> None:
        found = config.load(environ=NOBODY | {variable: text})
        assert of(found, name).value == value
        assert (of(found, name).origin, of(found, name).where) == (Origin.ENVIRONMENT, variable)
        assert found.unknown_variables == ()

    def test_environment_wins_over_file_and_file_over_default(self, tmp_path: Path) -> None:
        text = "[session_reset]\nat_hour = 5\nidle_minutes = 6"
        found = loaded(text, tmp_path, NOBODY | {"FRONTDESK_SESSION_RESET_AT_HOUR": "7"})
        assert found.gateway.default_reset_policy == SessionResetPolicy(at_hour=7, idle_minutes=6)
        names = [f"session_reset.{field}" for field in ("at_hour", "idle_minutes", "max_messages")]
        origins = [of(found, name).origin for name in names]
        assert origins == [Origin.ENVIRONMENT, Origin.FILE, Origin.DEFAULT]
        assert of(found, "session_reset.idle_minutes").where == str(tmp_path / "frontdesk.toml")

    def test_empty_variable_sets_nothing(self, tmp_path: Path) -> None:
        found = loaded("multiplex_profiles = true", tmp_path, NOBODY | {"FRONTDESK_MULTIPLEX_PROFILES": ""})
        assert found.gateway.multiplex_profiles
        assert found.unknown_variables == ()

    @pytest.mark.parametrize("text", ["twelve", "24", "1_0", "9" * 40])
    def test_refused_value_names_the_variable(self, text: str) -> None:
        with pytest.raises(errors.InvalidSetting, match=r"session_reset\.at_hour is .*0 to 23") as caught:
            config.load(environ=NOBODY | {"FRONTDESK_SESSION_RESET_AT_HOUR": text})
        assert caught.value.__notes__ == ["(in FRONTDESK_SESSION_RESET_AT_HOUR)"]

    def test_no_two_settings_share_a_variable(self) -> None:
        names = [settings.variable_name(path) for setting in SETTINGS for path in setting.paths()]
        assert len(names) == len(set(names))


class TestTable:
    def test_every_default_is_allowed(self) -> None:
        for setting in SETTINGS:
            if setting.default is not None:
                assert setting.read(setting.parts, setting.default) == setting.default

    def test_every_field_of_a_policy_can_be_set(self) -> None:
        for prefix in ("", "by_type.<type>.", "by_platform.<platform>.", "by_chat.<chat>."):
            for field in SessionResetPolicy.__struct_fields__:
                assert f"session_reset.{prefix}{field}" in {setting.name for setting in SETTINGS}

    def test_what_is_shown_can_be_read_again(self, tmp_path: Path) -> None:
        text = '[session_reset.by_chat."slack:a\\u007f\\"b"]\nnotify_exclude_platforms = ["email"]'
        first = loaded(text, tmp_path)
        lines = [
            f"{value.name} = {settings.as_toml(value.value)}"
            for value in first.values
            if value.value is not None
        ]
        again = loaded("\n".join(lines), tmp_path)
        assert (again.gateway, again.store_url) == (first.gateway, first.store_url)


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(setting=st.sampled_from(SETTINGS), value=VALUES)
def test_any_value_is_taken_or_refused_by_name(setting: settings.Setting, value: Any) -> None:
    name = settings.dotted(setting.parts)
    try:
        setting.read(setting.parts, value)
    except errors.InvalidSetting as error:
        refusal = str(error)
    else:
        refusal = name
    assert name in refusal


@given(texts=st.dictionaries(st.sampled_from([setting.variable or "X" for setting in SETTINGS]), st.text()))
def test_any_environment_loads_or_is_refused(texts: dict[str, str]) -> None:
    with contextlib.suppress(errors.InvalidInput):
        config.load(environ=NOBODY | texts)
