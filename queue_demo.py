"""queue_demo.py: enqueue a message, claim it, and finish it"""

import os
from contextlib import suppress

from bullpen import (
    Agent,
    Answer,
    Conflict,
    NewMessage,
    Outcome,
    Settings,
    add_agent,
    claim,
    enqueue,
    finish,
    open_store,
)

store = open_store(Settings.load(os.environ))

with store.write() as tx, suppress(Conflict):  # the agent exists from the second run on
    add_agent(tx, Agent(id="python-demo", provider="http"))

with store.write() as tx:  # returns after the message is on disk
    sent = enqueue(tx, NewMessage(agent="python-demo", message="fix the login", sender="ada"))

with store.write(durable=False) as tx:  # a claim lost in a power cut is made again
    work = claim(tx, worker="queue-demo", agent="python-demo")

with store.write() as tx:  # answer, history, attempt and events: one transaction
    finish(tx, work, Outcome(answers=(Answer(message="done"),)))

print(sent.message_id, "is completed")
store.close()
