"""What the notebooks call beside formulas and figures."""

from ..units import fixed


def tell(**numbers):
    """Print each `name=(value, decimals)` and glue its text, so that a chapter can show it.

    A plain text is passed as it is.
    """
    from myst_nb import glue

    for name, number in numbers.items():
        shown = number if isinstance(number, str) else fixed(*number)
        print(f"{name} = {shown}")
        glue(name, shown, display=False)
