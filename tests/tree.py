"""Copies this tree for tests that change or build one."""
import fnmatch
import os
import shutil

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def copy_tree(to):
    """Copies the tree to a new folder, without build folders, the virtual environment and the history."""
    def left_out(folder, names):
        patterns = ("build*", ".venv", ".git") if folder == ROOT else ("__pycache__",)
        return {name for name in names if any(fnmatch.fnmatch(name, p) for p in patterns)}
    shutil.copytree(ROOT, to, symlinks=True, ignore=left_out)
