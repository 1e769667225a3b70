"""What the pages of the book print beside figures: tables, told numbers, and the extension that builds it."""
