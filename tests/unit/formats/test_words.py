"""Text to words, and queries to terms."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.formats import words
from frontdesk.model.searches import Term

HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=2)
THAI_WORD = "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35"
TEXTS = st.one_of(
    st.text(),
    st.text(st.characters(codec="ascii")),
    st.lists(
        st.sampled_from(
            [
                "foo",
                "Bar-baz",
                "it's",
                "naïve",
                "cafe\u0301",
                "ΣΊΣΥΦΟΣ",
                "天气",
                "API网关",
                "ｶﾞ",
                "👍🏽",
                "₿",
                "—",
                "٣٤",
            ]
        )
    ).map(" ".join),
)


def stands_in(term: Term, found: list[str]) -> bool:
    """What both databases do with a term."""
    *head, last = term.words
    for at in range(len(found) - len(head)):
        end = found[at + len(head)]
        fits = end.startswith(last) if term.prefix else end == last
        if fits and found[at : at + len(head)] == head:
            return True
    return False


def finds(query: str, text: str) -> bool:
    return all(stands_in(term, words.split(text)) for term in words.parse(query))


def searchable(text: str) -> bool:
    return bool(words.split(text)) and len(text) <= words.MAX_QUERY_WORDS


@given(TEXTS)
def test_every_word_of_a_text_is_found_by_itself(text: str) -> None:
    for chunk in filter(searchable, text.split()):
        assert finds(chunk, text)


@given(TEXTS)
def test_every_text_is_found_as_a_phrase(text: str) -> None:
    phrase = text.translate({ord(quote): " " for quote in '"\u201c\u201d\u201e\u201f'})
    if searchable(phrase):
        assert finds(f'"{phrase}"', phrase)


@given(st.text(st.characters(categories=["Ll", "Lu", "Nd"], max_codepoint=0x24F), min_size=1), st.data())
def test_every_beginning_of_a_word_finds_it(word: str, data: st.DataObject) -> None:
    beginning = word[: data.draw(st.integers(1, len(word)))]
    if searchable(beginning):
        assert finds(f"{beginning}*", f"before {word} after")


@given(HAN, st.data())
def test_any_two_neighbours_of_an_unspaced_script_are_found(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 2))
    assert finds(text[at : at + 2], text)
    assert finds(text[at : at + 2], f"mixed{text}with words")


@given(HAN, st.data())
def test_any_single_character_of_an_unspaced_script_is_found(text: str, data: st.DataObject) -> None:
    assert finds(data.draw(st.sampled_from(text)), text)


@given(st.text())
def test_words_are_letters_and_digits_that_the_tokenizer_keeps_together(text: str) -> None:
    for word in words.split(text):
        assert word
        assert all(not char.isascii() or (char.isalnum() and not char.isupper()) for char in word)
        assert not any(unicodedata.category(char) in ("Cs", "Co", "Zs", "Cc", "Po") for char in word)
        word.encode()


@given(TEXTS)
def test_places_of_words_are_their_places_in_the_text(text: str) -> None:
    normal = unicodedata.normalize("NFC", text)
    placed = words.spans(normal)
    assert all(0 <= start < end <= len(normal) for _, start, end in placed)
    assert [start for _, start, _ in placed] == sorted(start for _, start, _ in placed)


@given(
    st.lists(
        st.sampled_from(
            ["foo", "Bar-baz", "naïve", "ΣΊΣΥΦΟΣ", "天气预报", "API网关", "ｶﾞｷﾞ", "👍🏽", "—", "٣٤"]
        )
    )
)
def test_placed_words_are_the_words(parts: list[str]) -> None:
    text = unicodedata.normalize("NFC", " ".join(parts))
    assert [span.word for span in words.spans(text)] == words.split(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World_foo x2!", ["hello", "world", "foo", "x2"]),
        ("don't don’t", ["don", "t", "don", "t"]),
        ("Café CAFE\u0301 naïve Ǆ", ["cafe", "cafe", "naive", "dz"]),
        ("Straße İstanbul ΣΊΣΥΦΟΣ Σίσυφος", ["strasse", "istanbul", "σισυφοσ", "σισυφοσ"]),
        ("Ёлка ёлка", ["елка", "елка"]),
        ("今天天气", ["今天", "天天", "天气", "气"]),
        ("API网关v2", ["api", "网关", "关", "v2"]),
        ("カタカナ、ひらがな", ["カタ", "タカ", "カナ", "ナ", "ひら", "らが", "がな", "な"]),
        ("ｶﾞ ＡＢＣ１２", ["ガ", "abc12"]),
        ("한국어 검색", ["한국", "국어", "어", "검색", "색"]),
        ("مَرْحَبًا ـــ ١٢٣", ["مرحبا", "123"]),
        ("שָׁלוֹם־עולם", ["שלום", "עולם"]),
        ("हिन्दी", ["हिन्दी"]),
        ("👍🏽👨‍👩‍👧 ❤️ ok", ["👍", "👨", "👩", "👧", "❤", "ok"]),
        ("1️⃣ ½ №5 x² ™ Acme™", ["1", "1", "2", "no5", "x2", "acme"]),
        ("a\0b \ud800c \ue000d", ["a", "b", "c", "d"]),
        ("soft\u00adhyphen zero\u200bwidth می\u200cخواهم", ["softhyphen", "zero", "width", "میخواهم"]),
        ("│ ─── → … « » € ---", []),
    ],
)
def test_texts_have_these_words(text: str, expected: list[str]) -> None:
    assert words.split(text) == expected


def test_thai_is_found_inside_a_sentence() -> None:
    assert finds(THAI_WORD, f"\u0e1c\u0e21{THAI_WORD}\u0e04\u0e23\u0e31\u0e1a")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("cafe", "Le Café"),
        ("CAFÉ", "le cafe\u0301"),
        ("مرحبا", "مَرْحَبًا"),
        ("123", "١٢٣"),
        ("👍", "well done 👍🏽"),
        ("🇩🇪", "from 🇩🇪 with"),
        ('"天气 good"', "天气, good"),
        ('"good 天"', "a good 天气"),
        ("good天", "a good天气"),
        ("“big world”", "a big, world"),
        ('"big wor"*', "a big world"),
        ("state.db", "in ~/state.db"),
        ("big wor* 天", "world 天气 big"),
    ],
)
def test_query_finds_the_text(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("cat", "concatenate"),
        ('"big world"', "world big"),
        ('"big world"', "big wide world"),
        ("天气", "天 气"),
        ('"天 气"', "天气"),
        ("big small", "big"),
        ("state.db", "db state"),
        ("气天", "天气"),
    ],
)
def test_query_does_not_find_the_text(query: str, text: str) -> None:
    assert not finds(query, text)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("foo", [Term(("foo",))]),
        ('foo "bar baz" qu*', [Term(("foo",)), Term(("bar", "baz")), Term(("qu",), prefix=True)]),
        ('"bar ba"*', [Term(("bar", "ba"), prefix=True)]),
        ('"never closed', [Term(("never", "closed"))]),
        ("foo-bar*", [Term(("foo", "bar"), prefix=True)]),
        ("a*b * **", [Term(("a", "b"))]),
        ("天气很", [Term(("天气", "气很"))]),
        ("气", [Term(("气",), prefix=True)]),
        ("天气 气", [Term(("天气",)), Term(("气",), prefix=True)]),
        ('"天气 气"', [Term(("天气", "气", "气"), prefix=True)]),
        ('NOT (a OR b) NEAR/2 col:c ^d "', [Term((w,)) for w in ["not", "a", "or", "b"]]
         + [Term(("near", "2")), Term(("col", "c")), Term(("d",))]),
    ],
)  # fmt: skip
def test_query_has_these_terms(query: str, terms: list[Term]) -> None:
    assert words.parse(query) == tuple(terms)


@pytest.mark.parametrize("query", ["", " \n", '"', '""', "***", "' \\ ( ) : ^ -", "\0", "\ud800", "…—→"])
def test_query_without_a_word_is_refused(query: str) -> None:
    with pytest.raises(errors.InvalidQuery, match="no word"):
        words.parse(query)


@pytest.mark.parametrize("query", ["word " * 10_000, "x" * 100_000, "a " * 101, '"' + "a " * 101 + '"'])
def test_query_with_too_much_is_refused(query: str) -> None:
    with pytest.raises(errors.InvalidQuery, match=r"more than|longer than") as refused:
        words.parse(query)
    assert len(str(refused.value)) < 200


@given(st.text())
def test_any_query_gives_words_or_is_refused(query: str) -> None:
    try:
        terms = words.parse(query)
    except errors.InvalidQuery:
        return
    assert all(words.split(word)[0] == word for term in terms for word in term.words)
