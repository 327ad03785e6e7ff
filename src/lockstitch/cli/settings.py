"""Settings of `check` and `mend` from `lockstitch.toml` or `[tool.lockstitch]` in pyproject.toml.

The nearest file counts, from the current folder upwards. Command-line options override it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from lockstitch.core.errors import LockstitchError
from lockstitch.core.rules import RULES

OWN_FILE: Final = "lockstitch.toml"
SHARED_FILE: Final = "pyproject.toml"


class SettingsError(LockstitchError):
    """A settings file cannot be used."""


class Settings(Struct, frozen=True, rename="kebab"):
    """What a settings file can say. Patterns and paths are relative to its folder."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    baseline: str | None = None


class Rules(Struct, frozen=True):
    """Which files are skipped, and which codes count in a file."""

    settings: Settings = Settings()
    folder: Path = Path()
    """Where the settings file is."""

    def excludes(self, path: Path) -> bool:
        """Is this file or folder skipped when a folder is searched?"""
        return any(_matches(pattern, path, self.folder) for pattern in self.settings.exclude)

    def counts(self, code: str, path: Path) -> bool:
        """Is a finding of this rule reported for this file?"""
        settings = self.settings
        if settings.select and not code.startswith(settings.select):
            return False
        if settings.ignore and code.startswith(settings.ignore):
            return False
        return not any(
            code.startswith(codes) and _matches(pattern, path, self.folder)
            for pattern, codes in settings.per_file_ignores.items()
        )

    @property
    def baseline(self) -> Path | None:
        name = self.settings.baseline
        return None if name is None else self.folder / name


def load_rules(
    config: Path | None,
    *,
    select: tuple[str, ...] | None = None,
    ignore: tuple[str, ...] | None = None,
    exclude: tuple[str, ...] = (),
) -> Rules:
    """The settings file's rules, overridden by what the command line says. Raises
    `SettingsError`.

    ``select`` replaces the file's `ignore` too: who asks for a rule by name wants to see it."""
    expect_known((*(select or ()), *(ignore or ())))
    file = config if config is not None else find_settings(Path.cwd())
    settings, folder = (Settings(), Path.cwd()) if file is None else (_read(file), file.parent)
    settings = msgspec.structs.replace(
        settings,
        select=settings.select if select is None else select,
        ignore=settings.ignore if ignore is None and select is None else ignore or (),
        exclude=settings.exclude + exclude,
    )
    return Rules(settings, folder.resolve())


def find_settings(start: Path) -> Path | None:
    """The nearest settings file, in this folder or above."""
    for folder in (start, *start.parents):
        own = folder / OWN_FILE
        if own.is_file():
            return own
        shared = folder / SHARED_FILE
        if shared.is_file() and _table(shared) is not None:
            return shared
    return None


def expect_known(codes: Iterable[str]) -> None:
    """Raises `LockstitchError` for a code or prefix that matches no rule."""
    for code in codes:
        if not any(known.startswith(code) for known in RULES):
            raise LockstitchError(
                f"There is no rule {code}. The rules are {', '.join(RULES)}. Explain one with:"
                " lockstitch check --explain CODE"
            )


def _read(file: Path) -> Settings:
    table = _table(file)
    if table is None:
        raise SettingsError(f"{file}: has no [tool.lockstitch] table.")
    known = [field.encode_name for field in msgspec.structs.fields(Settings)]
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, 1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(known)}."
            raise SettingsError(f"{file}: unknown setting {key!r}. {hint}")
        if wrong := _wrong(key, table[key]):
            raise SettingsError(f"{file}: {wrong}")
    settings = msgspec.convert(table, Settings)
    settings = msgspec.structs.replace(
        settings,
        select=_upper(settings.select),
        ignore=_upper(settings.ignore),
        per_file_ignores={
            pattern: _upper(codes) for pattern, codes in settings.per_file_ignores.items()
        },
    )
    ignored = (code for codes in settings.per_file_ignores.values() for code in codes)
    try:
        expect_known((*settings.select, *settings.ignore, *ignored))
    except LockstitchError as error:
        raise SettingsError(f"{file}: {error}") from None
    return settings


def _wrong(key: str, value: object) -> str:
    """What is wrong with the type of a setting; empty if nothing is."""
    if key == "baseline":
        example = '"lockstitch-baseline.json"'
        return "" if isinstance(value, str) else f"{key} must be a string, such as {example}."
    if key == "per-file-ignores":
        if not isinstance(value, dict):
            return f'{key} must be a table of patterns, such as {{ "tests/*" = ["LS001"] }}.'
        for pattern, codes in value.items():
            if not _is_strings(codes):
                return f'{key}: {pattern!r} must be a list of strings, such as ["LS001"].'
        return ""
    example = '["archive"]' if key == "exclude" else '["LS001"]'
    return "" if _is_strings(value) else f"{key} must be a list of strings, such as {example}."


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _upper(codes: Iterable[str]) -> tuple[str, ...]:
    return tuple(code.strip().upper() for code in codes)


def _table(file: Path) -> dict[str, Any] | None:
    """The settings as they are written; None if a shared file has none."""
    try:
        with file.open("rb") as stream:
            content = tomllib.load(stream)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: is not valid TOML: {error}.") from None
    if file.name != SHARED_FILE:
        return content
    tool = content.get("tool")
    table = tool.get("lockstitch") if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else None


def _matches(pattern: str, path: Path, folder: Path) -> bool:
    """A pattern with a slash is for the path from the settings file's folder; one without is for
    the name of any file or folder on the way."""
    absolute = path if path.is_absolute() else Path.cwd() / path
    try:
        parts = absolute.relative_to(folder).parts
    except ValueError:  # outside the folder of the settings
        parts = absolute.parts[1:]
    bare = pattern.strip("/")
    if "/" not in bare:
        return any(fnmatchcase(part, bare) for part in parts)
    ways = ("/".join(parts[:length]) for length in range(1, len(parts) + 1))
    return any(fnmatchcase(way, bare) for way in ways)
