"""Markdown, as agents write it: one parsed tree, from which each dialect of the chats is made.

| module | gives |
|---|---|
| `elements` | the tree |
| `plaintext` | text without marks |
| `chat_html` | HTML of the few tags that a chat takes, lines kept as lines |
| `page_html` | HTML with all that a text has: headings, lists, tables |
| `mrkdwn` | marks with single characters, where `&`, `<` and `>` are escaped |
| `chat_markdown` | Markdown with the marks that a chat knows, everything else escaped |
| `splitting` | the pieces of a text that is too long for one message |

Each takes any text and gives markup that its dialect accepts. Only addresses of the web and of mail become
links; HTML in a text is text.
"""
