"""RankCSE: Unsupervised Sentence Representations Learning via Learning to Rank (Liu et al., ACL
2023, arXiv 2305.16726).

SimCSE's two dropout views, S[i, j] = cos(z1_i, z2_j), and the cosines T of frozen teachers, which
rank the sentences of the batch:

    L = CE(S / tau) + beta mean_i JS(P_i, Q_i) + gamma Rank(S, T)
    P_i = softmax_j S[i, j] / tau, Q_i = softmax_j S[j, i] / tau

    ListNet   - mean_i sum_j softmax(T_i / tau3)_j log softmax(S_i / tau2)_j
              without the sentence itself
    ListMLE   mean_i sum_k [ log sum_{l >= k} exp(S_i,pi(l) / tau2) - S_i,pi(k) / tau2 ]
              pi: from T's highest to its lowest

T is weight_1 times the cosines of the first teacher plus (1 - weight_1) times the second's. CLS is
scored without the head.

The authors published no code. The equations are as recalled from the paper; the details are those
of a community repository by others (variant ``community`` for its own choices). Its
"Jensen-Shannon" term has no middle distribution left, so that it flattens the lists instead of
making them agree.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bench.method import (
    Backbone,
    Batch,
    BenchError,
    Loss,
    Recipe,
    Value,
    check_choice,
    check_positive,
    join,
)
from bench.methods.bounds import check_at_least, check_share
from bench.methods.losses import cosine_matrix
from bench.methods.pooling import Head, ScoredFirstToken
from bench.methods.teachers import Teacher, teacher_cosines

COMMUNITY = "RankCSE (community) run_rankcse.sh"
NO_MIDDLE = 1e-7
"""The logarithm of the middle distribution after the community code's clamp."""


class RankCSE(ScoredFirstToken):
    """RankCSE: SimCSE that also ranks the sentences of a batch as frozen, trained encoders do.

    Take it to distil one or two trained encoders of the same vocabulary.

    Example:
        bench run --method rankcse --set teacher_1=princeton-nlp/unsup-simcse-bert-base-uncased

    Relations: DCLR uses a teacher to drop negatives only.
    """

    name = "rankcse"
    settings = ("unsupervised",)
    by_dropout = ("unsupervised",)
    summary = "SimCSE that ranks a batch as trained encoders do"
    paper = "Liu, Liu, Wang, Wang, Wu, Li, Guo: RankCSE, ACL 2023, arXiv 2305.16726"
    trains = "the whole encoder, and while training the head; the teachers are frozen"
    training_only = ("head",)
    places = ("teacher_1", "teacher_2")
    variants = {
        "listnet": {"ranking": "listnet", "gamma": Value(0.1, "RankCSE (community) train.py:127")},
        "community": {"consistency": "community", "teacher_temperature": 0.05, "listmle_eps": 1e-7},
    }
    defaults = {
        "teacher_1": Value(
            None,
            "to be given: a run, a folder or a hub name of a trained encoder",
            COMMUNITY + ":28: voidism/diffcse-bert-base-uncased-sts",
        ),
        "teacher_2": Value(
            None,
            "none: teacher_1 alone",
            COMMUNITY + ":29: princeton-nlp/unsup-simcse-bert-large-uncased, of 2/3",
        ),
        "weight_1": Value(
            1 / 3,
            "RankCSE (community) train.py:115",
            "of teacher_1 where there are two; " + COMMUNITY + ":31: 0.33",
        ),
        "ranking": Value("listmle", COMMUNITY, "listnet or listmle"),
        "temperature": Value(0.05, COMMUNITY + ":24", "of the contrast and the consistency"),
        "list_temperature": Value(0.05, COMMUNITY + ":34", "tau2, of the student's list"),
        "teacher_temperature": Value(
            0.025,
            "half of list_temperature, recalled of the paper",
            "tau3, read by listnet; community: 0.05",
        ),
        "beta": Value(
            1.0,
            COMMUNITY + ":32",
            "weight of the consistency; the community code never multiplies by it",
        ),
        "gamma": Value(1.0, COMMUNITY + ":33", "weight of the ranking; listnet: 0.1"),
        "consistency": Value(
            "js", "RankCSE paper: Jensen-Shannon", "community: minus the mean entropy of both lists"
        ),
        "listmle_eps": Value(
            0.0,
            "RankCSE paper: none",
            "community: 1e-7 of the best sentence, so that cosines more than 0.81 below it do "
            "not count",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "ranking", ("listmle", "listnet"))
        check_choice(recipe, "consistency", ("js", "community"))
        for key in ("temperature", "list_temperature", "teacher_temperature"):
            check_positive(recipe, key)
        check_share(recipe, "weight_1", below_one=False)
        check_at_least(recipe, 0, "listmle_eps")
        if recipe.teacher_1 is None:
            raise BenchError(
                "rankcse needs a trained encoder",
                "--set teacher_1=RUNS/simcse-..., a folder or a hub name",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.head = Head(backbone.hidden_size)
        names = [name for name in (recipe.teacher_1, recipe.teacher_2) if name is not None]
        self.weights = (recipe.weight_1, 1 - recipe.weight_1) if len(names) == 2 else (1.0,)
        self.teachers = nn.ModuleList(
            Teacher(name, backbone, offline=self.context.offline) for name in names
        )

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return z1 and z2, (n, H) each, and the vector of each teacher, (n, its H)."""
        # the same features twice in one encoder pass, each row under its own dropout masks
        z1, z2 = self.head(self.embed(join(batch.columns * 2, self.pad_id))).chunk(2)
        return z1, z2, *(teacher(batch.columns[0]) for teacher in self.teachers)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        z1, z2, *taught = views
        recipe = self.recipe
        cosines_BB = cosine_matrix(z1, z2)
        teacher_BB = teacher_cosines(taught, self.weights)
        own = torch.arange(len(z1), device=z1.device)
        contrast = cross_entropy(cosines_BB / recipe.temperature, own)
        agree = jensen_shannon if recipe.consistency == "js" else minus_entropy
        consistency = agree(cosines_BB / recipe.temperature)
        if recipe.ranking == "listnet":
            ranking = list_net(
                others(cosines_BB) / recipe.list_temperature,
                others(teacher_BB) / recipe.teacher_temperature,
            )
        else:
            ranking = list_mle(cosines_BB / recipe.list_temperature, teacher_BB, recipe.listmle_eps)
        total = contrast + recipe.beta * consistency + recipe.gamma * ranking
        return Loss(total, {"info_nce": contrast, "consistency": consistency, "ranking": ranking})


def jensen_shannon(logits_BB: Tensor) -> Tensor:
    """Return the divergence between the softmax of each row and of the same column: mean over the
    rows, in nats.
    """
    log_p = logits_BB.log_softmax(1)
    log_q = logits_BB.T.log_softmax(1)
    # before the middle: gradients are summed in the order of these lines, which decides the last
    # digit
    p = log_p.exp()
    q = log_q.exp()
    log_middle = torch.logaddexp(log_p, log_q) - torch.log(torch.tensor(2.0, dtype=log_p.dtype))
    from_p = (p * (log_p - log_middle)).sum(1)
    from_q = (q * (log_q - log_middle)).sum(1)
    return (from_p + from_q).mean() / 2


def minus_entropy(logits_BB: Tensor) -> Tensor:
    """Return minus the mean entropy of rows and columns.

    It is the community code's term in the place of :func:`jensen_shannon`.
    """
    logs = torch.stack([logits_BB.log_softmax(1), logits_BB.T.log_softmax(1)])
    return (logs.exp() * (logs - NO_MIDDLE)).sum(-1).mean()


def others(lists_BB: Tensor) -> Tensor:
    """Return each row without its own column, (B, B - 1)."""
    B = len(lists_BB)
    return lists_BB.flatten()[1:].view(B - 1, B + 1)[:, :-1].reshape(B, B - 1)


def list_net(logits_BL: Tensor, teacher_BL: Tensor) -> Tensor:
    """Return the cross-entropy of two softmaxes over one list: mean over the lists, in nats."""
    return -(teacher_BL.softmax(1) * logits_BL.log_softmax(1)).sum(1).mean()


def list_mle(logits_BL: Tensor, teacher_BL: Tensor, eps: float = 0.0) -> Tensor:
    """Return the surprise of the teacher's order if items are drawn one after the other.

    The mean is over the lists, in nats. Items that the teacher finds equal keep their order.
    ``eps``: relative to the list's best item, added to every sum.
    """
    order = teacher_BL.argsort(dim=1, descending=True, stable=True)
    logits = logits_BL.gather(1, order)
    logits = logits - logits.max(dim=1, keepdim=True).values
    left_BL = logits.flip(1).logcumsumexp(1).flip(1)  # log of the sum of items not drawn yet
    if eps:
        log_eps = torch.tensor(eps, dtype=logits.dtype, device=logits.device).log()
        left_BL = torch.logaddexp(left_BL, log_eps)
    return (left_BL - logits).sum(1).mean()
