"""A figure declared once: drawn by matplotlib, live in the built page, live in a kernel."""
