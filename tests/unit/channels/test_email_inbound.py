"""Mails as they come in: who wrote them, whether they did, what they wrote."""

import contextlib
from email.message import EmailMessage

import pytest

from frontdesk import errors
from frontdesk.channels.email import addresses, bodies, inbound, options, parsing, trust
from frontdesk.contracts import channels

OURS = "desk@frontdesk.test"
OPTIONS = options.Options(address=OURS, password=lambda: "x", imap_host="x", smtp_host="x")
PROVEN = "mx.test; dmarc=pass (p=reject) header.from=a.test"


def raw(text: str = "Hello", **headers: str) -> bytes:
    """A mail, its headers as they stand."""
    given = {"From": "Ann <ann@a.test>", "Message_ID": "<1@a.test>"} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in given.items()]
    return ("\r\n".join(lines) + "\r\n\r\n" + text).encode()


def read(mail: bytes, **more: str) -> channels.Incoming:
    made = options.Options(address=OURS, password=lambda: "x", imap_host="x", smtp_host="x", **more)  # type: ignore[arg-type]
    return inbound.read_mail(mail, "1:2", made, None)


@pytest.mark.parametrize(
    ("written", "address", "name"),
    [
        ("ann@a.test", "ann@a.test", ""),
        ("Ann@A.Test", "ann@a.test", ""),
        ("Ann B. <ann@a.test>", "ann@a.test", "Ann B."),
        ('"B, Ann" <ann@a.test>', "ann@a.test", "B, Ann"),
        ('"Bob <bob@b.test>" <ann@a.test>', "ann@a.test", ""),
        ("=?utf-8?q?Bob_=3Cbob=40b.test=3E?= <ann@a.test>", "ann@a.test", ""),
        ("=?utf-8?b?Ym9i77ygYi50ZXN0?= <ann@a.test>", "ann@a.test", ""),
        ("=?utf-8?q?J=C3=BCrgen?= <j@a.test>", "j@a.test", "Jürgen"),
        ("ann@a.test (Ann)", "ann@a.test", ""),
    ],
)
def test_sender_is_read_from_a_plain_header(written: str, address: str, name: str) -> None:
    source = read(raw(From=written)).source
    assert (source.user_id, source.chat_id, source.user_name or "") == (address, address, name)


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            "Ann",
            "ann@a.test, bob@b.test",
            "Friends: ann@a.test;",
            "ann@a.test <bob@b.test>",
            "<ann@a.test",
        ),
        *("ann@a.test\r\nFrom: bob@b.test", "<ann@a.test> <bob@b.test>", "a@b@c.test", "Ann <ann @a.test>"),
        '(") <bob@a.test> (") <ann@a.test>',
    ],
)
def test_sender_who_could_be_two_is_nobody(written: str) -> None:
    with pytest.raises(errors.InvalidInput, match="plainly"):
        read(raw(From=written))


@pytest.mark.parametrize(
    ("results", "proven"),
    [
        (PROVEN, True),
        ("MX.test 1; spf=fail; dmarc=pass header.from=A.TEST", True),
        ("mx.test; dkim=pass header.d=a.test", True),
        ("mx.test; dkim=pass header.i=@a.test header.s=x", True),
        ("mx.test; spf=pass smtp.mailfrom=bounce@a.test", True),
        ("mx.test; none", False),
        ("other.test; dmarc=pass header.from=a.test", False),
        ("mx.test; dmarc=pass header.from=b.test", False),
        ("mx.test; dmarc=fail header.from=a.test", False),
        ("mx.test; dkim=pass header.d=evil.a.test", False),
        ("mx.test; dkim=pass header.d=test", False),
        ("mx.test; dkim=fail (dkim=pass header.d=a.test) header.d=a.test", False),
        ("mx.test; spf=pass smtp.mailfrom=a.test.evil.test", False),
        ("mx.test; x=y dmarc=pass header.from=a.test", False),
        ('mx.test; spf=pass smtp.mailfrom="x; dmarc=pass header.from=a.test "@b.test', False),
        ('mx.test; dkim=pass header.i="x header.d=a.test "@b.test', False),
        ('mx.test; spf=pass (of "x) ; dmarc=pass header.from=a.test ("@b.test) smtp.mailfrom=b.test', False),
        ('mx.test; spf=pass smtp.mailfrom="x"@a.test; dkim=none reason="a; b"', True),
        ("", False),
    ],
)
def test_sender_is_proven_by_what_our_own_server_found(results: str, proven: bool) -> None:
    mail = parsing.parse(raw(Authentication_Results=results))
    assert trust.is_proven(mail, "ann@a.test", "mx.test") is proven


def test_results_that_came_with_the_mail_do_not_count() -> None:
    found = f"mx.test; dmarc=fail header.from=a.test\r\nAuthentication-Results: {PROVEN}"
    mail = raw(Authentication_Results=found)
    with pytest.raises(errors.NotAllowed):
        read(mail, authserv_id="mx.test")
    assert read(raw(Authentication_Results=PROVEN), authserv_id="mx.test").text == "Hello"
    unclear = f'mx.test; spf=pass (of "x)\r\nAuthentication-Results: {PROVEN}'
    with pytest.raises(errors.NotAllowed):
        read(raw(Authentication_Results=unclear), authserv_id="mx.test")


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "auto-replied"},
        {"Auto_Submitted": "auto-generated; owner-email=x"},
        {"Precedence": "Bulk"},
        {"List_Id": "<x.test>"},
        {"list_unsubscribe": "<mailto:x@y.z>"},
        {"Return_Path": " <>"},
        {"Content_Type": "multipart/report; boundary=x"},
        {"From": OURS.upper()},
        {"From": "MAILER-DAEMON@a.test"},
        {"From": "no-reply@a.test"},
        {"X_Autoreply": "yes"},
    ],
)
def test_mail_of_programs_is_not_answered(headers: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidInput, match="a program"):
        read(raw(**headers))


def test_mail_of_people_is_no_program_s() -> None:
    assert read(raw(Auto_Submitted="No", Precedence="normal", Return_Path="<ann@a.test>")).text == "Hello"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("Yes.\n\nOn Monday, Bob wrote:\n> really?\n>\n> Bob\n", "Yes."),
        ("Yes.\n\nAm Montag, dem 5. Januar\nschrieb Bob <bob@b.test>:\n\n> wirklich?", "Yes."),
        ("> really?\nYes.\n> sure?\nYes!", "> really?\nYes.\n> sure?\nYes!"),
        ("Yes.\n-- \nAnn\nphone", "Yes."),
        ("Yes.\n\n-----Original Message-----\nFrom: Bob\nreally?", "Yes."),
        ("Do this:\n\n> all quoted", "Do this:\n\n> all quoted"),
        ("> only a quote", "> only a quote"),
        ("a > b\n\n\nc", "a > b\n\n\nc"),
    ],
)
def test_what_is_quoted_at_the_end_is_cut(written: str, kept: str) -> None:
    assert read(raw(written.replace("\n", "\r\n"))).text == kept


def test_html_is_read_where_there_is_no_text() -> None:
    mail = EmailMessage()
    mail["From"], mail["Message-ID"] = "ann@a.test", "<1@a.test>"
    mail.set_content(
        "<html><head><style>p{}</style></head><p>Hello &amp; <b>welcome</b></p><div>two</div>"
        '<div class="gmail_quote">On Monday<div>quoted</div></div>'
        "<blockquote>old</blockquote><script>x</script>",
        subtype="html",
    )
    assert read(mail.as_bytes()).text == "Hello & welcome\n\ntwo"


def test_thread_is_named_by_its_first_mail() -> None:
    first = read(raw())
    answer = read(
        raw(Message_ID="<3@a.test>", References="<1@a.test>\r\n <2@x.test>", In_Reply_To="<2@x.test>")
    )
    assert first.source.thread_id == answer.source.thread_id == "<1@a.test>"
    assert read(raw(Message_ID="<4@a.test>", In_Reply_To="<1@a.test>")).source.thread_id == "<1@a.test>"


def test_same_id_from_another_sender_is_another_mail() -> None:
    assert read(raw()).event_id != read(raw(From="bob@b.test")).event_id


def test_mail_without_an_id_has_one_of_its_bytes() -> None:
    one, two = raw(Message_ID=""), raw("Other", Message_ID="")
    assert read(one).event_id == read(one).event_id != read(two).event_id


def test_strange_times_and_charsets_are_no_matter() -> None:
    assert read(raw(Date="soon")).sent_at is None
    assert read(raw(Content_Type="text/plain; charset=nowhere")).text == "Hello"
    assert read(raw(Date="Mon, 5 Jan 2026 12:00:00 -0000")).sent_at is not None


def test_nested_mail_has_an_end() -> None:
    deep = b"From: a@b.test\r\n" + b"Content-Type: message/rfc822\r\n\r\n" * 3_000
    with contextlib.suppress(errors.InvalidInput):
        assert inbound.read_mail(deep, "1:2", OPTIONS, None).source.user_id == "a@b.test"
    assert addresses.references(parsing.parse(raw(References="<a@b> " * 5_000))) == ["<a@b>"]


@pytest.mark.parametrize("hard", ["<a ", "<!--", "</", "<a b='", "<div ", "&", "<p><blockquote>"])
def test_page_made_to_be_hard_has_an_end(hard: str) -> None:
    """Python's own parser of pages takes minutes for some of these."""
    assert len(bodies.shown(hard * 40_000)) <= len(hard) * 40_000
