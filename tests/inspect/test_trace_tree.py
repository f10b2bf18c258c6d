"""A conversation as a tree: each message below the one that it came of, and nothing left out."""

from __future__ import annotations

from collections.abc import Iterable

from bullpen.core.inspect.conversations import get_conversation_id
from bullpen.core.inspect.trace import Node, Tree, build_tree, trace
from bullpen.core.message import Answer
from bullpen.core.outbox.write import send_to_person
from bullpen.core.store.base import Store
from tests.answers.talk import answer, write
from tests.conformance.verbs import failed, hire, send, take, to_archive


def grown(store: Store, conversation: str) -> Tree:
    """The tree of a conversation."""
    with store.read() as tx:
        return build_tree(trace(tx, conversation))


def found(store: Store, id_: str) -> str:
    """The conversation that this id is of."""
    with store.read() as tx:
        return get_conversation_id(tx, id_)


def shape(nodes: Iterable[Node]) -> list[object]:
    """What the messages say, each with what is below it."""
    return [(each.step.message.message, shape(each.children)) for each in nodes]


def test_each_message_is_below_the_one_that_it_came_of(store: Store) -> None:
    for agent in ("coder", "reviewer", "tester"):
        hire(store, agent)
    root = write(store, "@coder hello")
    answer(store, "coder", "[@reviewer: one] [@tester: two]")
    answer(store, "reviewer", "[@tester: three]")
    failed(store, take(store, "tester").token)
    tree = grown(store, root)
    assert shape(tree.nodes) == [("hello", [("one", [("three", [])]), ("two", [])])]
    (top,) = tree.nodes
    assert [each.outcome for each in top.attempts] == ["completed"]
    assert [each.agent for each in top.responses] == ["coder"]
    two = top.children[1]
    assert [each.outcome for each in two.attempts] == ["failed"]
    assert tree.attempts == ()
    assert tree.responses == ()


def test_what_came_of_a_message_that_is_archived_is_still_below_it(store: Store) -> None:
    hire(store)
    hire(store, "reviewer")
    root = write(store, "@coder hello")
    answer(store, "coder", "[@reviewer: one]")
    to_archive(store, root)
    assert shape(grown(store, root).nodes) == [("hello", [("one", [])])]


def test_a_chain_may_be_as_long_as_it_likes(store: Store) -> None:
    hire(store)
    root = before = send(store, "0")
    for number in range(1, 400):
        before = send(
            *(store, f"{number}"), conversation_id=root, parent_id=before, from_agent="coder"
        )
    (node,) = grown(store, root).nodes
    for number in range(1, 400):
        (node,) = node.children
        assert node.step.message.message == f"{number}"


def test_what_answers_none_of_the_messages_is_not_left_out(store: Store) -> None:
    with store.write() as tx:
        name = send_to_person(
            tx, Answer(message="hear this"), channel="slack", sender="Ada", agent="coder"
        )
    tree = grown(store, name)
    assert (tree.nodes, [each.message for each in tree.responses]) == ((), ["hear this"])


def test_it_is_found_by_any_message_in_it(store: Store) -> None:
    hire(store)
    hire(store, "reviewer")
    root = write(store, "@coder hello")
    answer(store, "coder", "[@reviewer: one]")
    (top,) = grown(store, root).nodes
    child = top.children[0].step.message.message_id
    assert found(store, child) == found(store, root) == root
    answer(store, "reviewer", "fine")
    to_archive(store, child)
    assert found(store, child) == root
    assert found(store, "nothing") == "nothing"
