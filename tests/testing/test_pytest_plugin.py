"""The plugin is found by pytest itself, and costs nothing until it is used."""

import subprocess
import sys
import textwrap


def run_pytest(folder, text, *arguments):
    (folder / "test_it.py").write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, "test_it.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_test_elsewhere_only_has_to_ask_for_the_fixture(tmp_path):
    result = run_pytest(
        tmp_path,
        """
        from openai import OpenAI

        def test_it(emulator, make_emulator):
            emulator.say("hello")
            client = OpenAI(base_url=emulator.base_url, api_key="any")
            assert client.responses.create(model="m", input="hi").output_text == "hello"
            assert make_emulator().url != emulator.url
        """,
    )
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_a_run_that_does_not_use_it_does_not_load_it(tmp_path):
    result = run_pytest(
        tmp_path,
        """
        import sys

        def test_it():
            assert "lockstitch.testing.pytest_plugin" in sys.modules
            assert "lockstitch.emulator" not in sys.modules
            assert "aiohttp" not in sys.modules
        """,
        "-p",
        "no:xdist",
    )
    assert "1 passed" in result.stdout, result.stdout + result.stderr
