"""A language model of six layers with random weights, made on the spot: nothing to download."""

WORDS = 500


def make(folder):
    """Save a Llama with a word-level tokenizer, in the files that vLLM reads."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = {"<unk>": 0, "<s>": 1, "</s>": 2, "passage:": 3} | {f"w{i}": i + 4 for i in range(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>",
                            eos_token="</s>").save_pretrained(folder)
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(
        vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=6, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=1024, bos_token_id=1, eos_token_id=2,
        tie_word_embeddings=False, dtype="float32")).save_pretrained(folder)


def documents(count=16):
    """Lines of 5 to 200 words."""
    import random

    chance = random.Random(0)
    return [" ".join(f"w{chance.randrange(WORDS)}" for _ in range(chance.randint(5, 200))) for _ in range(count)]
