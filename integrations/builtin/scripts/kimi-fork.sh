#!/bin/sh
# Forks a kimi conversation and prints the new id alone: kimi (2.1.0, read in its bundle) says
# `Forked to ID ("title") in 12ms`, and the title is anybody's text.
set -eu
LC_ALL=C
export LC_ALL

fail() {
	printf 'kimi-fork: %s\n' "$1" >&2
	exit 1
}

[ $# -eq 1 ] || fail 'wants the id of one conversation'
said=$(kimi fork "$1" -y </dev/null) || fail 'kimi fork refused the conversation'
printf '%s\n' "$said" >&2

id=${said#'Forked to '}
[ "$id" != "$said" ] || fail 'kimi fork does not say which conversation it made'
id=${id%%[!0-9A-Za-z_-]*}
case $id in
session_?*) printf '%s\n' "$id" ;;
*) fail 'kimi fork does not say which conversation it made' ;;
esac
