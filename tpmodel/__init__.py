"""How one language model is split over several GPUs, and what that costs.

Floors, from the ground up; a module imports only from floors below its own:

    units  vocabulary            names, units, symbols
    tree  ops  printers          recording a formula; its LaTeX and JavaScript
    formula                      @formula and View
    formulas/                    plain arithmetic on plain numbers
    ranks/                       simulated ranks that run the split layers
    catalog/                     GPUs, links, models, each number with its source
    evidence/                    the articles' claims, recomputed
    live/                        a figure declared once: matplotlib, page, kernel
    figures/                     the book's figures
    cli                          the command line

Importing `tpmodel` loads none of NumPy, SymPy or matplotlib.
"""

__version__ = "0.1.0"
