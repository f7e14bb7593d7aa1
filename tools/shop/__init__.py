"""The shop: what it holds (`models`), how it is asked (`protocol`), where it lives (`sql`)."""
