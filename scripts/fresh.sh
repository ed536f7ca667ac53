#!/bin/sh
# Runs a command where a stranger would: in a fresh Debian with make and git, in a clone of this
# repository's last commit.
#   scripts/fresh.sh SUITE COMMAND...       scripts/fresh.sh trixie make demo
# SHARE=FOLDER is /share in there.  The packages of a suite are fetched once, into CHROOTS
# (default /var/cache/cgs-chroots); every run gets a copy, which goes away at the end.  MIRROR is where
# they come from.  The status is the command's; 77: no chroot can be made here, and the last line says why.
set -eu
suite=$1
shift
chroots=${CHROOTS:-/var/cache/cgs-chroots}
mirror=${MIRROR:-http://deb.debian.org/debian}
repository=$(cd "$(dirname "$0")/.." && pwd)
PATH=$PATH:/usr/sbin:/sbin

cannot() {
    echo "no chroot can be made here: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || cannot "not root"
command -v debootstrap >/dev/null || cannot "no debootstrap"

root=""
end() {
    for m in share dev/pts dev proc; do
        if mountpoint -q "$root/$m"; then umount -l "$root/$m"; fi
    done
    # never into something that is mounted
    rm -rf --one-file-system "$root"
}
trap '[ -z "$root" ] || end' EXIT
trap 'exit 130' INT TERM HUP

mkdir -p "$chroots"
if [ ! -f "$chroots/$suite.tar" ]; then
    root=$(mktemp -d "$chroots/XXXXXX")
    debootstrap --variant=minbase --include=make,git "$suite" "$root" "$mirror" >"$chroots/$suite.log" 2>&1 ||
        cannot "debootstrap $suite: $(tail -n 1 "$chroots/$suite.log")"
    rm -f "$root"/var/cache/apt/archives/*.deb
    tar -C "$root" -cf "$chroots/$suite.tar.$$" .
    mv "$chroots/$suite.tar.$$" "$chroots/$suite.tar"
    end
fi
root=$(mktemp -d "$chroots/XXXXXX")
tar -C "$root" -xf "$chroots/$suite.tar"
chmod 755 "$root"
mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" && mount --bind /dev/pts "$root/dev/pts" ||
    cannot "nothing can be mounted"
cp /etc/resolv.conf "$root/etc/resolv.conf"
if [ -n "${SHARE:-}" ]; then
    mkdir "$root/share"
    mount --bind "$SHARE" "$root/share"
fi
git clone -q --no-hardlinks "$repository" "$root/cgs"
env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$root" sh -c 'cd /cgs && exec "$@"' sh "$@"
