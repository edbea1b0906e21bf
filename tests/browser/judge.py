"""What axe says against a page, and where the keyboard leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SEVERE = ("serious", "critical")
CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}
"""What may be right in one theme and wrong in the other."""
LAYOUT = {"rules": {"color-contrast": {"enabled": False}}, "resultTypes": ["violations"]}
"""What may be right at one width and wrong at another."""


def severe(axe: Any, page: Any, options: dict[str, Any] | None = None) -> list[str]:
    """Serious and critical faults of a page, each with its places."""
    asked = {"resultTypes": ["violations"]} if options is None else options
    found = axe.run(page, options=asked).response["violations"]
    return [
        f"axe: {one['id']} ({one['impact']}): {one['help']}: "
        f"{[node['target'] for node in one['nodes']][:5]}"
        for one in found
        if one["impact"] in SEVERE
    ]


@dataclass(frozen=True)
class Stop:
    """Where the keyboard stands.

    Parameters
    ----------
    what
        Tag, class and words of the element.
    shown
        Whether one sees that it is there: an outline on something visible in the window.
    key
        Number of the element in the page.
    """

    what: str
    shown: bool
    key: int


STAND = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  const inside = box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight;
  const outlined = parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== "none";
  const visible = one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  return {
    what: [one.tagName.toLowerCase(), one.id, one.textContent.trim().slice(0, 30)].join(" "),
    shown: outlined && inside && visible && box.width > 0,
    key: [...document.querySelectorAll("*")].indexOf(one),
  };
}"""
TO_REACH = """() => {
  const all = [...document.querySelectorAll("*")];
  const wanted = "a[href], button, summary, input, select, [tabindex='0']";
  return all.flatMap((one, i) => one.matches(wanted) && one.checkVisibility() && !one.disabled
    && one.tabIndex >= 0
    ? [[i, one.tagName.toLowerCase() + " " + one.textContent.trim().slice(0, 30)]] : []);
}"""


def stops(page: Any, most: int = 600) -> list[Stop]:
    """Every place that the key Tab leads to, in its order, until it leaves the page."""
    found: list[Stop] = []
    page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    for _ in range(most):
        page.keyboard.press("Tab")
        at = page.evaluate(STAND)
        for _ in range(10):  # the page scrolls there, and half a second is soon enough
            if at is None or at["shown"]:
                break
            page.wait_for_timeout(50)
            at = page.evaluate(STAND)
        if at is None or (found and at["key"] == found[0].key):
            return found
        found.append(Stop(**at))
    raise AssertionError(f"Tab goes on after {most} places")


def unreached(page: Any, found: list[Stop]) -> list[str]:
    """What can be operated, and Tab does not lead to."""
    keys = {stop.key for stop in found}
    return [what for key, what in page.evaluate(TO_REACH) if key not in keys]
