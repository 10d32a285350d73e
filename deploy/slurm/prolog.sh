#!/bin/sh
# Slurm Prolog: note down the cards that a job is given, so that heatsoak leaves them alone even while they idle.
# Needs allocation.slurm = true in heatsoak.toml. Never fails: a job must not wait for a monitor.
[ -n "$SLURM_JOB_ID" ] && [ -n "$SLURM_JOB_GPUS" ] || exit 0
notes=${HEATSOAK_JOBS_DIR:-/run/heatsoak-jobs}
umask 022
mkdir -p "$notes" && printf '%s\n' "$SLURM_JOB_GPUS" >"$notes/.$SLURM_JOB_ID.new" &&
  mv "$notes/.$SLURM_JOB_ID.new" "$notes/$SLURM_JOB_ID"
exit 0
