"""The command line, and what runs on the reader's own machine."""
