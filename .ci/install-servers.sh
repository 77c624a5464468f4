#!/usr/bin/env bash
# Installs the real servers and clients of test/interop, the browser that tests open pages in, and R with its sandbox
# (Debian, as root), without starting any. Running it again costs nothing.
#
# OpenSSH is installed as a package. The three FTP servers exclude each other as packages, so they are only unpacked
# below $prefix, where the tests find them; the libraries that they need are installed as packages. OpenStack Swift is
# installed as a Python library, without the packages of its services: test/interop/swift-server.py starts it.
set -euo pipefail

prefix=/opt/headgate-interop
ftp_packages=(vsftpd proftpd-core proftpd-mod-crypto pure-ftpd pure-ftpd-common)
export DEBIAN_FRONTEND=noninteractive

usable() {
  [ -x /usr/bin/python3 ] && [ -x /usr/bin/Rscript ] && [ -x /usr/bin/bwrap ] &&
    [ -x /usr/bin/chromium ] && [ -x /usr/sbin/sshd ] && [ -x "$prefix/usr/sbin/vsftpd" ] && [ -x "$prefix/usr/sbin/proftpd" ] &&
    [ -x /usr/bin/sftp ] && [ -x /usr/bin/lftp ] && [ -x /usr/bin/curl ] &&
    [ -f /usr/lib/python3/dist-packages/swift/proxy/server.py ] && [ -f "$prefix/usr/lib/proftpd/mod_sftp.so" ] && [ -x "$prefix/usr/sbin/pure-ftpd" ] && [ -x "$prefix/usr/bin/pure-pw" ]
}

if usable; then
  echo "the servers, the browser and R for tests are installed already"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "installing the servers, the browser and R for tests needs root" >&2
  exit 1
fi

work=$(mktemp -d)
policy=/usr/sbin/policy-rc.d
policy_is_ours=
clean() {
  rm -rf "$work"
  [ -z "$policy_is_ours" ] || rm -f "$policy"
}
trap clean EXIT

# Nothing may start on a default port while packages are set up.
if [ ! -e "$policy" ]; then
  policy_is_ours=1
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    return 1
  }
}

chmod 755 "$work"
quietly apt-get update
(cd "$work" && quietly apt-get -o APT::Sandbox::User=root download "${ftp_packages[@]}")

# "libfoo1 (>= 2), libbar2 | libbar3, adduser" becomes "libfoo1 libbar2".
mapfile -t libraries < <(
  for package in "$work"/*.deb; do dpkg-deb --field "$package" Depends | tr ',' '\n'; done |
    sed -E 's/^ *//; s/[ |(:].*//' | grep '^lib' | sort -u
)
quietly apt-get install -y --no-install-recommends chromium openssh-server openssh-client lftp curl openssl python3 python3-swift r-base-core bubblewrap "${libraries[@]}"

mkdir -p "$prefix"
for package in "$work"/*.deb; do dpkg-deb --extract "$package" "$prefix"; done

usable || {
  echo "the servers, the browser and R for tests were installed, but not all of them are there" >&2
  exit 1
}
echo "the servers, the browser and R for tests are installed"
