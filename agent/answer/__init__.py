"""From a model's draft and the turn's results to what the customer reads: promise P6.

`draft` reads what the model wrote, `cards` decides which result is spoken of, `render` fills in the
values, `words` checks the free words around them, `compose` puts the answer together.
"""
