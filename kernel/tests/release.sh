#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# release.sh KERNEL: the release that the lab's short name means, by the newest headers in its cache.
headers=${XDG_CACHE_HOME:-$HOME/.cache}/canter/headers
case $1 in
*-rt) pattern="^${1%-rt}\..*-rt-" ;;
*) pattern="^$1\..*[0-9]-amd64$" ;;
esac
ls "$headers" 2>/dev/null | grep -E "$pattern" | sort -V | tail -1
