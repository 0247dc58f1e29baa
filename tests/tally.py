"""Collects the counts of a test program for `./dev test`."""


def append(path, passed, failed, skipped):
    """Adds the line "passed failed skipped" to the file of --counts, if one was named."""
    if path:
        with open(path, "a", encoding="utf-8") as f:
            print(passed, failed, skipped, file=f)
