"""From a model's draft and the turn's results to what the customer reads: promise P6.

`draft` reads what the model wrote, `cards` decides which result is spoken of, `render` fills in the
values, `vocabulary` checks the words between these and `words` the free ones around the cards,
`compose` puts the answer together.
"""
