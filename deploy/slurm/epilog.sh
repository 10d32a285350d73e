#!/bin/sh
# Slurm Epilog: give the job's cards back, and measure them for a few seconds before the next job gets them.
# A card that is degraded, faulty or lost drains the node, with the reason; one that cannot be judged does not.
notes=${HEATSOAK_JOBS_DIR:-/run/heatsoak-jobs}
rm -f "$notes/$SLURM_JOB_ID"
[ -n "$SLURM_JOB_GPUS" ] || exit 0
set --
for gpu in $(echo "$SLURM_JOB_GPUS" | tr ',' ' '); do
  set -- "$@" --gpu "$gpu"
done
said=$(heatsoak probe --quick "$@" 2>&1)
[ $? -eq 10 ] || exit 0
scontrol update "NodeName=${SLURMD_NODENAME:-$(hostname -s)}" State=DRAIN \
  "Reason=heatsoak: $(echo "$said" | tr '\n' ' ' | cut -c1-200)"
exit 0
