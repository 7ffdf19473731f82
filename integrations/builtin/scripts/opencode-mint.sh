#!/bin/sh
# Makes an empty opencode session under an id that we choose, and prints that id alone.
#
# opencode has no option for a caller's id (1.18.33), but `opencode import FILE` takes a session
# with its id, and `opencode -s ID` then opens it. Without this step the id would be opencode's
# own, made at the first prompt, where nobody can see whose pane it belongs to.
#
# Runs in the directory of the pane to be. Nothing is read but the directory's name; what
# opencode prints goes to stderr.
set -eu
umask 077
LC_ALL=C
export LC_ALL

fail() {
	printf 'opencode-mint: %s\n' "$1" >&2
	exit 1
}

dir=$(pwd -P && echo .) || fail 'the working directory has no name'
dir=${dir%?.}
case $dir in
*[[:cntrl:]]*) fail 'a control character in the working directory' ;;
esac
json_dir=$(printf '%s' "$dir" | sed 's/[\\"]/\\&/g')

# 26 characters after ses_, as opencode's own ids have; ours are random throughout.
random=$(od -An -N13 -tx1 /dev/urandom | tr -d ' \n')
[ ${#random} -eq 26 ] || fail 'no random bytes from /dev/urandom'
id=ses_$random

version=$(opencode --version) || fail 'opencode --version does not run'
case $version in
'' | *[!0-9A-Za-z.+-]*) fail 'opencode --version does not print a version' ;;
esac
now=$(date +%s)000
# opencode names a conversation after its first prompt where the title still has this form.
title="New session - $(date -u +%Y-%m-%dT%H:%M:%S).000Z"

tmp=$(mktemp -d "${TMPDIR:-/tmp}/opencode-mint.XXXXXX") || fail 'no temporary directory'
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

printf '{"info":{"id":"%s","slug":"%s","projectID":"global","directory":"%s","title":"%s","version":"%s","time":{"created":%s,"updated":%s}},"messages":[]}\n' \
	"$id" "$id" "$json_dir" "$title" "$version" "$now" "$now" >"$tmp/session.json"

# Without plugins: with one in its directory, opencode first fetches packages for it (seen: two minutes).
opencode import "$tmp/session.json" --pure </dev/null >&2 || fail 'opencode import refused the session'
printf '%s\n' "$id"
