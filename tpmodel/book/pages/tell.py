"""What the notebooks call beside formulas and figures."""

from ...formula.units import fixed


def tell(**numbers):
    """Print each `name=(value, decimals)`, or plain text, and glue what was printed, so that a chapter can show it."""
    from myst_nb import glue
    shown = {name: number if isinstance(number, str) else fixed(*number) for name, number in numbers.items()}
    print("\n".join(f"{name} = {text}" for name, text in shown.items()))
    for name, text in shown.items():
        glue(name, text, display=False)
