"""The fields of a Hugging Face config.json by our names, and their safe reading."""

import json
import re
from collections import ChainMap

from ... import inputs

LARGEST_FILE = 32_000_000
MOST = {"layers": 1000, "any": 10**9}

# our name -> names that configs use; what all call alike goes by its own name
FIELDS = {name: tuple(keys.split()) for name, keys in {
    "layers": "num_hidden_layers n_layer n_layers num_layers",
    "hidden": "hidden_size n_embd d_model", "heads": "num_attention_heads n_head n_heads",
    "kv_heads": "num_key_value_heads num_kv_heads num_attention_groups multi_query_group_num",
    "head_elements": "head_dim attention_head_dim kv_channels", "vocabulary": "vocab_size padded_vocab_size",
    "native_tokens": "max_position_embeddings n_positions max_seq_len seq_length model_max_length",
    "intermediate": "intermediate_size ffn_hidden_size n_inner",
    "window_tokens": "sliding_window sliding_window_size", "chunk_tokens": "attention_chunk_size",
    "experts": "n_routed_experts num_local_experts num_experts moe_num_experts",
    "experts_read":
        "num_experts_per_tok experts_per_token num_experts_per_token top_k_experts moe_topk moe_top_k moe_k",
    "expert_intermediate": "moe_intermediate_size expert_intermediate_size moe_ffn_hidden_size",
    "shared_experts": "n_shared_experts num_shared_experts num_shared_expert moe_num_shared_experts",
    "shared_intermediate": "shared_expert_intermediate_size moe_shared_expert_intermediate_size "
                           "shared_intermediate_size share_expert_dim",
    "expert_hidden": "moe_latent_size routed_expert_hidden_size",
    "mamba_heads": "mamba_num_heads mamba_n_heads", "mamba_head_elements": "mamba_head_dim mamba_d_head",
    "mamba_groups": "mamba_n_groups n_groups", "mamba_state": "ssm_state_size mamba_d_state",
    "mamba_expand": "mamba_expand expand",
    "convolution": "linear_conv_kernel_dim conv_kernel mamba_d_conv",
    "mtp": "mtp_num_hidden_layers num_nextn_predict_layers",
}.items()}
# what a family leaves out of its file because it is the default of its own code
TIED, EVERY_FOURTH = {"tie_word_embeddings": True}, {"full_attention_interval": 4}
DEFAULTS = {
    "gemma": TIED, "gemma2": {**TIED, "sliding_window_pattern": 2}, "gemma4_text": TIED, "gpt2": TIED,
    "gemma3_text": {**TIED, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
                    "sliding_window_pattern": 6, "sliding_window": 4096, "max_position_embeddings": 131072},
    "cohere": TIED, "cohere2": {**TIED, "sliding_window_pattern": 4}, "gpt_oss": {"sliding_window_pattern": 2},
    "qwen3_next": {**EVERY_FOURTH, "decoder_sparse_step": 1}, "qwen3_5_text": EVERY_FOURTH,
    "qwen3_5_moe_text": EVERY_FOURTH, "llama4_text": {"no_rope_layer_interval": 4, "attention_chunk_size": 8192},
    "jamba": {"attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1},
}
# what says something of memory: refused where it is not read
HINT = re.compile(
    r"mamba|ssm_|^linear_(num|key|value|attn)|lora_rank$|latent_size|sliding|attention_chunk|layer_types|block_types?$|"
    r"block_configs|hybrid|layer_pattern|window_pattern|sparse_attention|sparse_attn|compress_r|recurr|kv_shared|"
    r"attn_type|attention_types|^multi_query$|type_vocab|encoder_decoder|per_layer_input$|cross_attention_layers|"
    r"hc_mult|num_experts$|^use_indexer|audio_config|indexer_types|^attn_layer|sandwich|num_local_layers|moe_layer|"
    r"no_rope_layers|short_conv|conv_L_cache|altup|swa_|global_attn|attention_other")
HARMLESS = re.compile(
    r"mtp|hidden_act$|_bias$|dt_(min|max)|chunk_size$|cache_dtype|_dtype$|rms_norm|rope_theta|proj_|use_mamba_kernels|"
    r"use_conv|use_swa|inner_layernorms|shared_expert_overlap|sink_bias|sliding_window_(size|pattern)$|mamba_d_ssm|"
    r"vocab_size_per_layer_input|no_rope_layer")


def refuse(name, value, accepted):
    """The one-line ValueError of a bad field."""
    return inputs.refused(name, value, f"it must be {accepted}")


class Fields:
    """A config's fields by our names; remembers what was read, so that what was not understood can be refused."""

    def __init__(self, text, top, family):
        self.raw, self.family, self.seen = ChainMap(text, top, DEFAULTS.get(family, {})), family, set()

    def get(self, key, default=None):
        """The raw value of a config key."""
        self.seen.add(key)
        value = self.raw.get(key)
        return default if value is None else value

    def integer(self, key, default=None, least=0, most=MOST["any"]):
        """A raw key as a whole number."""
        value = self.get(key)
        if value is None:
            return default
        if type(value) is not int or not least <= value <= most:
            raise refuse(key, value, f"a whole number from {least} to {most}")
        return value

    def flag(self, key, default=False):
        """A raw key as true or false."""
        value = self.get(key, default)
        if type(value) is not bool:
            raise refuse(key, value, "true or false")
        return value

    def names(self, key):
        """A list of names as a tuple; empty where absent."""
        value = self.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise refuse(key, value, "a list of names")
        return tuple(value)

    def numbers(self, key):
        """A list of layer numbers as a set; None where absent."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > MOST["layers"] or not all(type(v) is int for v in value):
            raise refuse(key, value, "a list of layer numbers")
        return frozenset(value)

    def __call__(self, name, default=None, least=1):
        """The field `name`; without a default it must be there."""
        keys = FIELDS.get(name, (name,))
        for key in keys:
            if self.get(key) is not None:
                self.seen.update(keys)
                return self.integer(key, least=least, most=MOST.get(name, MOST["any"]))
        if default is None:
            model = self.family or "no model_type"
            raise ValueError(f"config.json has no {keys[0]}, which this model ({model}) needs")
        return default

    def listed(self, key, length):
        """A list (or a string of letters) with one entry a layer; None where absent."""
        value = self.get(key)
        if value is not None and (not isinstance(value, (list, str)) or len(value) != length
                                  or not all(isinstance(v, (str, int)) for v in value)):
            raise refuse(key, value, f"a list with one entry for each layer, {length} in all")
        return value


def load_json(path):
    """A JSON object from a file; truncated, huge, deep or other input is one ValueError."""
    text = inputs.read_text(path, "model", LARGEST_FILE, "a config.json or a folder with one")
    try:
        found = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path.name} is not JSON: {str(error)[:80] or 'nested too deeply'}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} holds {type(found).__name__}, not an object")
    return found
