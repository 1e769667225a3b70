"""What the notebooks call beside formulas and figures."""

from ...formula.units import fixed


def tell(**numbers):
    """Print each `name=(value, decimals)`, or plain text, and glue what was printed, so that a chapter can show it."""
    from myst_nb import glue
    shown = {name: number if isinstance(number, str) else fixed(*number) for name, number in numbers.items()}
    print("".join(f"{name} = {text}\n" for name, text in shown.items()), end="")  # one write: one stored output
    for name, text in shown.items():
        glue(name, text, display=False)
