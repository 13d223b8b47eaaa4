"""Numbers as people read them."""

FORMS = ("tokens", "size", "dollars", "percent")
BINARY = 1024
THOUSAND = 1000
SMALL_SHARE = 0.1


def tokens(count: float) -> str:
    """A large number, rounded: ``4.1 M``."""
    return _scaled(count, THOUSAND, ("", " k", " M", " G", " T"))


def size(count: float) -> str:
    """So many bytes: ``4.2 GiB``."""
    return _scaled(count, BINARY, (" B", " KiB", " MiB", " GiB", " TiB"))


def dollars(amount: float) -> str:
    """Small amounts are told to the tenth of a cent: many turns cost no more."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.3f}"


def percent(share: float) -> str:
    """Small shares with a digit more."""
    return f"{share:.0%}" if share == 0 or share >= SMALL_SHARE else f"{share:.1%}"


def _scaled(count: float, step: int, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if abs(count) < step:
            return f"{count:.0f}{unit}" if unit == units[0] else f"{count:.1f}{unit}"
        count /= step
    return f"{count:,.1f}{units[-1]}"
