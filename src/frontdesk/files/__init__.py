"""The bytes of files: where they lie, and who listens to recordings."""

from frontdesk.files.shelf import FileShelf, survey
from frontdesk.files.transcribing import CommandTranscriber

__all__ = ["CommandTranscriber", "FileShelf", "survey"]
