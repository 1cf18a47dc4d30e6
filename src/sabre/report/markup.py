"""Words and numbers as HTML: everything that comes from a user is escaped here."""

import html
import math
from collections.abc import Iterable, Sequence

__all__ = ["escape", "format_exact", "format_number", "format_tick", "format_with_error", "table"]


def escape(text: object) -> str:
    """Text that is safe inside an element and inside a quoted attribute."""
    return html.escape(str(text), quote=True)


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def format_number(value: int | float, digits: int = 6) -> str:
    """A number with so many significant digits, thousands grouped."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else _minus(f"{'-' if value < 0 else ''}∞")
    if abs(value) < 1e15 and (value == int(value) or abs(value) >= 10**digits):
        return _minus(f"{round(value):,}")
    return _minus(f"{value:,.{digits}g}")


def format_exact(value: float) -> str:
    """An exact value of log Z, to the fifth decimal: finer than any standard error of ours."""
    return _minus(f"{round(value, 5) + 0.0:,.5f}")


def format_tick(value: float, step: float) -> str:
    """The label of an axis tick: as many decimals as the distance to the next one needs."""
    if value and not 1e-5 <= max(abs(value), step) < 1e9:
        return _minus(f"{value:.3g}")
    decimals = max(0, math.ceil(-math.log10(step) - 1e-9))
    decimals += round(step * 10**decimals, 6) % 1 > 0
    return _minus(f"{value + 0.0:,.{decimals}f}")


def format_with_error(value: float, stderr: float | None) -> str:
    """value ± stderr, both to the second digit of the standard error."""
    if stderr is None or not math.isfinite(stderr) or stderr <= 0 or not math.isfinite(value):
        return format_number(value)
    decimals = min(max(0, 1 - math.floor(math.log10(stderr))), 12)
    return _minus(f"{value:,.{decimals}f} ± {stderr:,.{decimals}f}")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str) -> str:
    """An HTML table. Cells are HTML already; the first of a row is its heading."""
    heading = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    head_html = f"<thead><tr>{heading}</tr></thead>" if head else ""
    return f'<div class="scroll"><table class="{escape(kind)}">{head_html}<tbody>{body}</tbody></table></div>'
