"""What must be said about every figure of a profile: parts are missing, times are simulated."""

from __future__ import annotations

from trnscope.report.text import plural
from trnscope.report.view import View
from trnscope.store.profile import Profile


def view_of(profile: Profile, *, width: int | None = None, limit: int | None = None) -> View:
    """A view with the marks that this profile's figures need."""
    return View(width, limit, incomplete_reason(profile), profile.simulated_by, profile.is_virtual)


def incomplete_reason(profile: Profile) -> str | None:
    """Why figures may be too low; absent for a profile that was read whole."""
    broken = [trace for trace in profile.traces if not trace.health.complete]
    if not broken:
        return None
    first = broken[0]
    reason = first.health.warnings[0].message if first.health.warnings else "parts are missing"
    text = f"{first.source.path}: {reason}"
    if len(broken) > 1:
        text += f" (and {plural(len(broken) - 1, 'more file')})"
    return f"{text}; figures hold only what could be read"
