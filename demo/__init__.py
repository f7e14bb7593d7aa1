"""`python -m demo`: the product at work, without a key, an account or a network."""
