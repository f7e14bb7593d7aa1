"""The offline model: it stands where the vendor's model stands, behind the same HTTP client.

transport      the door: paths, authorization, JSON, streamed or not
responses      the Responses API: a request read into a conversation, a reply written as events
chat           the same for Chat Completions
checks         what Responses refuse, in the API's words; `chat_checks` for Chat Completions
               (`fields` holds what both check of a value, `errors` the form of a refusal)
store          what is kept for `previous_response_id`
reasoning      reasoning items: handed out encrypted, taken back in their place
schemas        strict JSON schemas: what is allowed in one, and an object that fits one
conversation   what any protocol's request comes down to: tools, turns, calls, results
planner        the next step of a conversation: calls, or the answer
reading        what a message asks: `tokens`, those that are `ids`, the `message`, its `clauses`,
               the `deeds` that it wants
writes         the calls of those deeds
thread         what the conversation has named before: orders, ordinals, the last question
lexicon        the words of a language, from `lexicon/*.toml`

It knows what the request holds and nothing else, as a vendor's model would.
"""

from offline_model.transport import OfflineTransport

__all__ = ["OfflineTransport"]
