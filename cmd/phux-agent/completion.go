package main

import (
	"io"

	"github.com/spf13/cobra"
)

// bashAlone is what the script needs of the bash-completion package, for machines without it: there a
// Tab would print an error into the line. Words are what stands between blanks.
const bashAlone = `
if [[ $(type -t _get_comp_words_by_ref) != function ]]; then
    _get_comp_words_by_ref()
    {
        local line=${COMP_LINE:0:COMP_POINT}
        read -ra words <<<"$line"
        [[ $line == *[[:space:]] ]] && words+=("")
        cword=$((${#words[@]} - 1))
        cur=${words[cword]}
        prev=
        [[ $cword -gt 0 ]] && prev=${words[cword - 1]}
        return 0
    }
fi
`

func (a *app) completionVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a shell's completion script",
		Long: `Print a shell's completion script. For this shell only:

  bash   source <(phux-agent completion bash)
  zsh    source <(phux-agent completion zsh)
  fish   phux-agent completion fish | source`,
		Example:   "  phux-agent completion bash > ~/.local/share/bash-completion/completions/phux-agent\n  phux-agent completion fish > ~/.config/fish/completions/phux-agent.fish",
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				if err := root.GenBashCompletionV2(a.stdout, true); err != nil {
					return err
				}
				_, err := io.WriteString(a.stdout, bashAlone)
				return err
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			}
			return usage(cmd, "no completion for %q: bash, zsh or fish", args[0])
		},
		Annotations: exits("0 printed", "2 usage"),
	}
}
