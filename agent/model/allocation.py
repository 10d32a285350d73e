"""Who was given a card: a pod by Kubernetes, a job by Slurm."""

import msgspec


class Allocation(msgspec.Struct, frozen=True):
    """One card and one who holds it; a card that is shared has several. What does not apply is empty."""

    uuid: str
    namespace: str = ""
    pod: str = ""
    container: str = ""
    job: str = ""
    """Slurm job id."""

    @property
    def holder(self) -> str:
        """Who that is, in words."""
        if self.pod:
            return f"pod {self.namespace}/{self.pod} (container {self.container})"
        return f"Slurm job {self.job}"
