"""PCL: the authors' six parts and gradients, its ten texts, and student and peer against passes
made by hand.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from harness import batch_of, double, rows_of, same
from models import built, sentences

from bench.methods.pcl import PCL, deleted, peer_losses, repeated, ten_texts


def test_the_six_parts_and_their_gradients_are_those_of_the_authors_code(reference_c):
    known = reference_c["pcl"]
    u, q = (double(known[key]).requires_grad_() for key in ("student_views", "peer_views"))
    parts = peer_losses(u, q, temperature=known["tau"])
    for key, value in known["parts"].items():
        same(parts[key], value)
    total = torch.stack(list(parts.values())).sum()
    total.backward()
    same(total, known["total"])
    same(u.grad, known["grad_student"])
    same(q.grad, known["grad_peer"])


def test_the_ten_texts_are_those_of_the_reference(reference_c):
    known = reference_c["pcl_augmentations"]
    inner = known["inner"]
    places, gone = Counter(), Counter()
    for seed in range(400):
        texts = ten_texts(inner, 0.2, 30, np.random.default_rng(seed))
        assert len(texts) == len(known["order_of_views"]) and texts[0] == texts[1] == inner
        for shuffled, turned, shorter, longer in (texts[2:6], texts[6:]):
            assert sorted(shuffled) == inner and [101, *turned, 102] == known["reverse"]
            (missing,) = set(inner) - set(shorter)
            assert shorter == [word for word in inner if word != missing]
            (double,) = [word for word, times in Counter(longer).items() if times == 2]
            assert len(longer) == len(inner) + 1
            gone[missing] += 1
            places[longer.index(double)] += 1
        assert texts[2:6] != texts[6:]
    assert set(gone) == set(inner) and min(gone.values()) > 90 and len(places) == len(inner)


def test_of_equal_words_the_first_goes_and_nothing_is_longer_than_it_may_be():
    rng = np.random.default_rng(0)
    assert {tuple(deleted([5, 6, 5], 1, rng)) for _ in range(50)} == {(6, 5), (5, 5)}
    assert ten_texts([], 0.2, 30, rng) == [[]] * 10
    assert repeated([1, 2, 3], 0, rng) == [1, 2, 3]
    longest = max(len(text) for text in ten_texts(range(28), 0.2, 30, rng))
    assert longest == 30


@pytest.mark.parametrize("faithful", [False, True])
def test_both_networks_read_all_ten_texts(backbone, tmp_path, faithful):
    values = {"setting": "unsupervised", "dropout": 0.0, "faithful": faithful}
    method = built(PCL, backbone, tmp_path, **values).double()
    with torch.no_grad():
        for p in method.peer.parameters():
            p.add_(0.05 * torch.sin(torch.arange(p.numel(), dtype=p.dtype)).reshape(p.shape))
        batch = batch_of(method, sentences(4, seed=6, longest=14))
        found = method.views(batch)
        width = max(column["input_ids"].shape[1] for column in batch.columns)
        for k, column in enumerate(batch.columns):
            for i, row in enumerate(rows_of(column)):
                states = method.encoder(input_ids=torch.tensor([row])).last_hidden_state
                z = torch.tanh(method.head.dense(states[0, 0]))
                torch.testing.assert_close(found[0][i, k], z, rtol=0, atol=1e-9)
                padding = [method.pad_id] * (width - len(row)) if faithful else []
                state = method.peer(input_ids=torch.tensor([row + padding])).last_hidden_state[0, 0]
                if faithful:
                    state = torch.tanh(method.peer_pooler.dense(state))
                z = torch.tanh(method.head.dense(state))
                torch.testing.assert_close(found[1][i, k], z, rtol=0, atol=1e-9)
