#!/bin/sh
# The entry point for tmux plugin managers. It finds the program, which does the rest: phux-agent tmux plug.
dir=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
asked=$(tmux show-option -gqv @phux-agent-binary)
for program in "$asked" "$dir/bin/phux-agent" "$(command -v phux-agent)" "$HOME/.local/bin/phux-agent" \
	"${GOBIN:-${GOPATH:-$HOME/go}/bin}/phux-agent" /usr/local/bin/phux-agent /opt/homebrew/bin/phux-agent; do
	[ -f "$program" ] && [ -x "$program" ] && exec "$program" tmux plug >/dev/null
done
# Short, for a client cuts what it has no room for; and a command that works as it stands.
short=$dir
case $dir in "$HOME"/*) short="~${dir#"$HOME"}" ;; esac
say="phux-agent: not built yet: make -C $short, then prefix I"
case $short in *[!A-Za-z0-9/._~-]*) say="phux-agent: not built yet: make, where its plugin is, then prefix I" ;; esac
[ -f "$dir/Makefile" ] || say="phux-agent: its program is not installed: see its README, or set @phux-agent-binary"
tmux list-clients 2>/dev/null | grep -q . && exec tmux display-message -d 8000 "$say"
exec tmux set-hook -g 'client-attached[9731]' "set-hook -gu 'client-attached[9731]' ; display-message -d 8000 '$say'"
