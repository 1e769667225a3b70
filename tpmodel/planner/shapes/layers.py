"""What a model is made of: the shapes that decide the cache, before any split, and its modules' weights."""

from dataclasses import dataclass


@dataclass(frozen=True)
class State:
    """A recurrent layer. Of Mamba-2: heads, head size, groups, state size; of Mamba-1: inner size, 1, 0, state size."""

    family: str  # gdn, kda, mamba2, mamba1
    value_heads: int
    value_elements: int
    key_heads: int
    key_elements: int
    convolution: int
    element_bytes: float = 4.0


@dataclass(frozen=True)
class Layers:
    """One kind of layer: full attention, sliding window, chunk, MLA latent, recurrent state, or no cache at all.

    Head sizes of keys and values: of a latent layer those of its products; its cache holds latent and rope elements.
    """

    kind: str
    kv_heads: int = 0
    head_elements: int = 0
    value_head_elements: int = 0
    window_tokens: int = 0
    latent_elements: int = 0
    rope_elements: int = 0
    index_elements: int = 0
    state: State = None

    product_elements = property(
        lambda self: (self.head_elements + self.value_head_elements) / 2,
        doc="Head size that counts in the arithmetic of attention: queries meet keys, weights meet values.")


@dataclass(frozen=True)
class Module:
    """The weights of one kind in one format. `read` is the fraction that one decode step of one sequence reads.

    `group` rows of a matrix share one scale.
    """

    name: str
    parameters: int
    format: str
    bits: float
    read: float
    group: int = 1

    bytes = property(lambda self: self.parameters * self.bits / 8, doc="Size with scales.")


@dataclass(frozen=True)
class Tower:
    """A vision tower: what one patch takes while it runs, and patches of a token of the language model.

    `pictures` is true where the size of a picture decides how many tokens it is, `film` where a video may be longer.
    """

    hidden: int
    widest: int
    pixels: int
    patches: float
    pictures: bool
    film: bool


def spread(counts, total):
    """A layer order for given counts, [(Layers, count), ...]: the first kind evenly spread, then the others, then none.

    >>> [layer.kind for layer in spread([(Layers("full"), 2), (Layers("window"), 4)], 6)]
    ['window', 'window', 'full', 'window', 'window', 'full']
    """
    (first, count), *others = counts
    rest = iter([layer for layer, number in others for _ in range(number)])
    step, order = total // count if count else total + 1, []
    for i in range(total):
        layer = first if count and (i + 1) % step == 0 else next(rest, Layers("none"))
        count -= layer is first
        order.append(layer)
    return tuple(order)
