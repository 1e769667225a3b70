"""How one language model is split over several GPUs, and what that costs.

The house. A room imports from rooms on its right and in wings below, never the other way:

    tools    : cli address embed measure                  the command line; what runs on the reader's own machine
    book     : pages figures yours carry live             tables, told numbers; a figure each question; the page of the
                                                          planner; what carries it to a page; what draws a figure
    planner  : evidence plan engine shapes                what others measured; ways to split; vLLM; any config.json
    science  : ranks formulas catalog formula inputs      the executed proof; arithmetic; sourced numbers

The science wing is what the book is about, and stands alone: its rooms are beside this file, the other wings are
folders. Importing `tpmodel` loads none of NumPy, SymPy or matplotlib.
"""

__version__ = "0.1.0"
