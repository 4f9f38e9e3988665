#!/bin/sh
# Makes the virtual environment DIR from requirements-dev.lock and installs this tree into it.
#   tools/venv.sh DIR
# Needs Python 3.11 or newer. Where Debian has split `ensurepip` out of Python (no python3-venv), pip comes from the
# system's pip, or else is unpacked from Debian's own package without installing anything.
set -eu

dir=${1:?usage: tools/venv.sh DIR}
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
export PIP_ROOT_USER_ACTION PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT
unset PYTHONPATH PYTHONHOME || true

is_suitable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14; do
        if is_suitable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "hushql needs Python 3.11 or newer and found none on PATH." >&2
    echo "Install one (Debian, Ubuntu: apt install python3 python3-venv) or name it: make PYTHON=/path/to/python3 ..." >&2
    return 1
}

# A pip that can install into another interpreter's environment, unpacked below $1; prints its path.
unpack_debian_pip() {
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    mkdir -p "$1/lists/partial" "$1/cache/archives/partial" "$1/unpacked"
    (
        cd "$1"
        set -- -qq -o Dir::State::Lists="$1/lists" -o Dir::Cache="$1/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=
        apt-get "$@" update && apt-get "$@" download python3-pip-whl && dpkg -x python3-pip-whl_*.deb unpacked
    ) >&2 || return 1
    ls "$1"/unpacked/usr/share/python-wheels/pip-*.whl
}

# Shows pip's output as one line that says how far it is.
show_progress() {
    all=$(grep -c '^[a-z0-9]' requirements-dev.lock)
    got=0
    while read -r action package _; do
        case $action in
            Collecting) got=$((got + 1)) && printf '\r\033[K  %s of %s: %s' "$got" "$all" "${package%%=*}" ;;
            Installing) printf '\r\033[K  unpacking %s packages' "$all" ;;
        esac
    done
    printf '\r\033[K'
}

install() { # install PIP_COMMAND...
    if [ -t 2 ]; then
        rm -f "$dir/.failed"
        { install_locked --progress-bar=off "$@" || touch "$dir/.failed"; } | show_progress >&2
        [ ! -e "$dir/.failed" ]
    else
        install_locked --quiet "$@"
    fi
    "$@" install --quiet --no-deps --no-build-isolation --no-index -e .
}

install_locked() { # install_locked OPTION PIP_COMMAND...
    option=$1
    shift
    # Spark's client is published as source alone
    "$@" install "$option" --no-deps --require-hashes --only-binary :all: --no-binary pyspark-client \
        -r requirements-dev.lock
}

# The checkout that an environment was made for, if any: an installation of this one would redirect its commands.
checkout_of() {
    "$1" -I -c 'from importlib.util import find_spec; s = find_spec("proxy"); print(s.origin if s else "")' 2>/dev/null || true
}

if [ -x "$dir/bin/python" ]; then
    origin=$(checkout_of "$dir/bin/python")
    case $origin in
        "" | "$(pwd -P)/proxy/__init__.py" | "$dir"/*) ;;
        *)
            echo "the environment $dir belongs to another checkout: ${origin%/proxy/__init__.py}" >&2
            echo "Name another with VENV=, or remove that directory if nobody uses it." >&2
            exit 1
            ;;
    esac
fi

if ! is_suitable "$dir/bin/python"; then
    python=$(find_python)
    rm -rf "$dir"
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv "$dir"
    else
        "$python" -m venv --without-pip "$dir"
    fi
fi

if "$dir/bin/python" -m pip --version >/dev/null 2>&1; then
    install "$dir/bin/python" -m pip
else
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    if wheel=$(unpack_debian_pip "$scratch"); then
        PYTHONPATH=$wheel "$dir/bin/python" -m pip install --quiet --no-index --no-deps "$wheel"
        install "$dir/bin/python" -m pip
    else
        rm -rf "$dir"
        echo "This Python cannot make virtual environments with pip." >&2
        echo "Install its venv module (Debian, Ubuntu: apt install python3-venv) and run make again." >&2
        exit 1
    fi
fi
