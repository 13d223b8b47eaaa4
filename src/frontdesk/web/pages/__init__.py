"""What all pages of ours share: templates, their pieces, and the files that a browser loads."""
