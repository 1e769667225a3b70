"""The figures of the book, each a `Figure` made by a function that takes nothing: `figures.decode_time()`."""

from .block import block_flow
from .blocks import context_blocks
from .card import card_memory
from .context import context_budget
from .decode import decode_time
from .drafts import draft_steps
from .host import host_path
from .linear import two_cuts
from .link import link_protocols
from .measured import decode_measured
from .modules import module_bytes
from .passes import one_pass
from .prefill import message_time, prompt_time
from .primer import allreduce_steps
from .serving import alarm, speculation
from .takes import engine_takes
from .tornado import rate_tornado, room_tornado
from .unequal import unequal_speeds
from .unequal_lanes import unequal_lanes
from .unequal_plan import unequal_map, unequal_memory
from .waterfall import why_lower
from .which import which_way

ALL = (decode_time, context_budget, two_cuts, block_flow, card_memory, message_time, prompt_time, alarm, speculation,
       unequal_speeds, unequal_memory, unequal_map, context_blocks, module_bytes, link_protocols, host_path,
       decode_measured, allreduce_steps, unequal_lanes, draft_steps, engine_takes, one_pass, why_lower,
       which_way, rate_tornado, room_tornado)
CHAPTERS = {"decode-time": "decode", "context-budget": "context", "two-cuts": "linear", "block-flow": "block",
            "card-memory": "card", "message-time": "prefill", "prompt-time": "prefill", "alarm": "serving",
            "speculation": "serving", "unequal-speeds": "unequal", "unequal-memory": "unequal",
            "unequal-map": "unequal", "context-blocks": "bytes", "module-bytes": "bytes", "link-protocols": "link",
            "host-path": "link", "decode-measured": "measured", "allreduce-steps": "primer", "one-pass": "prefill",
            "unequal-lanes": "unequal", "draft-steps": "serving", "engine-takes": "card",
            "why-lower": "measured", "which-way": "which", "rate-tornado": "trust", "room-tornado": "trust"}
"""Where each figure stands: its name -> the stem of its chapter."""
