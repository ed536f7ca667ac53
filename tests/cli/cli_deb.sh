#!/bin/sh
# cli_deb.sh - make deb in fresh chroots of Debian 12 and 13, and what it made in others: installed by
# apt with what it depends on, run, compiled against, imported.
#   CGS_TEST_CHROOTS=1 tests/cli/cli_deb.sh BUILD       SUITES="trixie": only that one
. "$(dirname "$0")/prelude.sh"
if [ -z "${CGS_TEST_CHROOTS:-}" ]; then
    echo "takes minutes a release, and a network: CGS_TEST_CHROOTS=1 asks for it"
    exit 77
fi

# what runs where the packages are installed, and nothing of the tree but the examples
cat >"$tmp/installed.sh" <<'END'
set -eu
export DEBIAN_FRONTEND=noninteractive
cp -r /cgs/examples /tmp/examples
rm -rf /cgs
cd /tmp
apt-get update -qq
apt-get install -y -qq --no-install-recommends /share/cgs_*.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
version=$(cgs --version)
[ "$version" = "cgs $1" ]
cgs envs --json >envs
for env in tworooms pusht cube reacher; do
    grep -q "\"$env\"" envs || { echo "no $env"; cat envs; exit 1; }
done
cgs collect --env tworooms --out d.h5 --episodes 4 --size 64 --quiet
cgs data check d.h5
[ -s /usr/share/man/man1/cgs.1.gz ] && [ -s /usr/share/bash-completion/completions/cgs ]
[ -s /usr/share/zsh/site-functions/_cgs ] && [ -s /usr/share/fish/vendor_completions.d/cgs.fish ]

# Python needs the library's package and no other of ours
apt-get purge -y -qq cgs >/tmp/log 2>&1
apt-get install -y -qq --no-install-recommends /share/libcgs2_*.deb /share/python3-cgs_*.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
python3 -c 'import cgs; assert "tworooms" in cgs.environments(); print("python:", cgs.version(), cgs._lib._name)'

apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config /share/libcgs-dev_*.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
gcc -std=c11 -Wall -Wextra -Werror -o mpc_loop examples/mpc_loop.c $(pkg-config --cflags --libs cgs)
if ./mpc_loop nothing 2>err; then exit 1; fi
grep -q nothing err
dpkg -L cgs libcgs2 libcgs-dev python3-cgs 2>/dev/null | grep -E '^/usr/(local|share/cgs)' && exit 1
echo "installed and run: $version"
END

version=$("$cgs" --version | sed 's/.* //')
for suite in ${SUITES:-bookworm trixie}; do
    mkdir "$tmp/$suite"
    cp "$tmp/installed.sh" "$tmp/$suite/"
    start=$(date +%s)
    status=0
    SHARE=$tmp/$suite "$here/../scripts/fresh.sh" $suite sh -c \
        'scripts/setup.sh deb && make deb && cp build/deb/*.deb /share' >"$tmp/$suite/log" 2>&1 || status=$?
    if [ $status = 77 ]; then tail -n 1 "$tmp/$suite/log" && exit 77; fi
    [ $status = 0 ] || { tail -n 40 "$tmp/$suite/log"; fail "make deb in $suite"; }
    built=$(date +%s)
    SHARE=$tmp/$suite "$here/../scripts/fresh.sh" $suite sh /share/installed.sh "$version" ||
        fail "what make deb made for $suite"
    echo "$suite: $(ls "$tmp/$suite"/*.deb | wc -l) packages, built in $((built - start)) s, tried in $(($(date +%s) - built)) s"
done
