"""Take the README's picture of a report: `.venv/bin/python tools/picture.py reports/examples/.../index.html`.

Needs Debian's Chromium and playwright (dev group). The picture is the top of the page at desktop width.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

TARGET = Path(__file__).resolve().parents[1] / "docs" / "report.png"


def main(page: Path) -> None:
    """Write `docs/report.png`."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 960}, offline=True)
        opened = context.new_page()
        opened.goto(page.resolve().as_uri())
        opened.wait_for_selector("html[data-charts=done]", state="attached")
        opened.screenshot(path=str(TARGET))
        browser.close()
    print(f"{TARGET}: {TARGET.stat().st_size / 1000:,.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
