"""Masking: secrets are not shown, everything else is."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.formats import masking
from frontdesk.formats.masking import MARK
from tests.unit.formats import pairs

LETTERS = "Ab3dEf7hIj"
KEY_LINES = "\n".join(base64.b64encode(bytes(range(nth, nth + 48))).decode() for nth in range(4))


def long(prefix: str, length: int = 40) -> str:
    """Something of a secret's shape. Put together here, so that no file holds one."""
    return prefix + (LETTERS * 10)[:length]


def private_key(kind: str = "", end: str = "\n") -> str:
    body = f"{KEY_LINES}\nQUJDRA==".replace("\n", end)
    return f"-----BEGIN {kind}PRIVATE KEY-----{end}{body}{end}-----END {kind}PRIVATE KEY-----"


NAMES_OF_THINGS = (
    *("production", "prod", "staging", "customers", "Orders", "db1", "eu", "west2", "v2", "2024", "backup"),
    *(
        "shutdown",
        "reboot",
        "DROP",
        "dropTables",
        "PaymentService",
        "users2",
        "s3",
        "k8s",
        "internal",
        "5432",
    ),
)


def masked(value: Any) -> Any:
    """What is covered where others read along, as people see it: with MARK in the place of every secret."""
    return _shown(masking.covered(value, wide=True))


def seen(value: Any) -> Any:
    """The same where people decide."""
    return _shown(masking.covered(value))


def _shown(value: Any) -> Any:
    match value:
        case masking.Partly():
            return str(value)
        case dict():
            return {key: _shown(each) for key, each in value.items()}
        case list():
            return [_shown(each) for each in value]
        case _:
            return value


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            *(
                "password",
                "Password",
                "PASSWORD",
                "passwd",
                "passphrase",
                "db_password",
                "DB-PASSWORD",
                "dbPassword",
            ),
            *("PGPASSWORD", "password2", "password_prod", "user.password", "pass", "DB_PASS", "db_pwd"),
            *(
                "token",
                "GITHUB_TOKEN",
                "accessToken",
                "access_token",
                "refresh-token",
                "accesstoken",
                "tokens",
            ),
            *("secret", "client_secret", "clientSecret", "SECRET_VALUE", "secrets"),
            *(
                "api_key",
                "apiKey",
                "apikey",
                "API_KEY",
                "X-Api-Key",
                "APIKey",
                "api key",
                "api_key_2",
                "api.keys",
            ),
            *("private_key", "privateKey", "PRIVATE-KEY", "ssh_key", "aws_secret_access_key", "signing_key"),
            *("authorization", "Authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "cookies"),
            *("credential", "credentials", "jwt", "otp"),
        ],
    )
    def test_value_of_a_secret_name_is_hidden(self, name: str) -> None:
        assert masked({name: "x"}) == {name: MARK}
        assert masked([{"deep": {name: ["x"]}}]) == [{"deep": {name: [MARK]}}]

    @pytest.mark.parametrize(
        "name",
        [
            *(
                "path",
                "key",
                "primary_key",
                "idempotency_key",
                "session_key",
                "keyboard",
                "public_key",
                "author",
            ),
            *("secretary", "tokenizer", "passenger", "compass", "bypass", "cookiecutter", "monkey"),
            *(
                "token_count",
                "password_policy",
                "secret_name",
                "private_key_path",
                "token_url",
                "cookie_domain",
            ),
            *("PWD", "OLDPWD", "GIT_ASKPASS", "SSH_AUTH_SOCK", "password_file", "passwordFile", "token_type"),
            *("", " ", "é", "1"),
        ],
    )
    def test_value_of_another_name_is_shown(self, name: str) -> None:
        assert masked({name: "x"}) == {name: "x"}

    def test_numbers_are_hidden_but_not_how_many_there_are(self) -> None:
        value = {"otp": 123456, "token": 1.5, "max_tokens": 4096, "tokens": 10, "secrets": 2}
        assert masked(value) == value | {"otp": MARK, "token": MARK}

    @pytest.mark.parametrize("nothing", [None, "", True, False, [], {}])
    def test_that_there_is_nothing_is_not_hidden(self, nothing: object) -> None:
        assert masked({"password": nothing}) == {"password": nothing}

    @pytest.mark.parametrize(
        "reference", ["$TOKEN", "${TOKEN}", "{{ secrets.token }}", "${{ secrets.TOKEN }}"]
    )
    def test_name_of_a_place_where_a_secret_is_kept_is_shown(self, reference: str) -> None:
        value = {"token": reference, "cmd": f"curl --token {reference} --password={reference}"}
        assert masked(value) == value

    @pytest.mark.parametrize(
        ("structure", "shown"),
        [
            (["x", "y"], [MARK, MARK]),
            ([["x"], {"a": None}], [[MARK], {"a": None}]),
            (
                {"username": "ann", "type": "basic", "value": "x", "more": [{"a": "y"}, 7]},
                {"username": "ann", "type": "basic", "value": MARK, "more": [{"a": MARK}, MARK]},
            ),
            ([True, None, 0], [True, None, MARK]),
            ({"from": "$TOKEN"}, {"from": "$TOKEN"}),
            (["rm", "-rf", "/"], [MARK, "-rf", "/"]),
            ({"command": "rm", "args": ["-rf", "x"]}, {"command": "rm", "args": ["-rf", "x"]}),
            ({"`reboot`": "x"}, {"`reboot`": MARK}),
            ("Bearer x", f"Bearer {MARK}"),
            ("a=b; c=d", f"a={MARK}; c={MARK}"),
            ("a=b; c=/d", f"a={MARK}; c=/d"),
            ("a=b; reboot", "a=b; reboot"),
        ],
    )
    def test_structure_under_a_secret_name_keeps_its_shape(self, structure: Any, shown: Any) -> None:
        value = {"credentials": structure, "user": "ann"}
        assert masked(value) == {"credentials": shown, "user": "ann"}
        assert masked([{"deep": [{"apiKeys": structure}]}]) == [{"deep": [{"apiKeys": shown}]}]
        assert masked({"name": "DB_PASSWORD", "value": structure})["value"] == shown

    def test_what_is_masked_is_left_as_it_was(self) -> None:
        value = {"credentials": {"user": "ann", "keys": ["x"]}, "cmd": "curl --token abc"}
        before = json.dumps(value)
        masked(value)
        assert json.dumps(value) == before

    def test_value_beside_a_secret_name_is_hidden(self) -> None:
        value = [
            {"name": "API_KEY", "value": "x"},
            {"name": "MODE", "value": "x"},
            {"key": "token", "value": "y"},
        ]
        shown = masked(value)
        assert [each["value"] for each in shown] == [MARK, "x", MARK]
        assert [each.get("name") for each in shown] == ["API_KEY", "MODE", None]


class TestShapes:
    @pytest.mark.parametrize(
        "secret",
        [
            *(long(f"gh{kind}_", 36) for kind in "pousr"),
            long("github_" + "pat_", 50),
            long("gl" + "pat-", 20),
            *("AKIA" + "ABCDEFGHIJ234567", "ASIA" + "ABCDEFGHIJ234567"),
            *(long(f"xox{kind}-") for kind in "abprs"),
            long("xapp-"),
            *(long("sk-"), long("sk-" + "proj-"), long("sk-" + "ant-api03-")),
            *(long("sk_" + "live_"), long("rk_" + "test_")),
            *(long("AI" + "za", 35), long("ya29" + ".")),
            *(long("npm" + "_", 36), long("pypi" + "-"), long("hf" + "_"), long("wh" + "sec_")),
            "SG" + "." + long("", 22) + "." + long("", 43),
            "eyJ" + long("", 20) + "." + "eyJ" + long("", 30) + "." + long("", 43),
            "eyJ" + long("", 20) + "." + "eyJ" + long("", 30) + ".",
            "M" + long("", 25) + "." + "GabcD_" + "." + long("", 38),
            private_key(),
            private_key("RSA "),
            private_key("OPENSSH ", "\\n"),
            private_key("EC ", " "),
            private_key().replace(
                "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0F\n\n", 1
            ),
        ],
        ids=lambda secret: secret[:12].strip("-"),
    )
    @pytest.mark.parametrize("around", ["{}", "run {} now", "X='{}'", "[{}]", "é{}", "a={}&b=1", "a\n{}\nb"])
    def test_what_looks_like_a_secret_is_hidden_in_any_text(self, secret: str, around: str) -> None:
        assert masked({"text": [around.format(secret)]}) == {"text": [around.format(MARK)]}

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("https://ann:pw@host/x", f"https://ann:{MARK}@host/x"),
            ("postgresql://:p%40w@db:5432/x?y=1", f"postgresql://:{MARK}@db:5432/x?y=1"),
            (f"git clone https://{long('')}@host/x", f"git clone https://{MARK}@host/x"),
            ("1https://a:b@c/ https://d:e@f", f"1https://a:{MARK}@c/ https://d:{MARK}@f"),
            ("https://good.org:x@evil.org/", f"https://good.org:{MARK}@evil.org/"),
            (
                long("curl https://hooks.slack.com/services/T0/"),
                f"curl https://hooks.slack.com/services/{MARK}",
            ),
            ("Bearer abcd1234", f"Bearer {MARK}"),
            ("x-auth: bearer  abc.def-123~+/==, y", f"x-auth: bearer  {MARK}, y"),
            ("Basic YW5uOnB3MTIz", f"Basic {MARK}"),
            ("123456789:" + long("", 35), f"123456789:{MARK}"),
        ],
    )
    def test_only_the_secret_of_a_text_is_hidden(self, text: str, shown: str) -> None:
        assert masked(text) == shown

    @pytest.mark.parametrize(
        "text",
        [
            *("a bearer of bad news", "basic authentication", "ask the task-force-of-the-long-name-thing-1"),
            *(
                "https://host:8080/a@b",
                "http://a/b:c@d",
                "ann@host:/srv",
                "mailto:ann@example.org",
                "12:30@home",
            ),
            *(
                "sk-",
                "ghp_short",
                "eyJhbGciOi",
                "AKIA",
                "class=sk-folding-cube-wrapper",
                "disk-0123456789abcdef01234",
            ),
            *(
                "-----BEGIN CERTIFICATE-----",
                "-----BEGIN PUBLIC KEY-----",
                "d41d8cd98f00b204e9800998ecf8427e",
            ),
            *(
                "the password is secret",
                "token",
                "--token",
                "key: x",
                "a b  c",
                "PWD=/srv/x",
                "--passwordless=x",
            ),
            *(
                "--password-file=/run/x",
                "--token-type x",
                "max_token_count=5",
                "secretary: Ann",
                "\x00\n\t ",
                "•",
            ),
        ],
    )
    def test_what_is_no_secret_is_shown(self, text: str) -> None:
        assert masked([text, {"text": text}]) == [text, {"text": text}]


class TestCommands:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("--password=x", f"--password={MARK}"),
            ("mysql --password=x -h db", f"mysql --password={MARK} -h db"),
            ("tool --api-key x --force", f"tool --api-key {MARK} --force"),
            ("tool -token x", f"tool -token {MARK}"),
            ("PGPASSWORD=x psql -h db", f"PGPASSWORD={MARK} psql -h db"),
            ("export A=1 TOKEN='a' B=2", f"export A=1 TOKEN='{MARK}' B=2"),
            ('--secret="a" c', f'--secret="{MARK}" c'),
            ('{"password": "x", "n": 1}', f'{{"password": "{MARK}", "n": 1}}'),
            ('{\\"password\\": \\"x\\", \\"n\\": 1}', f'{{\\"password\\": \\"{MARK}\\", \\"n\\": 1}}'),
            ("password: x\nuser: ann\ntoken = y", f"password: {MARK}\nuser: ann\ntoken = {MARK}"),
            ("https://h/?api_key=x&b=1", f"https://h/?api_key={MARK}&b=1"),
            ("curl -H 'Authorization: Bearer x' h", f"curl -H 'Authorization: Bearer {MARK}' h"),
            ("curl -H 'X-Api-Key: x' h", f"curl -H 'X-Api-Key: {MARK}' h"),
            ("curl -H Cookie:a=b;c=d h", f"curl -H Cookie:{MARK};c={MARK} h"),
            ("curl -H 'Cookie: a=b; c=/d; e=f' h", f"curl -H 'Cookie: a={MARK}; c=/d; e={MARK}' h"),
            ("tool -- TOKEN=x", f"tool -- TOKEN={MARK}"),
            ("env 'TOKEN=x' run", f"env 'TOKEN={MARK}' run"),
            ("bash -lc 'TOKEN=x run /srv'", f"bash -lc 'TOKEN={MARK} run /srv'"),
            ("curl -u ann:pw https://h", f"curl -u ann:{MARK} https://h"),
            ("env=TOKEN=x", f"env=TOKEN={MARK}"),
            ("Server=db;Password=x;Port=1", f"Server=db;Password={MARK};Port=1"),
            ("f(token=abc, n=1)", f"f(token={MARK}, n=1)"),
        ],
    )
    def test_values_of_secret_names_in_a_text_are_hidden(self, text: str, shown: str) -> None:
        assert masked(text) == shown
        assert masked({"argv": ["sh", "-c", text]}) == {"argv": ["sh", "-c", shown]}

    @pytest.mark.parametrize(
        ("argv", "shown"),
        [
            (["tool", "--token", "x", "y"], ["tool", "--token", MARK, "y"]),
            (["--password", "a", "--token=x"], ["--password", MARK, f"--token={MARK}"]),
            (["--token", "x", "--", "--token", "y"], ["--token", MARK, "--", "--token", "y"]),
            (["-token", "x"], ["-token", MARK]),
            (["-H", "Cookie: a=b; c=d"], ["-H", f"Cookie: a={MARK}; c={MARK}"]),
            (["-H", "X-Auth-Token:x"], ["-H", f"X-Auth-Token:{MARK}"]),
            (["env", "TOKEN=x", "run"], ["env", f"TOKEN={MARK}", "run"]),
            (["/usr/bin/curl", "-u", "ann:pw", "h"], ["/usr/bin/curl", "-u", f"ann:{MARK}", "h"]),
            (["curl", "-H", "Authorization: Basic eDp5"], ["curl", "-H", f"Authorization: Basic {MARK}"]),
        ],
    )
    def test_secret_arguments_are_hidden(self, argv: list[str], shown: list[str]) -> None:
        assert masked({"argv": argv}) == {"argv": shown}
        assert masked(tuple(argv)) == shown

    @pytest.mark.parametrize(
        "argv",
        [
            ["--token", "--force"],
            ["--token"],
            ["--token", ""],
            ["--token", 5],
            ["--no-password", "rm"],
            ["--ask-password", "rm", "-rf"],
            ["--password-stdin", "x"],
            ["docker", "run", "-u", "1000:1000"],
            ["password", "x"],
            ["-p", "8080"],
            ["rm", "-rf", "--", "--token", "victim"],
            ["rm", "-rf", "--", "--token=victim", "TOKEN=x", "https://a:b@c"],
            ["--token", "--", "x"],
            *(["--token", path] for path in ("/tmp/x", "./x", "../x", "~/x", "~")),
            *(["--token", several] for several in ("rm -rf x", "a\tb", "a\nb")),
            *(["--token", signs] for signs in ("a;b", "a|b", "a&b", "$a", "`a`", "a>b", "{a,b}", "a'b")),
            ["curl", {}, "x", "-u", "x:/tmp/x"],
            ["env", "TOKEN=rm -rf /srv", "sh", "-c", "$TOKEN"],
            ["--token=rm -rf", "--token=/srv", "TOKEN=rm\n-rf", "X-Api-Key: rm -rf"],
        ],
    )
    def test_other_arguments_are_shown(self, argv: list[Any]) -> None:
        assert masked(argv) == argv

    @pytest.mark.parametrize(
        "runs",
        [
            *(
                "$(rm -rf /)",
                "`reboot`",
                "x && rm -rf /",
                "x || rm -rf /",
                "x | sh",
                "x\nrm -rf /",
                "x; rm -rf /",
            ),
            *("x;rm -rf /", "x|sh", "x&reboot", "x>out", "$(a)$(b)"),
        ],
    )
    def test_what_could_be_run_is_never_hidden(self, runs: str) -> None:
        ran = runs.removeprefix("x").strip(" \n")
        shown = [
            masked(f"tool --token={runs}"),
            masked(f"tool --token {runs}"),
            masked(f"TOKEN={runs}"),
            masked(f"token: {runs}"),
            masked(f"curl -u x:{runs}"),
        ]
        assert all(ran in each for each in shown), shown
        unbroken = runs.replace(" ", "${IFS}").replace("/", "~")
        assert unbroken in masked(f"curl https://a:{unbroken}@host")

    @pytest.mark.parametrize(
        "runs", ["$(rm -rf /)", "`reboot`", "x && rm -rf /", "x | sh", "x\nrm -rf /", "x; rm -rf /"]
    )
    def test_what_could_be_run_is_not_hidden_by_a_name(self, runs: str) -> None:
        assert masked({"token": runs}) == {"token": runs}
        assert masked(["--token", runs]) == ["--token", runs]
        assert masked(f'TOKEN="{runs}"').count(runs.rpartition(" ")[2]) == 1

    @pytest.mark.parametrize(
        "text",
        [
            "rm -rf -- --token victim",
            "rm -rf -- --token=victim",
            "rm --token /tmp/victim",
            "env TOKEN=\"rm -rf /srv\" sh -c '$TOKEN'",
            "env 'TOKEN=rm -rf /srv' sh -c '$TOKEN'",
            "env \"TOKEN=rm -rf /srv\" sh -c '$TOKEN'",
            "TOKEN=rm\\ -rf\\ /srv",
            "RESTIC_PASSWORD_COMMAND=reboot restic",
            "rm bearer /etc/important1",
        ],
    )
    def test_target_in_a_text_cannot_pass_for_a_secret(self, text: str) -> None:
        assert masked({"cmd": text}) == {"cmd": text}

    def test_command_after_an_empty_assignment_is_shown(self) -> None:
        assert masked("TOKEN= rm -rf /") == "TOKEN= rm -rf /"

    def test_call_in_a_program_is_shown(self) -> None:
        program = "token=os.system('rm -rf /')"
        assert masked({"code": program}) == {"code": program}

    def test_commands_between_the_lines_of_a_key_are_shown(self) -> None:
        text = f"-----BEGIN PRIVATE KEY-----\nreboot\n{KEY_LINES}\nrm -rf /srv\n-----END PRIVATE KEY-----"
        shown = masked(text)
        assert "reboot" in shown
        assert "rm -rf /srv" in shown


RANDOM = "aB3dE5gH7jK9"


class TestWhereItIsDecided:
    """Only what looks like a secret is hidden there, never an argument because of the word before it."""

    @pytest.mark.parametrize(
        "value",
        [
            ["dropdb", "--password", "production"],
            ["mysqladmin", "--password", "shutdown"],
            ["tool", "--token", "db-eu-1.internal:5432", "--secret", "customers_prod_2024"],
            {"access_token": "https://prod.example/delete?all=1&force=true"},
            {"token": 1_000_000, "pin": 1234, "otp": 5.5},
            {"credentials": {"action": "dropAllTables2", "on": ["payments-staging", "k8s-prod"]}},
            "PGPASSWORD=production dropdb",
            "curl -u root:shutdown http://db/",
            "curl -H 'Authorization: Bearer shutdown2024'",
            "Cookie: a=reboot; b=halt",
            "sk-delete-all-customers-2024",
            "xoxb-production-database-1",
            "ghp_productiondatabasecustomers",
            {"name": "API_KEY", "value": "production"},
            "https://delete-all-the-customers@host/x",
        ],
        ids=repr,
    )
    def test_words_are_shown_whatever_stands_before_them(self, value: Any) -> None:
        assert seen(value) == value

    @pytest.mark.parametrize(
        "form",
        [
            "--password={}",
            "tool --token {} now",
            "TOKEN={} run",
            "curl -u ann:{} h",
            "Authorization: Bearer {}",
            "https://ann:{}@host/x",
            "https://h/?api_key={}&b=1",
        ],
    )
    @pytest.mark.parametrize(
        "secret", [RANDOM, "9f86d081884c7d659a2feaa0c55ad015", long("", 40), "p4ssw0rdx1"]
    )
    def test_what_seems_drawn_by_chance_is_hidden(self, form: str, secret: str) -> None:
        assert seen(form.format(secret)) == form.format(MARK)
        assert seen({"token": secret, "argv": ["--token", secret]}) == {
            "token": MARK,
            "argv": ["--token", MARK],
        }

    def test_only_the_part_is_hidden_that_does(self) -> None:
        assert seen({"token": f"drop-production-{RANDOM}"}) == {"token": f"drop-production-{MARK}"}
        assert seen({"token": f"https://evil.example/{RANDOM}/x"}) == {
            "token": f"https://evil.example/{MARK}/x"
        }
        assert seen({"token": f"{RANDOM}.{RANDOM}-{RANDOM}="}) == {"token": MARK}
        assert seen({"token": f"{RANDOM}\u202e!"}) == {"token": f"{MARK}\u202e!"}

    @pytest.mark.parametrize("secret", [private_key(), "AKIA" + "ABCDEFGHIJ234567"], ids=["key", "id"])
    def test_shape_that_is_certain_is_hidden_whole(self, secret: str) -> None:
        assert seen(f"x {secret} y") == f"x {MARK} y"

    def test_password_in_an_address_is_hidden_by_its_place(self) -> None:
        assert seen("postgresql://app:hunter2@db/x") == f"postgresql://app:{MARK}@db/x"

    @given(st.lists(st.sampled_from(NAMES_OF_THINGS), min_size=1, max_size=4), st.sampled_from("-_./: "))
    def test_names_made_of_words_are_never_hidden(self, words: list[str], joint: str) -> None:
        name = joint.join(words)
        assert seen({"password": name, "argv": ["--token", name]}) == {
            "password": name,
            "argv": ["--token", name],
        }


def is_whole(shown: Any, value: Any) -> bool:
    """Whether everything is there that the value has, or a mark in the place of it."""
    match value:
        case dict() if isinstance(shown, dict):
            pairs_shown = zip(shown.values(), value.values(), strict=True)
        case list() if isinstance(shown, list):
            pairs_shown = zip(shown, value, strict=True)
        case dict() | list():
            return False
        case _:
            return not isinstance(shown, dict | list)
    return all(is_whole(*each) for each in pairs_shown)


awkward_texts = st.text(alphabet="token=:-'\"\\ \n$(){}sk_pwd.@/;&•ghy0", max_size=40)
names = st.sampled_from(["token", "tokens", "a", "name", "value", "--token", "credentials"]) | pairs.texts
values = st.recursive(
    st.none() | st.booleans() | pairs.numbers | awkward_texts | pairs.texts | names,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


class TestAnything:
    @given(values)
    def test_nothing_goes_missing(self, value: Any) -> None:
        assert is_whole(masked(value), value)

    @given(values)
    def test_value_itself_is_not_changed(self, value: Any) -> None:
        before = json.dumps(value)
        masked(value)
        assert json.dumps(value) == before

    @given(awkward_texts)
    def test_parts_that_are_shown_are_those_of_the_text_in_order(self, text: str) -> None:
        covered = masking.cover(text)
        shown = [covered] if isinstance(covered, str) else covered.parts
        parts = [part for part in shown if isinstance(part, str)]
        place = 0
        for part in parts:
            place = text.index(part, place) + len(part)

    @given(
        before=awkward_texts,
        after=awkward_texts,
        name=st.sampled_from(["password", "API_KEY", "clientSecret"]),
    )
    def test_secret_under_its_name_is_never_in_what_is_shown(
        self, before: str, after: str, name: str
    ) -> None:
        value = {"x": before, "y": {name: "hunter2"}, "z": [f"{name}=hunter2", f"--{name}", "hunter2", after]}
        assert "hunter2" not in json.dumps(masked(value))
