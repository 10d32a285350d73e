#!/usr/bin/env bash
# Install, upgrade, roll back or remove heatsoak as a systemd service. Each command may be run again.
set -euo pipefail
umask 022 # the service's user must read what root installs, whatever root's own umask is

usage() {
  cat <<'TEXT'
Usage: install.sh install [OPTION…]   install or upgrade, then (re)start the service
       install.sh rollback            go back to the agent that ran before the last upgrade
       install.sh uninstall [--purge] remove everything but the state in /var/lib/heatsoak; --purge: that too

Options of install:
  --python PATH        Python 3.10 to 3.13 for the agent (default: the newest in /usr/bin and /usr/local/bin)
  --wheels DIR         take all packages from DIR and ask no index: for hosts without a network
  --tensorflow WHICH   what the probes measure: gpu, cpu, none, or the whole path of a Python that has TensorFlow
                       (default: gpu where the driver is, else none). One that is there is never touched:
                       to get another, remove /opt/heatsoak/tensorflow first
  --no-start           install only
TEXT
}

readonly BASE=/opt/heatsoak STATE=/var/lib/heatsoak CONFIG=/etc/heatsoak COMMAND=/usr/local/bin/heatsoak
readonly UNITS=/etc/systemd/system TENSORFLOW=$BASE/tensorflow
readonly UNIT_FILES=(heatsoak.service heatsoak.socket heatsoak-devices.service)
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SOURCE=$(cd "$HERE/../.." && pwd)
readonly HERE SOURCE

say() { echo "heatsoak: $*"; }
fail() {
  echo "install.sh: $*" >&2
  exit 2
}

find_python() {
  local python candidates=("$1")
  [ -n "$1" ] || candidates=(/usr/bin/python3.1{3,2,1,0} /usr/local/bin/python3.1{3,2,1,0} /usr/bin/python3)
  for python in "${candidates[@]}"; do
    [ -x "$python" ] || continue
    "$python" -c 'import sys, venv, ensurepip; raise SystemExit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || continue
    case $(readlink -f "$python") in
      /home/* | /root/*) fail "$python lies in a home directory, which the service cannot see; name another --python" ;;
    esac
    echo "$python"
    return
  done
  fail "no Python 3.10 to 3.13 with venv found${1:+ at $1}; install one, or name it with --python (Debian: apt-get install python3-venv)"
}

# make_venv DIRECTORY PACKAGE…: a new environment, complete or not there at all.
make_venv() {
  local directory=$1 pip=(-m pip --disable-pip-version-check install --quiet)
  shift
  [ -z "$wheels" ] || pip+=(--no-index --find-links "$wheels")
  [ ! -e "$SOURCE/constraints.txt" ] || pip+=(--constraint "$SOURCE/constraints.txt")
  if "$python" -m venv "$directory" && (cd / && "$directory/bin/python" "${pip[@]}" "$@"); then
    chmod -R u=rwX,go=rX "$directory"
  else
    rm -rf "$directory"
    fail "$directory could not be made; what ran before still runs"
  fi
}

# What is wrong with the options is told before anything is changed.
check_options() {
  if [ -n "$wheels" ]; then
    [ -d "$wheels" ] || fail "--wheels $wheels is no directory"
    wheels=$(cd "$wheels" && pwd)
  fi
  case $tensorflow in
    "" | gpu | cpu | none) ;;
    /*) [ -f "$tensorflow" ] && [ -x "$tensorflow" ] || fail "--tensorflow $tensorflow is no program" ;;
    *) fail "--tensorflow is $tensorflow; it must be gpu, cpu, none or an absolute path" ;;
  esac
}

install_tensorflow() {
  if [ -z "$tensorflow" ]; then
    tensorflow=none
    [ ! -e /proc/driver/nvidia/version ] || tensorflow=gpu
  fi
  if [ -e "$TENSORFLOW/bin/python" ]; then
    say "TensorFlow stays as it is in $TENSORFLOW"
    return
  fi
  case $tensorflow in
    none) say "no TensorFlow installed: probes will say so; see --tensorflow" ;;
    gpu) say "installing TensorFlow with CUDA (about 5 GB)" && make_venv "$TENSORFLOW" 'tensorflow[and-cuda]' ;;
    cpu) say "installing TensorFlow for the CPU (about 1.5 GB)" && make_venv "$TENSORFLOW" tensorflow-cpu ;;
    /*)
      mkdir -p "$TENSORFLOW/bin"
      printf '#!/bin/sh\nexec %q "$@"\n' "$tensorflow" >"$TENSORFLOW/bin/python"
      chmod 755 "$TENSORFLOW/bin/python"
      ;;
  esac
}

make_user() {
  local group
  getent passwd heatsoak >/dev/null ||
    useradd --system --user-group --no-create-home --home-dir "$STATE" --shell /usr/sbin/nologin heatsoak
  for group in video render; do
    ! getent group $group >/dev/null || usermod -aG $group heatsoak
  done
}

# point NAME TARGET: move a link in one step, so that it never leads nowhere.
point() {
  ln -sfn "$2" "$BASE/.$1.new"
  mv -fT "$BASE/.$1.new" "$BASE/$1"
}

install_agent() {
  local release old
  release=$BASE/releases/$(date -u +%Y%m%dT%H%M%SZ)-$$
  mkdir -p "$BASE/releases"
  chmod 755 "$BASE" "$BASE/releases"
  if [ -n "$wheels" ]; then make_venv "$release" heatsoak; else make_venv "$release" "$SOURCE"; fi
  [ ! -e "$BASE/current" ] || point previous "$(readlink -f "$BASE/current")"
  point current "$release"
  for old in "$BASE"/releases/*; do
    [ "$old" = "$release" ] || [ "$old" = "$(readlink -f "$BASE/previous")" ] || rm -rf "$old"
  done
  install_command
}

# The command measures the same TensorFlow as the service does.
install_command() {
  cat >"$COMMAND.new" <<TEXT
#!/bin/sh
export HEATSOAK_PROBE_PYTHON="\${HEATSOAK_PROBE_PYTHON:-$TENSORFLOW/bin/python}"
exec $BASE/current/bin/heatsoak "\$@"
TEXT
  chmod 755 "$COMMAND.new"
  mv -fT "$COMMAND.new" "$COMMAND"
}

install_files() {
  install -d -m 755 "$CONFIG"
  [ -e "$CONFIG/heatsoak.toml" ] || "$BASE/current/bin/heatsoak" config defaults >"$CONFIG/heatsoak.toml"
  install -m 644 -t "$UNITS" "${UNIT_FILES[@]/#/$HERE/}"
  systemctl daemon-reload
}

start() {
  if ! systemctl restart heatsoak.service; then
    journalctl -u heatsoak -n 20 -o cat --no-pager >&2
    [ ! -e "$BASE/previous" ] || say "install.sh rollback goes back to the agent before" >&2
    fail "the service does not start; its last lines stand above"
  fi
  say "$("$COMMAND" --version) is running: $(systemctl show heatsoak.service -p StatusText --value)"
}

cmd_install() {
  local python="" wheels="" tensorflow="" start=yes
  while [ $# -gt 0 ]; do
    case $1 in
      --python | --wheels | --tensorflow)
        [ $# -ge 2 ] || fail "$1 needs a value"
        local "${1#--}=$2"
        shift
        ;;
      --no-start) start=no ;;
      *) fail "$1 is no option of install; see --help" ;;
    esac
    shift
  done
  check_options
  python=$(find_python "$python")
  make_user
  install_tensorflow
  install_agent
  install_files
  systemctl enable --quiet heatsoak.service
  [ $start = no ] || start
}

cmd_rollback() {
  local current previous
  [ $# = 0 ] || fail "rollback takes no $1; see --help"
  [ -e "$BASE/previous" ] || fail "there is no earlier agent in $BASE"
  current=$(readlink -f "$BASE/current")
  previous=$(readlink -f "$BASE/previous")
  point current "$previous"
  point previous "$current"
  start
}

cmd_uninstall() {
  [ $# = 0 ] || [ "$*" = --purge ] || fail "$* is no option of uninstall; see --help"
  [ "${1-}" = --purge ] || keep_configuration
  systemctl disable --now --quiet "${UNIT_FILES[@]}" 2>/dev/null || true
  rm -rf "${UNIT_FILES[@]/#/$UNITS/}" "$UNITS"/heatsoak{,-devices}.service.d "$UNITS/heatsoak.socket.d"
  systemctl daemon-reload
  systemctl reset-failed heatsoak.service 2>/dev/null || true
  if [ "${1-}" = --purge ]; then
    rm -rf "$STATE"
  elif [ -d "$STATE" ]; then
    chown -R root:root "$STATE" # systemd gives it back to the service's user, should it be installed again
    say "kept: $STATE"
  fi
  rm -rf "$BASE" "$COMMAND" "$CONFIG"
  ! getent passwd heatsoak >/dev/null || userdel heatsoak
}

# What an administrator wrote, settings and changes to the units, is not thrown away.
keep_configuration() {
  local kept=$STATE/configuration path written=()
  [ -d "$STATE" ] || return 0
  if [ -d "$CONFIG" ]; then
    if [ "$(ls -A "$CONFIG")" != heatsoak.toml ] || ! "$COMMAND" config defaults | cmp -s - "$CONFIG/heatsoak.toml"; then
      written+=("$CONFIG"/.)
    fi
  fi
  for path in "$UNITS"/heatsoak{,-devices}.service.d "$UNITS/heatsoak.socket.d"; do
    [ ! -d "$path" ] || written+=("$path")
  done
  [ ${#written[@]} != 0 ] || return 0
  rm -rf "$kept"
  mkdir -m 700 "$kept"
  cp -a "${written[@]}" "$kept"
  say "kept: your configuration, in $kept"
}

case ${1-} in
  install | rollback | uninstall)
    [ "$(id -u)" = 0 ] || fail "must be run as root"
    [ -d /run/systemd/system ] || fail "systemd does not run here"
    "cmd_$1" "${@:2}"
    ;;
  -h | --help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
