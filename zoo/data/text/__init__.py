"""Text: captions to word ids, by the words of a split, CLIP's or BERT's tokenizer; prompts."""
