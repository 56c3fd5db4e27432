"""SimCSE at half the temperature: a stranger's method."""

from bench.methods.simcse import SimCSE


class Half(SimCSE):
    name = "half"
    settings = ("unsupervised",)
    variants = {}
    summary = "SimCSE at half the temperature"

    def loss(self, views, batch):
        found = super().loss(views, batch)
        found.total = found.total * 2
        return found
