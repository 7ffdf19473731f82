#!/bin/sh
# A stand-in for an agent CLI. It remembers what it was told, one file a conversation, from the
# first line on; it takes a caller's id for a new one, and refuses to mix the two up.
home=${DEMO_AGENT_HOME:-$HOME/.demo-agent}
case $1 in
--version)
	echo "demo-agent 1.0"
	exit 0
	;;
--session-id)
	id=$2
	if [ -e "$home/$id.log" ]; then
		echo "demo-agent: conversation $id exists already; use --resume" >&2
		exit 1
	fi
	;;
--resume)
	id=$2
	if [ ! -s "$home/$id.log" ]; then
		echo "demo-agent: no conversation $id" >&2
		exit 1
	fi
	;;
*)
	echo "usage: demo-agent.sh --session-id ID | --resume ID" >&2
	exit 2
	;;
esac
umask 077
mkdir -p "$home" || exit 1
echo "demo agent, conversation $id"
if [ -s "$home/$id.log" ]; then
	echo "I remember:"
	sed 's/^/  /' "$home/$id.log"
else
	echo "I know nothing yet."
fi
while printf '> ' && IFS= read -r line; do
	case $line in
	/exit) exit 0 ;;
	'') ;;
	*)
		printf '%s\n' "$line" >>"$home/$id.log"
		printf 'noted (%s lines).\n' "$(wc -l <"$home/$id.log" | tr -d ' ')"
		;;
	esac
done
