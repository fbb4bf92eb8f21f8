"""VisionEncoderDecoder of transformers: a ViT or DeiT that a GPT-2 or a TrOCR looks at, as a model of captions."""
