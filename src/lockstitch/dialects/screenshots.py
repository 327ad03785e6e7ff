"""Screenshots of nothing: a computer call can only be answered with an image.

Each is a small picture of the words that other outputs say as text, so that a synthetic output
says that it is one here too."""

from __future__ import annotations

from typing import Final

from lockstitch.core.outcomes import Outcome

_PNG: Final = "data:image/png;base64,"

SCREENSHOT: Final[dict[Outcome, str]] = {
    Outcome.NEVER_STARTED: (
        _PNG
        + "iVBORw0KGgoAAAANSUhEUgAAAOgAAAAoAQAAAADcOothAAABTklEQVR42tWTvy8DcRjGn+/1wpGLdCBh0Q4X"
        "EZOuddVDIgarvZ1MFhNL74taLMQ/oP4CP9KhEtIjpDVIugqhmxsqvXCkTd29hmqjP3SuZ/0kT57nffIyQgcJ"
        "6EpKHABgt8dukYrug1O5IyLSK1SkX6o6+/9wFkGhgO9m6mg/M7a9dCoMcKshFR1MT+yYCcmm+SE1+JJvzqya"
        "6ANuV7gtY6+lkbgAAKrHUApYa6FGDiWIXzBMCaUmWo5e5WLDgBw1zKQ7MtrYVyciondqJ9ad+5IMIAUAyAPV"
        "jLxO2XFHZ2fdWcVyJqzshvTA2+t99jpzdu6tURbWVZCVSD2nw1sxPA32f8xhvEaFMhahTSYQcTbjkHpsLwCt"
        "nrmXF2Cd+BHxXHC4n0pTI56F6NOg4RJgcROoLyUAbCP5OJvTcDiT5oIUNCEb3p/rs//4ZV1JvwGs1ZjQKnNw"
        "XQAAAABJRU5ErkJggg=="
    ),
    Outcome.FINISHED: (
        _PNG
        + "iVBORw0KGgoAAAANSUhEUgAAAOgAAAAoAQAAAADcOothAAABMklEQVR42tWTMUvDUBSFzzOJpCDUsYPY3UWc"
        "rRo3B/0FgqD+BjFCaZ9gpUh+g3YQ144uDokgHe2u0opFMiixNGA0fe86REttH87xTBc+7uWec7mM8IcmkEpK"
        "HAAQqrEMKJB3IvbKrYBi+q2ExiJuEY1THbS0kL9ZrJ/v7GfCdmF0KzpbnjvxazC0ymek2LngI4OOKasdlSN9"
        "DcAMDD6rom4TEQABOU4/tq+bpRwAgUmTj/otExFRj1Ri6bwvtZOCyzfgO0lX0Tutum816jr2YyObeykWdhtZ"
        "x35yVgZ+5UOtt9Gv721e4jZ/rxeP+hdbujWYLEuH4sAMLdAqAEvwoTR1GJXueuPdADTrFIDmPg87EoLgch+Q"
        "SZPLh+mr0JjHfTZPnF1NgXnHzP6h7D9+WSrpF+xvuwnHTmm9AAAAAElFTkSuQmCC"
    ),
    Outcome.UNKNOWN: (
        _PNG
        + "iVBORw0KGgoAAAANSUhEUgAAAOgAAAAoAQAAAADcOothAAABWklEQVR42tWTMUvDUBSFz0siVgw0m3axboqD"
        "oquJZnQQOrg42klxEjcd0uhQ0T/g2A6uRQeRbgZFzJhRUDAgQgelqVZIaZLr0LRNIHQT6h0evPtxL+e8w2OE"
        "AcVhKCnpAIBmMg7qVA+e/XaDXomIwjOszuZpwE8aFUDKYvZh+fJCn3rfqBR3DyUxM270VFFpZe6sVgZyyoSP"
        "EW/GcstRzXINYwCg4gspV+VYzJGw1r2lgRRCF11qWHCR1mCAKNTYo638naVNghca9+A5CGxJ8vp+C0RE9E1J"
        "xYYm32osQbHTIQC2A6AKp0/Z1cDN/oG/j9M3J7tgVjRTejxXNiOUrRZkzLvI6c1c0Jz92S7tRCjXwjqQ2Ts+"
        "MXnPVE1S1ajmUf0DeIKvy21BhszsuCPdBCQweBw8eLCNKGVH1y+obVFR/OREiCx/0x/uxnGblFHvrYwkv+w/"
        "/tA/o7868LbNM6u32QAAAABJRU5ErkJggg=="
    ),
}
