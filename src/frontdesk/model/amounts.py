"""How amounts are written for people."""

MINUTES_PER_HOUR = 60


def duration(minutes: int) -> str:
    """Whole hours and the minutes beyond them: ``24h``, ``1h 30m``, ``45m``."""
    hours, rest = divmod(minutes, MINUTES_PER_HOUR)
    if not hours:
        return f"{rest}m"
    return f"{hours}h {rest}m" if rest else f"{hours}h"


def dollars(amount: float) -> str:
    """Dollars and cents, with the fractions of a cent that there are: ``$5.00``, ``$0.0025``."""
    whole, _, fraction = f"{amount:,.6f}".partition(".")
    return f"${whole}.{fraction.rstrip('0'):0<2}"
