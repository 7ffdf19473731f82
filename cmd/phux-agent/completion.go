package main

import "github.com/spf13/cobra"

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
				return root.GenBashCompletionV2(a.stdout, true)
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
